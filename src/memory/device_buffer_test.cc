#include "keel/memory/device_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/forked_child_test.h"
#include "hal/sim_devices_test.h"
#include "keel/hal/graph.h"
#include "keel/hal/stream.h"
#include "memory/device_allocator_test.h"

namespace keel::memory {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

static_assert(!std::is_copy_constructible_v<DeviceBuffer<float>>);
static_assert(std::is_nothrow_move_constructible_v<DeviceBuffer<float>>);
static_assert(std::is_nothrow_move_assignable_v<DeviceBuffer<float>>);

class DeviceBufferTest : public RoomyDevicesTest {
 protected:
  hal::StreamHandle s1() const { return first_.get(); }
  hal::StreamHandle s2() const { return second_.get(); }
  std::int64_t Live() const { return memory_->allocator().Stats().allocation.all.current; }
  template <class T>
  DeviceBuffer<T> Make(std::size_t count) {
    return Need(DeviceBuffer<T>::Create(memory_, s1(), count));
  }

  hal::Stream first_ = Need(hal::Stream::Create(inner_));
  hal::Stream second_ = Need(hal::Stream::Create(inner_));
  std::shared_ptr<DeviceMemory> memory_ = Need(DeviceMemory::Create(device_, {}));
};

TEST_F(DeviceBufferTest, WhatIsCopiedInComesOut) {
  // Below and above what is staged.
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{3} << 20}) {
    auto buffer = Make<std::uint32_t>(count);
    EXPECT_EQ(buffer.size(), count);
    EXPECT_EQ(buffer.bytes(), Bytes(4 * count));
    std::vector<std::uint32_t> in(count);
    std::iota(in.begin(), in.end(), 7U);
    ASSERT_TRUE(IsOk(buffer.CopyFrom(in)));
    std::vector<std::uint32_t> expected = in;
    std::fill(in.begin(), in.end(), 0U);  // it may be reused
    ASSERT_TRUE(IsOk(buffer.CopyTo(in)));
    EXPECT_EQ(in, expected);
    ASSERT_TRUE(IsOk(buffer.Close()));
    EXPECT_FALSE(buffer);
    EXPECT_EQ(Live(), 0);
  }
  EXPECT_NE(memory_->staging().stats().staged, 0U);
}

TEST_F(DeviceBufferTest, PinnedMemoryGoesWithoutABuffer) {
  auto* const host = static_cast<std::uint8_t*>(Need(memory_->host().Allocate(8_MiB)));
  auto buffer = Make<std::uint8_t>(8 << 20);
  std::fill_n(host, 8 << 20, std::uint8_t{5});
  ASSERT_TRUE(IsOk(buffer.CopyFrom({host, 8 << 20})));
  std::fill_n(host, 8 << 20, std::uint8_t{6});  // it may be reused
  ASSERT_TRUE(IsOk(buffer.CopyTo({host, 8 << 20})));
  EXPECT_EQ(host[0], 5);
  EXPECT_EQ(host[(8 << 20) - 1], 5);
  EXPECT_EQ(memory_->staging().stats().staged + memory_->staging().stats().direct, 0U);
  ASSERT_TRUE(IsOk(memory_->host().Free(host)));
}

TEST_F(DeviceBufferTest, CopiesThatAreQueuedNeedPinnedMemory) {
  auto* const host = static_cast<std::uint8_t*>(Need(memory_->host().Allocate(1_KiB)));
  std::vector<std::uint8_t> pageable(1024);
  auto buffer = Make<std::uint8_t>(1024);
  for (const Status& status :
       {memory_->EnqueueCopyToDevice(s1(), buffer.address(), pageable.data(), 1_KiB),
        memory_->EnqueueCopyToHost(s1(), pageable.data(), buffer.address(), 1_KiB)}) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("pinned"));
  }
  host[0] = 1;
  {
    const HeldStream held(*inner_, s1());
    ASSERT_TRUE(IsOk(memory_->EnqueueCopyToDevice(s1(), buffer.address(), host, 1_KiB)));
    host[0] = 2;  // read when the stream comes to it
  }
  ASSERT_TRUE(IsOk(first_.Synchronize()));
  host[0] = 3;
  ASSERT_TRUE(IsOk(memory_->EnqueueCopyToHost(s1(), host, buffer.address(), 1_KiB)));
  ASSERT_TRUE(IsOk(first_.Synchronize()));
  EXPECT_EQ(host[0], 2);
  ASSERT_TRUE(IsOk(memory_->host().Free(host)));
}

TEST_F(DeviceBufferTest, ACaptureIsNotBrokenByACopyThatWouldWait) {
  auto* const host = static_cast<std::uint8_t*>(Need(memory_->host().Allocate(1_KiB)));
  auto buffer = Make<std::uint8_t>(1024);
  ASSERT_TRUE(IsOk(inner_->BeginCapture(s1(), hal::CaptureMode::kRelaxed)));
  EXPECT_EQ(buffer.CopyFrom({host, 1024}).code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(IsOk(memory_->EnqueueCopyToDevice(s1(), buffer.address(), host, 1_KiB)));
  const hal::GraphHandle graph = Need(inner_->EndCapture(s1()));
  EXPECT_EQ(Need(inner_->GetNodes(graph)).size(), 1U);
  ASSERT_TRUE(IsOk(inner_->DestroyGraph(graph)));
  ASSERT_TRUE(IsOk(memory_->host().Free(host)));
}

TEST_F(DeviceBufferTest, PartsAreCopiedAndMustBeInside) {
  auto buffer = Make<std::uint16_t>(100);
  ASSERT_TRUE(IsOk(buffer.Fill(0x0101)));
  const std::vector<std::uint16_t> three = {1, 2, 3};
  ASSERT_TRUE(IsOk(buffer.CopyFrom(three, 97)));
  std::vector<std::uint16_t> out(4);
  ASSERT_TRUE(IsOk(buffer.CopyTo(out, 96)));
  EXPECT_THAT(out, ::testing::ElementsAre(0x0101, 1, 2, 3));
  for (const std::size_t at : {std::size_t{98}, std::size_t{100}, std::size_t{101},
                               std::numeric_limits<std::size_t>::max()}) {
    EXPECT_EQ(buffer.CopyFrom(three, at).code(), StatusCode::kInvalidArgument) << at;
    EXPECT_EQ(buffer.CopyTo(out, at).code(), StatusCode::kInvalidArgument) << at;
  }
  EXPECT_THAT(std::string(buffer.CopyFrom(three, 98).message()),
              AllOf(HasSubstr("6 bytes"), HasSubstr("196"), HasSubstr("200")));
  EXPECT_TRUE(IsOk(buffer.CopyFrom({}, 100)));
}

TEST_F(DeviceBufferTest, FillsWithWhatADeviceCanRepeat) {
  const auto filled = [&]<class T>(T value) {
    auto buffer = Make<T>(33);
    EXPECT_TRUE(IsOk(buffer.Fill(value)));
    std::vector<T> out(33);
    EXPECT_TRUE(IsOk(buffer.CopyTo(out)));
    EXPECT_THAT(out, Each(value));
  };
  filled(std::uint8_t{200});
  filled(std::int16_t{-2});
  filled(3.25F);
  filled(0.0);
  filled(std::uint64_t{0x1234567812345678});
  filled(std::uint64_t{0xabababababababab});
  struct Odd {
    std::uint8_t bytes[3];
    bool operator==(const Odd&) const = default;
  };
  filled(Odd{{9, 9, 9}});
  EXPECT_EQ(Make<double>(2).Fill(0.1).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Make<Odd>(2).Fill({{1, 2, 3}}).code(), StatusCode::kInvalidArgument);
}

TEST_F(DeviceBufferTest, TooManyElementsAreNamed) {
  const std::size_t many = std::numeric_limits<std::size_t>::max() / 4;
  const Status status = DeviceBuffer<double>::Create(memory_, s1(), many).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::to_string(many)));
  EXPECT_EQ(DeviceBuffer<char>::Create(memory_, s1(), std::size_t{1} << 40).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(DeviceBuffer<char>::Create(nullptr, s1(), 1).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Live(), 0);
}

TEST_F(DeviceBufferTest, NoElementsAreFine) {
  auto buffer = Make<int>(0);
  EXPECT_TRUE(buffer);
  EXPECT_TRUE(buffer.empty());
  EXPECT_TRUE(IsOk(buffer.Fill(1)));
  EXPECT_TRUE(IsOk(buffer.CopyFrom({})));
  EXPECT_TRUE(IsOk(buffer.CopyTo({})));
  EXPECT_TRUE(IsOk(buffer.RecordUse(s2())));
  EXPECT_TRUE(IsOk(buffer.Close()));
}

TEST_F(DeviceBufferTest, OwnersMoveAndGiveBackOnce) {
  {
    auto first = Make<int>(10);
    const DeviceAddress address = first.address();
    DeviceBuffer<int> second(std::move(first));
    EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): what is left is an owner of nothing
    EXPECT_EQ(second.address(), address);
    auto third = Make<int>(20);
    third = std::move(second);  // frees what it had
    EXPECT_EQ(Live(), 1);
    EXPECT_EQ(third.size(), 10U);
    DeviceBuffer<int>& same = third;
    third = std::move(same);
    EXPECT_EQ(third.address(), address);
  }
  EXPECT_EQ(Live(), 0);
  DeviceBuffer<int> none;
  EXPECT_TRUE(IsOk(none.Close()));
  EXPECT_EQ(none.RecordUse(s1()).code(), StatusCode::kInvalidArgument);
  const int one = 1;
  EXPECT_EQ(none.CopyFrom({&one, 1}).code(), StatusCode::kInvalidArgument);
}

TEST_F(DeviceBufferTest, ReleasedMemoryIsTheCallers) {
  auto buffer = Make<int>(10);
  const DeviceAddress address = buffer.Release();
  EXPECT_FALSE(buffer);
  EXPECT_EQ(Live(), 1);
  EXPECT_TRUE(IsOk(memory_->allocator().Free(address)));
}

TEST_F(DeviceBufferTest, AnotherStreamKeepsItUntilItIsDone) {
  auto buffer = Make<std::uint8_t>(4 << 20);
  const DeviceAddress address = buffer.address();
  HeldStream held(*inner_, s2());
  ASSERT_TRUE(IsOk(inner_->EnqueueFill(
      s2(), {.destination = address, .value = 1, .width = 1, .count = buffer.size()})));
  ASSERT_TRUE(IsOk(buffer.RecordUse(s2())));
  ASSERT_TRUE(IsOk(buffer.Close()));
  const auto next = Make<std::uint8_t>(4 << 20);
  EXPECT_NE(next.address(), address);
}

TEST_F(DeviceBufferTest, ClosingSaysWhatIsWrongAndTheDestructorLogsIt) {
  auto buffer = Make<int>(10);
  ASSERT_TRUE(IsOk(memory_->allocator().Free(buffer.address())));
  EXPECT_EQ(buffer.Close().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(IsOk(buffer.Close()));
  SetLogLevel(LogLevel::kError);
  ::testing::internal::CaptureStderr();
  {
    auto other = Make<int>(10);
    ASSERT_TRUE(IsOk(memory_->allocator().Free(other.address())));
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("a buffer at 0x"));
}

TEST_F(DeviceBufferTest, ALostDeviceOrAForkedChildIsNoReasonToComplain) {
  SetLogLevel(LogLevel::kWarn);
  {
    auto buffer = Make<int>(10);
    const int status = InForkedChild([&] {
      ::testing::internal::CaptureStderr();
      EXPECT_EQ(buffer.Fill(1).code(), StatusCode::kFailedPrecondition);
      {
        const DeviceBuffer<int> gone(std::move(buffer));
      }
      EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    ::testing::internal::CaptureStderr();
    controls().Lose("for a test");
    EXPECT_EQ(buffer.Fill(1).code(), StatusCode::kDeviceLost);
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace keel::memory
