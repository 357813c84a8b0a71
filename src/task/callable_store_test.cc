#include "task/callable_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/soon_test.h"
#include "hal/sim_devices_test.h"
#include "keel/hal/forwarding_device.h"
#include "memory/every_call_fails_test.h"
#include "task/images_test.h"
#include "task/stored_callable.h"

namespace keel::task {
namespace {

using hal::IsOk;
using hal::Need;
using hal::Primitive;
using ::testing::HasSubstr;

using Held = std::shared_ptr<StoredCallable>;

class CallableStoreTest : public hal::SimDevicesTest {
 protected:
  std::unique_ptr<CallableStore> Make(Orchestration where) {
    return Need(CallableStore::Create(memory_, where));
  }
  Held Register(CallableStore& store, const Image& image) {
    return Need(store.Register(image, Deadline::Never()));
  }
  // Modules and memory of callables are gone; the store and its stream may be there.
  void ExpectNoCallableLeft() {
    EXPECT_EQ(memory_->allocator().allocated(), 0_B);
    EXPECT_EQ(std::ranges::count_if(device_->Live(),
                                    [](const hal::LiveObject& object) {
                                      return object.created_by == Primitive::kLoadModule;
                                    }),
              0)
        << Live();
  }
  void ExpectNothingLeftOfMemory() {
    memory_ = nullptr;
    ExpectNothingLeft();
  }

  std::shared_ptr<memory::DeviceMemory> memory_ = Need(memory::DeviceMemory::Create(device_, {}));
};

TEST_F(CallableStoreTest, T8_AThousandRegistrationsOfAHundredContentsAreAHundredUploads) {
  auto store = Make(Orchestration::kDevice);
  std::vector<Image> images;
  images.reserve(100);
  for (unsigned i = 0; i < 100; ++i) images.push_back(NoopImage(i));
  device_->ResetCounts();
  std::vector<Held> held;
  held.reserve(1000);
  for (std::size_t i = 0; i < 1000; ++i) {
    // An image of its own each time: what counts is the content.
    held.push_back(Register(*store, Need(Image::Parse(images[i % 100].bytes()))));
    EXPECT_EQ(held[i], held[i % 100]);
  }
  EXPECT_EQ(store->uploads(), 100u);
  EXPECT_EQ(store->size(), 100u);
  EXPECT_EQ(device_->calls(Primitive::kCopy), 100u);
  EXPECT_EQ(device_->calls(Primitive::kLoadModule), 100u);
  EXPECT_EQ(device_->calls(Primitive::kAllocatePlain), 0u);
  for (std::size_t i = 0; i < 1000; ++i) {
    const Held one = std::move(held[i]);
    ASSERT_TRUE(IsOk(store->Unregister(one)));
  }
  EXPECT_EQ(store->size(), 0u);
  EXPECT_EQ(store->uploads(), 100u);
  ExpectNoCallableLeft();
  store = nullptr;
  ExpectNothingLeftOfMemory();
}

TEST_F(CallableStoreTest, TheUploadIsTheImageWithItsTableFilled) {
  const auto store = Make(Orchestration::kDevice);
  ImageBuilder builder;
  builder.SetOrchestration(OrchestrationCode("Noop"));
  const std::uint32_t part = builder.AddRegisteredPart("keel");
  for (const std::string_view name : {"keel_add", "keel_fill", "keel_add"}) {
    builder.AddKernel(part, std::string(name));
  }
  const Image image = Need(builder.Build());
  const Held callable = Register(*store, image);
  std::vector<std::byte> uploaded(image.bytes().size());
  const auto stream = Need(hal::Stream::Create(device_));
  ASSERT_TRUE(IsOk(memory_->CopyToHost(stream.get(), uploaded.data(), callable->buffer(),
                                       Bytes(uploaded.size()))));
  const std::size_t table = image.table_offset();
  EXPECT_TRUE(std::equal(uploaded.begin(), uploaded.begin() + static_cast<std::ptrdiff_t>(table),
                         image.bytes().begin()));
  std::vector<std::uint64_t> filled(3);
  ASSERT_EQ(uploaded.size() - table, filled.size() * 8);
  std::memcpy(filled.data(), uploaded.data() + table, filled.size() * 8);
  const auto kernels = callable->kernels();
  ASSERT_EQ(kernels.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(filled[i], kernels[i].value);
  EXPECT_NE(filled[0], 0u);
  EXPECT_NE(filled[0], filled[1]);
  EXPECT_EQ(filled[0], filled[2]);
  ASSERT_TRUE(IsOk(store->Unregister(callable)));
}

TEST_F(CallableStoreTest, TheHostsOrchestrationUploadsNothing) {
  auto store = Make(Orchestration::kHost);
  device_->ResetCounts();
  const Held add = Register(*store, AddImage());
  EXPECT_NE(add->function(), nullptr);
  EXPECT_EQ(store->uploads(), 0u);
  EXPECT_EQ(device_->calls(Primitive::kCopy), 0u);
  EXPECT_EQ(memory_->allocator().allocated(), 0_B);
  EXPECT_EQ(device_->calls(Primitive::kLoadModule), 1u);  // the kernels
  ASSERT_TRUE(IsOk(store->Unregister(add)));
}

TEST_F(CallableStoreTest, WhoHoldsACallableKeepsIt) {
  const auto store = Make(Orchestration::kDevice);
  Held add = Register(*store, AddImage());
  ASSERT_TRUE(IsOk(store->Unregister(add)));
  EXPECT_EQ(store->size(), 0u);
  EXPECT_EQ(store->Unregister(add).code(), StatusCode::kNotFound);
  EXPECT_GT(memory_->allocator().allocated(), 0_B);
  // Registered again meanwhile, it is another one, and the first does not count for it.
  const Held again = Register(*store, AddImage());
  EXPECT_NE(again, add);
  EXPECT_EQ(store->Unregister(add).code(), StatusCode::kNotFound);
  ASSERT_TRUE(IsOk(store->Unregister(again)));
  add = nullptr;
}

TEST_F(CallableStoreTest, ACallableMayOutliveItsStore) {
  auto store = Make(Orchestration::kDevice);
  Held add = Register(*store, AddImage());
  store = nullptr;
  EXPECT_GT(memory_->allocator().allocated(), 0_B);
  add = nullptr;
  ExpectNoCallableLeft();
  ExpectNothingLeftOfMemory();
}

TEST_F(CallableStoreTest, T1_EqualHashesAreNotEqualCallables) {
  auto store = Need(CallableStore::Create(memory_, Orchestration::kDevice,
                                          [](const Image&) { return std::uint64_t{7}; }));
  std::vector<Held> held;
  held.reserve(5);
  for (unsigned i = 0; i < 5; ++i) held.push_back(Register(*store, NoopImage(i)));
  EXPECT_EQ(store->size(), 5u);
  EXPECT_EQ(store->uploads(), 5u);
  for (unsigned i = 0; i < 5; ++i) {
    EXPECT_EQ(std::ranges::count(held, held[i]), 1);
    EXPECT_TRUE(std::ranges::equal(held[i]->image().bytes(), NoopImage(i).bytes()));
    EXPECT_EQ(Register(*store, NoopImage(i)), held[i]);
  }
  ASSERT_TRUE(IsOk(store->Unregister(held[2])));
  ASSERT_TRUE(IsOk(store->Unregister(held[2])));
  EXPECT_EQ(store->Unregister(held[2]).code(), StatusCode::kNotFound);
  EXPECT_EQ(store->size(), 4u);
  EXPECT_EQ(Register(*store, NoopImage(3)), held[3]);
  EXPECT_EQ(store->uploads(), 5u);
}

TEST_F(CallableStoreTest, T8_ThreadsThatRegisterTheSameAtOnceShareOneUpload) {
  auto store = Make(Orchestration::kDevice);
  constexpr int kThreads = 4;
  constexpr unsigned kRounds = 50;
  std::vector<Image> images;
  for (unsigned i = 0; i < kRounds; ++i) images.push_back(NoopImage(i));
  std::barrier together(kThreads);
  std::vector<Held> held(kThreads);
  std::vector<std::thread> threads;
  device_->ResetCounts();
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const auto me = static_cast<std::size_t>(t);
      for (unsigned round = 0; round < kRounds; ++round) {
        together.arrive_and_wait();
        held[me] = Register(*store, images[round]);
        together.arrive_and_wait();
        // None is given back before all have looked.
        for (const Held& other : held) EXPECT_EQ(other, held[0]);
        EXPECT_EQ(store->uploads(), round + 1U);
        EXPECT_EQ(device_->calls(Primitive::kCopy), round + 1U) << "made, and thrown away";
        EXPECT_EQ(device_->calls(Primitive::kLoadModule), round + 1U);
        EXPECT_EQ(store->size(), 1u);
        together.arrive_and_wait();
        EXPECT_TRUE(IsOk(store->Unregister(std::exchange(held[me], nullptr))));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store->size(), 0u);
  ExpectNoCallableLeft();
  store = nullptr;
  ExpectNothingLeftOfMemory();
}

TEST_F(CallableStoreTest, T8_RacingThreadsLeaveNothing) {
  auto store = Make(Orchestration::kDevice);
  constexpr int kThreads = 4;
  constexpr int kRounds = 60;
  const Image images[] = {NoopImage(0), NoopImage(1), NoopImage(2)};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < kRounds; ++round) {
        const Image& image = images[static_cast<std::size_t>((round + t) % 3)];
        const Held held = Register(*store, image);
        EXPECT_TRUE(std::ranges::equal(held->image().bytes(), image.bytes()));
        EXPECT_TRUE(IsOk(store->Unregister(held)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store->size(), 0u);
  EXPECT_LE(store->uploads(), static_cast<std::uint64_t>(kThreads * kRounds));
  ExpectNoCallableLeft();
  store = nullptr;
  ExpectNothingLeftOfMemory();
}

TEST_F(CallableStoreTest, WhoWaitsForAnotherThreadsRegistrationGivesUpInTime) {
  const auto store = Make(Orchestration::kDevice);
  const Image image = NoopImage();
  const hal::StreamHandle stream{device_->Live().front().value};
  ASSERT_TRUE(IsOk(controls().HoldStream(stream)));
  device_->ResetCounts();
  Held first;
  std::thread maker([&] { first = Register(*store, image); });
  EXPECT_TRUE(Soon([&] { return device_->calls(Primitive::kCopy) == 1; }));
  const Status late =
      store->Register(image, Deadline::After(std::chrono::milliseconds(10))).status();
  EXPECT_EQ(late.code(), StatusCode::kDeadlineExceeded) << late.ToString();
  ASSERT_TRUE(IsOk(controls().ReleaseStream(stream)));
  maker.join();
  // It counts for nothing.
  ASSERT_TRUE(IsOk(store->Unregister(first)));
  EXPECT_EQ(store->size(), 0u);
}

// Whoever makes it may have less time than who waits for it.
TEST_F(CallableStoreTest, TheDeadlineOfWhoMakesItIsNotThatOfWhoWaits) {
  const auto store = Make(Orchestration::kDevice);
  const Image image = NoopImage();
  const hal::StreamHandle stream{device_->Live().front().value};
  ASSERT_TRUE(IsOk(controls().HoldStream(stream)));
  device_->ResetCounts();
  Status made;
  std::thread maker([&] {
    made = store->Register(image, Deadline::After(std::chrono::milliseconds(200))).status();
  });
  EXPECT_TRUE(Soon([&] { return device_->calls(Primitive::kCopy) == 1; }));
  Result<Held> waited = Internal("not yet");
  std::thread waiter([&] { waited = store->Register(image, Deadline::Never()); });
  maker.join();
  EXPECT_EQ(made.code(), StatusCode::kDeadlineExceeded) << made.ToString();
  ASSERT_TRUE(IsOk(controls().ReleaseStream(stream)));
  waiter.join();
  ASSERT_TRUE(IsOk(waited));
  ASSERT_TRUE(IsOk(store->Unregister(*waited)));
}

TEST_F(CallableStoreTest, T8_OneForAMemoryAndWhoeverAsks) {
  const auto share = [&](Orchestration where) {
    return Need(CallableStore::Share(memory_, where));
  };
  auto first = share(Orchestration::kDevice);
  const auto second = share(Orchestration::kDevice);
  const auto on_host = share(Orchestration::kHost);
  Held one = Register(*first, AddImage());
  EXPECT_EQ(Register(*second, AddImage()), one);
  const Held hosts = Register(*on_host, AddImage());
  EXPECT_NE(hosts, one);
  EXPECT_EQ(first->uploads(), 1u);
  EXPECT_EQ(second->uploads(), 0u) << "it was there";
  EXPECT_EQ(second->size(), 1u);
  ASSERT_TRUE(IsOk(first->Unregister(one)));
  first = nullptr;
  EXPECT_EQ(second->size(), 1u) << "the other's";
  EXPECT_EQ(Register(*share(Orchestration::kDevice), AddImage()), one);
  ASSERT_TRUE(IsOk(second->Unregister(one)));
  ASSERT_TRUE(IsOk(second->Unregister(one)));
  EXPECT_EQ(second->Unregister(one).code(), StatusCode::kNotFound);
  const auto other = Need(memory::DeviceMemory::Create(device_, {}));
  const auto elsewhere = Need(CallableStore::Share(other, Orchestration::kDevice));
  EXPECT_EQ(elsewhere->size(), 0u);
  EXPECT_NE(Register(*elsewhere, AddImage()), one);
}

TEST_F(CallableStoreTest, T8_ThreadsThatShareAtTheSameTimeHaveTheSame) {
  constexpr int kThreads = 4;
  const Image image = NoopImage();
  for (int round = 0; round < 10; ++round) {
    // One makes a store while the others find none yet.
    device_->DelayNth(Primitive::kCreateStream, 1, std::chrono::milliseconds(10));
    std::barrier together(kThreads);
    std::vector<Held> held(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, me = static_cast<std::size_t>(t)] {
        together.arrive_and_wait();
        const auto store = Need(CallableStore::Share(memory_, Orchestration::kDevice));
        held[me] = Register(*store, image);
        together.arrive_and_wait();
        EXPECT_EQ(held[me], held[0]);
        together.arrive_and_wait();
        EXPECT_TRUE(IsOk(store->Unregister(std::exchange(held[me], nullptr))));
      });
    }
    for (std::thread& thread : threads) thread.join();
    ExpectNoCallableLeft();
  }
  ExpectNothingLeftOfMemory();
}

TEST_F(CallableStoreTest, ErrorsNameWhatIsWrong) {
  for (const Orchestration where : {Orchestration::kHost, Orchestration::kDevice}) {
    const auto store = Make(where);
    const auto error = [&](const Image& image) {
      return store->Register(image, Deadline::Never()).status().ToString();
    };
    EXPECT_THAT(error(BuildImage(OrchestrationCode("Noop"), {"keel_add", "no_such"})),
                ::testing::AllOf(HasSubstr("NOT_FOUND"), HasSubstr("no_such")));
    EXPECT_THAT(error(BuildImage(std::vector<std::byte>(100), {})),
                ::testing::AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("orchestration code")));
    ImageBuilder unknown;
    unknown.SetOrchestration(OrchestrationCode("Noop")).AddRegisteredPart("nobody's");
    EXPECT_THAT(error(Need(unknown.Build())), HasSubstr("part 0"));
    EXPECT_EQ(store->size(), 0u);
    ExpectNoCallableLeft();
  }
  EXPECT_EQ(CallableStore::Create(memory_, Orchestration::kAuto).status().code(),
            StatusCode::kInvalidArgument);
}

TEST_F(CallableStoreTest, AFailureAtEveryCallLeavesNothingAndTheNextTryWorks) {
  for (const Orchestration where : {Orchestration::kHost, Orchestration::kDevice}) {
    auto store = Make(where);
    const Image image = AddImage();
    // The allocator's own memory, which stays.
    ASSERT_TRUE(IsOk(store->Unregister(Register(*store, image))));
    int failures = 0;
    for (std::uint64_t k = 1;; ++k) {
      device_->FailNth(k, Internal("injected"));
      Result<Held> held = store->Register(image, Deadline::Never());
      const bool reached = device_->failed().has_value();
      device_->ClearRules();
      if (held.ok()) {
        ASSERT_TRUE(IsOk(store->Unregister(*held)));
        if (!reached) break;
        continue;
      }
      ++failures;
      EXPECT_THAT(held.status().ToString(), HasSubstr("injected"));
      EXPECT_EQ(store->size(), 0u);
      EXPECT_TRUE(IsOk(device_->retries().Drain()));
      ExpectNoCallableLeft();
      Held good = Register(*store, image);
      ASSERT_TRUE(IsOk(store->Unregister(good)));
    }
    EXPECT_GE(failures, where == Orchestration::kDevice ? 5 : 2);
  }
}

TEST_F(CallableStoreTest, AFailureAtEveryCallOfAWholeLifeLeavesNothing) {
  memory_ = nullptr;
  const Image image = AddImage();
  const std::uint64_t calls = memory::SweepCalls(
      *device_,
      [&]() -> Status {
        KEEL_ASSIGN(auto memory, memory::DeviceMemory::Create(device_, {}));
        KEEL_ASSIGN(auto store, CallableStore::Create(memory, Orchestration::kDevice));
        KEEL_ASSIGN(const Held held, store->Register(image, Deadline::Never()));
        return store->Unregister(held);
      },
      [&] { ExpectNothingLeft(); });
  EXPECT_GT(calls, 10u);
}

TEST_F(CallableStoreTest, WithoutAControllerTheDeviceDoesNotOrchestrate) {
  class NoController final : public hal::ForwardingDevice {
   public:
    explicit NoController(std::shared_ptr<hal::Device> device)
        : ForwardingDevice(std::move(device)) {
      can_ = ForwardingDevice::capabilities();
      can_.orchestration = false;
    }
    const hal::Capabilities& capabilities() const override { return can_; }

   private:
    hal::Capabilities can_;
  };
  const auto memory =
      Need(memory::DeviceMemory::Create(std::make_shared<NoController>(inner_), {}));
  const Status status = CallableStore::Create(memory, Orchestration::kDevice).status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(status.ToString(), HasSubstr("sim:0"));
  EXPECT_TRUE(IsOk(CallableStore::Create(memory, Orchestration::kHost)));
}

}  // namespace
}  // namespace keel::task
