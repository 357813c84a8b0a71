#include "keel/memory/staging.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "base/forked_child_test.h"
#include "base/soon_test.h"
#include "hal/sim_devices_test.h"
#include "keel/hal/graph.h"
#include "keel/hal/memory.h"
#include "keel/hal/stream.h"
#include "memory/every_call_fails_test.h"

namespace keel::memory {
namespace {

using hal::IsOk;
using hal::Need;
using hal::Primitive;

// Many chunks of a small copy.
constexpr StagingOptions kFine{.to_device_threshold = 8_KiB,
                               .to_host_threshold = 8_KiB,
                               .pieces = 8,
                               .least_chunk = 16_KiB,
                               .most_chunk = 64_KiB};

std::vector<unsigned char> Pattern(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<unsigned char> bytes(size);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random() >> 11);
  return bytes;
}

class StagingTest : public hal::SimDevicesTest {
 protected:
  static constexpr std::size_t kSize = 1000003;

  std::shared_ptr<HostAllocator> Allocator(const HostAllocatorOptions& options = {}) {
    return std::make_shared<HostAllocator>(device_, options);
  }
  std::unique_ptr<Staging> Make(const StagingOptions& options = kFine,
                                std::shared_ptr<HostAllocator> allocator = nullptr) {
    if (allocator == nullptr) allocator = Allocator();
    return std::make_unique<Staging>(StagingParts{.allocator = std::move(allocator), .copy = copy_},
                                     options);
  }
  // What is in device memory, by the driver's own path.
  std::vector<unsigned char> Contents(DeviceAddress address, std::size_t size) {
    std::vector<unsigned char> bytes(size);
    EXPECT_TRUE(
        IsOk(inner_->EnqueueCopy(own_.get(), {.destination = hal::Location::Host(bytes.data()),
                                              .source = hal::Location::On(inner_->id(), address),
                                              .size = Bytes(size)})));
    EXPECT_TRUE(IsOk(own_.Synchronize()));
    return bytes;
  }

  std::shared_ptr<ParallelCopy> copy_ =
      std::make_shared<ParallelCopy>(ParallelCopyOptions{.threads = 3, .inline_limit = 4_KiB});
  hal::Stream own_ = Need(hal::Stream::Create(inner_));
  hal::Stream stream_ = Need(hal::Stream::Create(inner_));
  hal::PlainMemory memory_ = Need(hal::PlainMemory::Create(inner_, 4_MiB));
};

TEST_F(StagingTest, BytesArriveBothWaysWhateverTheSize) {
  const auto staging = Make();
  unsigned seed = 0;
  for (const std::size_t size :
       {0UL, 1UL, 8191UL, 8192UL, 16384UL, 16385UL, 131073UL, 524288UL, kSize}) {
    const std::vector<unsigned char> source = Pattern(size, ++seed);
    ASSERT_TRUE(
        IsOk(staging->CopyToDevice(stream_.get(), memory_.address(), source.data(), Bytes(size))));
    ASSERT_TRUE(IsOk(stream_.Synchronize()));
    ASSERT_EQ(Contents(memory_.address(), size), source) << size;
    std::vector<unsigned char> back(size + 1, 0xee);
    ASSERT_TRUE(
        IsOk(staging->CopyToHost(stream_.get(), back.data(), memory_.address(), Bytes(size))));
    EXPECT_EQ(back.back(), 0xee);
    back.pop_back();
    ASSERT_EQ(back, source) << size;
  }
  EXPECT_EQ(staging->stats().direct, 2U * (1 + 8191));
  EXPECT_GT(staging->stats().staged, kSize);
}

TEST_F(StagingTest, TheSourceMayBeReusedAtOnceAndTheStreamsOrderHolds) {
  const auto staging = Make();
  std::vector<unsigned char> source = Pattern(60000, 1);
  const std::vector<unsigned char> expected = source;
  // One chunk for each buffer: nothing to wait for.
  ASSERT_TRUE(IsOk(controls().HoldStream(stream_.get())));
  ASSERT_TRUE(IsOk(inner_->EnqueueFill(
      stream_.get(), {.destination = memory_.address(), .value = 7, .width = 1, .count = 60000})));
  StagingOptions options = kFine;
  options.buffers = 4;
  const auto wide = Make(options);
  ASSERT_TRUE(IsOk(
      wide->CopyToDevice(stream_.get(), memory_.address(), source.data(), Bytes(source.size()))));
  std::fill(source.begin(), source.end(), 0);
  ASSERT_TRUE(IsOk(controls().ReleaseStream(stream_.get())));
  std::vector<unsigned char> back(source.size());
  ASSERT_TRUE(
      IsOk(wide->CopyToHost(stream_.get(), back.data(), memory_.address(), Bytes(back.size()))));
  EXPECT_EQ(back, expected);
}

TEST_F(StagingTest, OneBufferIsEnough) {
  StagingOptions options = kFine;
  options.buffers = 1;
  const auto staging = Make(options);
  const std::vector<unsigned char> source = Pattern(kSize, 1);
  std::vector<unsigned char> back(kSize);
  ASSERT_TRUE(
      IsOk(staging->CopyToDevice(stream_.get(), memory_.address(), source.data(), Bytes(kSize))));
  ASSERT_TRUE(
      IsOk(staging->CopyToHost(stream_.get(), back.data(), memory_.address(), Bytes(kSize))));
  EXPECT_EQ(back, source);
}

TEST_F(StagingTest, ACopyThatFitsIntoTheBufferWaitsForNothingAndRecordsOneEvent) {
  const auto staging = Make({});
  std::vector<unsigned char> source = Pattern((4_MiB).count(), 1);
  const std::vector<unsigned char> expected = source;
  ASSERT_TRUE(IsOk(controls().HoldStream(stream_.get())));
  device_->ResetCounts();
  ASSERT_TRUE(IsOk(staging->CopyToDevice(stream_.get(), memory_.address(), source.data(), 4_MiB,
                                         Deadline::Now())));
  EXPECT_EQ(device_->calls(Primitive::kCopy), 8U);
  EXPECT_EQ(device_->calls(Primitive::kRecordEvent), 1U) << "for giving the buffer back";
  EXPECT_EQ(device_->calls(Primitive::kQueryEvent), 0U);
  std::fill(source.begin(), source.end(), 0);
  ASSERT_TRUE(IsOk(controls().ReleaseStream(stream_.get())));
  device_->ResetCounts();
  ASSERT_TRUE(IsOk(staging->CopyToHost(stream_.get(), source.data(), memory_.address(), 4_MiB)));
  EXPECT_EQ(source, expected);
  EXPECT_EQ(device_->calls(Primitive::kCopy), 8U);
  EXPECT_LE(device_->calls(Primitive::kRecordEvent), 8U) << "one for each chunk";
}

TEST_F(StagingTest, TheFirstCopiesOfASizeGoBothWaysAndAreTimed) {
  const auto staging = Make({.measure = true});
  std::vector<unsigned char> host = Pattern((1_MiB).count(), 1);
  std::vector<unsigned char> back(host.size());
  const auto both = [&] {
    ASSERT_TRUE(IsOk(staging->CopyToDevice(stream_.get(), memory_.address(), host.data(), 1_MiB)));
    ASSERT_TRUE(IsOk(staging->CopyToHost(stream_.get(), back.data(), memory_.address(), 1_MiB)));
    ASSERT_EQ(back, host);
    for (unsigned char& byte : host) ++byte;
  };
  // On a stream with work of its own nothing is timed.
  ASSERT_TRUE(IsOk(controls().HoldStream(stream_.get())));
  ASSERT_TRUE(IsOk(inner_->EnqueueFill(
      stream_.get(), {.destination = memory_.address(), .value = 7, .width = 1, .count = 60000})));
  ASSERT_TRUE(IsOk(staging->CopyToDevice(stream_.get(), memory_.address(), host.data(), 1_MiB)));
  EXPECT_EQ(staging->stats().measured, 0U);
  EXPECT_EQ(staging->stats().staged, (1_MiB).count()) << "as the threshold says";
  ASSERT_TRUE(IsOk(controls().ReleaseStream(stream_.get())));
  ASSERT_TRUE(IsOk(stream_.Synchronize()));

  for (int turn = 0; turn < 10; ++turn) both();
  EXPECT_EQ(staging->stats().measured, 20U);
  EXPECT_EQ(staging->stats().staged, 11 * (1_MiB).count());
  EXPECT_EQ(staging->stats().direct, 10 * (1_MiB).count());
  const Staging::Stats before = staging->stats();
  for (int turn = 0; turn < 10; ++turn) both();
  const Staging::Stats after = staging->stats();
  EXPECT_EQ(after.measured, 20U) << "it is known now";
  EXPECT_EQ((after.staged - before.staged) % (10 * (1_MiB).count()), 0U)
      << "either all of one direction or none";
}

TEST_F(StagingTest, ABufferThatCannotBeHadIsHadSmaller) {
  // Of 256 KiB, where 768 KiB are wanted.
  StagingOptions options = kFine;
  options.most_chunk = 256_KiB;
  options.least_chunk = 256_KiB;
  const auto allocator = Allocator({.limit = 512_KiB});
  const auto staging = Make(options, allocator);
  const std::vector<unsigned char> source = Pattern(kSize, 1);
  std::vector<unsigned char> back(kSize);
  ASSERT_TRUE(
      IsOk(staging->CopyToDevice(stream_.get(), memory_.address(), source.data(), Bytes(kSize))));
  ASSERT_TRUE(
      IsOk(staging->CopyToHost(stream_.get(), back.data(), memory_.address(), Bytes(kSize))));
  EXPECT_EQ(back, source);
  EXPECT_EQ(staging->stats().staged, 2 * kSize);
}

// A14
TEST_F(StagingTest, CallersAtTheSameTimeDoNotMixTheirBytes) {
  const auto staging = Make();
  std::vector<std::thread> callers;
  callers.reserve(4);
  for (unsigned caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      const hal::Stream stream = Need(hal::Stream::Create(inner_));
      const hal::PlainMemory memory = Need(hal::PlainMemory::Create(inner_, 2_MiB));
      for (unsigned turn = 0; turn < 8; ++turn) {
        const std::size_t size = 100000 + caller * 50000 + turn * 1001;
        const std::vector<unsigned char> source = Pattern(size, caller * 100 + turn);
        std::vector<unsigned char> back(size);
        ASSERT_TRUE(IsOk(
            staging->CopyToDevice(stream.get(), memory.address(), source.data(), Bytes(size))));
        ASSERT_TRUE(
            IsOk(staging->CopyToHost(stream.get(), back.data(), memory.address(), Bytes(size))));
        ASSERT_EQ(back, source);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

// A13
TEST_F(StagingTest, ABufferWhoseEventFailedIsNotUsedAgainBeforeTheStreamIsThere) {
  const auto driver = Need(sim::CreateSimDriver(
      {.devices = 1, .memory = 1_GiB, .arena = 8_GiB, .seed = 3, .delay_us = 300}));
  device_ = hal::Instrumented(Need(driver->Open(0)));
  const hal::Stream stream = Need(hal::Stream::Create(device_));
  const hal::PlainMemory memory = Need(hal::PlainMemory::Create(device_, 4_MiB));
  {
    const auto staging = Make();
    const std::vector<unsigned char> source = Pattern(kSize, 5);
    for (std::uint64_t nth = 1; nth <= 6; ++nth) {
      device_->FailNth(Primitive::kRecordEvent, nth, Internal("injected"));
      ASSERT_TRUE(
          IsOk(staging->CopyToDevice(stream.get(), memory.address(), source.data(), Bytes(kSize))));
      std::vector<unsigned char> back(kSize);
      ASSERT_TRUE(
          IsOk(staging->CopyToHost(stream.get(), back.data(), memory.address(), Bytes(kSize))));
      ASSERT_EQ(back, source);
      EXPECT_TRUE(device_->failed().has_value());
      device_->ClearRules();
    }
  }
}

// A13
TEST_F(StagingTest, ABufferThatNothingIsKnownAboutIsKeptAside) {
  const auto allocator = Allocator();
  auto staging = Make(kFine, allocator);
  const std::vector<unsigned char> source = Pattern(30000, 5);
  ASSERT_TRUE(IsOk(controls().HoldStream(stream_.get())));
  // The copy looks at the stream once, and so does giving back its buffer; then the stream cannot
  // be synchronised either.
  device_->FailNth(Primitive::kGetCaptureState, 2, Internal("injected"));
  device_->FailNth(Primitive::kSynchronizeStream, 1, Internal("injected"));
  ASSERT_TRUE(IsOk(staging->CopyToDevice(stream_.get(), memory_.address(), source.data(),
                                         Bytes(source.size()))));
  EXPECT_EQ(allocator->stats().memory.active_requests.current, 1);
  EXPECT_EQ(allocator->stats().pending_bytes, 0);
  ASSERT_TRUE(IsOk(controls().ReleaseStream(stream_.get())));
  ASSERT_TRUE(IsOk(stream_.Synchronize()));
  EXPECT_EQ(Contents(memory_.address(), source.size()), source);
  // The next copy gives it back.
  ASSERT_TRUE(IsOk(staging->CopyToDevice(stream_.get(), memory_.address(), source.data(),
                                         Bytes(source.size()))));
  EXPECT_EQ(allocator->stats().memory.active_requests.current, 0);
}

TEST_F(StagingTest, WithoutPinnedMemoryTheDriverCopies) {
  const auto staging = Make(kFine, Allocator({.limit = 4_KiB}));
  const std::vector<unsigned char> source = Pattern(kSize, 1);
  std::vector<unsigned char> back(kSize);
  ASSERT_TRUE(
      IsOk(staging->CopyToDevice(stream_.get(), memory_.address(), source.data(), Bytes(kSize))));
  ASSERT_TRUE(
      IsOk(staging->CopyToHost(stream_.get(), back.data(), memory_.address(), Bytes(kSize))));
  EXPECT_EQ(back, source);
  EXPECT_EQ(staging->stats().direct, 2 * kSize);
  EXPECT_EQ(staging->stats().staged, 0U);
}

// A19
TEST_F(StagingTest, ACaptureGetsNoBufferOfOurs) {
  const auto allocator = Allocator();
  const auto staging = Make(kFine, allocator);
  std::vector<unsigned char> host = Pattern(kSize, 1);
  hal::Capture capture = Need(hal::Capture::Begin(inner_, stream_.get()));
  // What the driver says to a pageable copy in a capture is its own affair.
  const hal::Copy same{.destination = hal::Location::On(inner_->id(), memory_.address()),
                       .source = hal::Location::Host(host.data()),
                       .size = Bytes(kSize)};
  const Status own = inner_->EnqueueCopy(stream_.get(), same);
  EXPECT_EQ(
      staging->CopyToDevice(stream_.get(), memory_.address(), host.data(), Bytes(kSize)).code(),
      own.code());
  EXPECT_EQ(allocator->stats().memory.allocations.current, 0);
  EXPECT_EQ(staging->CopyToHost(stream_.get(), host.data(), memory_.address(), Bytes(kSize)).code(),
            StatusCode::kFailedPrecondition);
  static_cast<void>(capture.End());
}

TEST_F(StagingTest, MemoryThatIsSeenAgainIsPinnedAndNeedsNoBuffer) {
  const auto registrations = std::make_shared<RegistrationCache>(device_);
  Staging staging({.allocator = Allocator(), .copy = copy_, .registrations = registrations}, kFine);
  std::vector<unsigned char> source = Pattern(kSize, 1);
  std::vector<unsigned char> back(kSize);
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_TRUE(
        IsOk(staging.CopyToDevice(stream_.get(), memory_.address(), source.data(), Bytes(kSize))));
    ASSERT_TRUE(
        IsOk(staging.CopyToHost(stream_.get(), back.data(), memory_.address(), Bytes(kSize))));
    ASSERT_EQ(back, source);
    for (unsigned char& byte : source) ++byte;
  }
  EXPECT_EQ(staging.stats().pinned, 4 * kSize) << "from the second time on, both ways";
  EXPECT_TRUE(IsOk(MemoryGone(source.data(), Bytes(kSize))));
  EXPECT_TRUE(IsOk(MemoryGone(back.data(), Bytes(kSize))));
  EXPECT_EQ(registrations->stats().ranges, 0U);
}

// The driver takes what a cache pinned for the caller's own pinned memory, and does not wait.
TEST_F(StagingTest, WithoutABufferACopyOfLentMemoryIsWaitedFor) {
  RegistrationCache elsewhere(peer_);
  const auto staging = Make(kFine, Allocator({.limit = 4_KiB}));
  const std::vector<unsigned char> source = Pattern(kSize, 1);
  std::vector<unsigned char> sent = source;
  std::vector<unsigned char> back(kSize);
  for (const std::vector<unsigned char>* lent : {&sent, &back}) {
    ASSERT_TRUE(IsOk(elsewhere.Lease(lent->data(), Bytes(kSize))));
  }
  const auto held = [&](const auto& copy) {
    ASSERT_TRUE(IsOk(controls().HoldStream(stream_.get())));
    device_->ResetCounts();
    std::thread later([&] {
      // Long enough for a copy that does not wait to be found out.
      EXPECT_TRUE(Soon([&] { return device_->calls(Primitive::kCopy) > 0; }));
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_TRUE(IsOk(controls().ReleaseStream(stream_.get())));
    });
    copy();
    later.join();
  };
  held([&] {
    EXPECT_TRUE(
        IsOk(staging->CopyToDevice(stream_.get(), memory_.address(), sent.data(), Bytes(kSize))));
    std::fill(sent.begin(), sent.end(), 0);
  });
  held([&] {
    EXPECT_TRUE(
        IsOk(staging->CopyToHost(stream_.get(), back.data(), memory_.address(), Bytes(kSize))));
    EXPECT_EQ(back, source);
  });
  EXPECT_EQ(staging->stats().direct, 2 * kSize);
  // Late: the copy is done all the same when the call returns.
  std::fill(back.begin(), back.end(), 0);
  held([&] {
    EXPECT_EQ(staging
                  ->CopyToHost(stream_.get(), back.data(), memory_.address(), Bytes(kSize),
                               Deadline::Now())
                  .code(),
              StatusCode::kDeadlineExceeded);
    EXPECT_EQ(back, source);
  });
  ASSERT_TRUE(IsOk(stream_.Synchronize()));
}

// It was nobody's when the copy was chosen to be the driver's.
TEST_F(StagingTest, MemoryThatIsPinnedMeanwhileIsWaitedFor) {
  const auto staging = Make();
  RegistrationCache elsewhere(peer_);
  const std::vector<unsigned char> source = Pattern(100, 1);
  std::vector<unsigned char> back(source.size());
  ASSERT_TRUE(IsOk(staging->CopyToDevice(stream_.get(), memory_.address(), source.data(),
                                         Bytes(source.size()))));
  ASSERT_TRUE(IsOk(controls().HoldStream(stream_.get())));
  device_->ResetCounts();
  device_->DelayNth(Primitive::kCopy, 1, std::chrono::milliseconds(100));
  std::thread other([&] {
    while (device_->calls(Primitive::kCopy) == 0) std::this_thread::yield();
    EXPECT_TRUE(IsOk(elsewhere.Lease(back.data(), Bytes(back.size()))));
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    EXPECT_TRUE(IsOk(controls().ReleaseStream(stream_.get())));
  });
  EXPECT_TRUE(
      IsOk(staging->CopyToHost(stream_.get(), back.data(), memory_.address(), Bytes(back.size()))));
  EXPECT_EQ(back, source);
  other.join();
  device_->ClearRules();
}

TEST_F(StagingTest, ACaptureGetsNoLentMemory) {
  const auto registrations = std::make_shared<RegistrationCache>(device_);
  Staging staging({.allocator = Allocator(), .copy = copy_, .registrations = registrations}, kFine);
  std::vector<unsigned char> host = Pattern(kSize, 1);
  ASSERT_TRUE(IsOk(registrations->Lease(host.data(), Bytes(kSize))));
  hal::Capture capture = Need(hal::Capture::Begin(inner_, stream_.get()));
  for (const std::size_t size : {std::size_t{100}, kSize}) {
    EXPECT_EQ(
        staging.CopyToDevice(stream_.get(), memory_.address(), host.data(), Bytes(size)).code(),
        StatusCode::kFailedPrecondition);
    EXPECT_EQ(staging.CopyToHost(stream_.get(), host.data(), memory_.address(), Bytes(size)).code(),
              StatusCode::kFailedPrecondition);
  }
  const hal::Graph graph = Need(capture.End());
  EXPECT_EQ(staging.stats().direct, 0U);
}

TEST_F(StagingTest, WaitingIsBounded) {
  const auto allocator = Allocator();
  const auto staging = Make(kFine, allocator);
  std::vector<unsigned char> host = Pattern(kSize, 1);
  ASSERT_TRUE(IsOk(controls().HoldStream(stream_.get())));
  EXPECT_EQ(staging
                ->CopyToDevice(stream_.get(), memory_.address(), host.data(), Bytes(kSize),
                               Deadline::Now())
                .code(),
            StatusCode::kDeadlineExceeded);
  EXPECT_EQ(
      staging
          ->CopyToHost(stream_.get(), host.data(), memory_.address(), Bytes(kSize), Deadline::Now())
          .code(),
      StatusCode::kDeadlineExceeded);
  EXPECT_EQ(allocator->stats().memory.active_requests.current, 0);
  EXPECT_GT(allocator->stats().pending_bytes, 0) << "the device may still use the buffers";
  ASSERT_TRUE(IsOk(controls().ReleaseStream(stream_.get())));
}

TEST_F(StagingTest, EveryCallMayFailAndNothingLeaks) {
  const std::vector<unsigned char> source = Pattern(200000, 1);
  const auto scenario = [&]() -> Status {
    const auto staging = Make();
    const auto use = [&]() -> Status {
      std::vector<unsigned char> back(source.size());
      KEEL_TRY(staging->CopyToDevice(stream_.get(), memory_.address(), source.data(),
                                     Bytes(source.size())));
      KEEL_TRY(
          staging->CopyToHost(stream_.get(), back.data(), memory_.address(), Bytes(source.size())));
      EXPECT_TRUE(back == source);
      return OkStatus();
    };
    Status status = use();
    if (!status.ok()) {
      EXPECT_TRUE(IsOk(use())) << "the same one, after " << status.ToString();
    }
    return status;
  };
  EXPECT_GT(SweepCalls(*device_, scenario,
                       [this] {
                         EXPECT_EQ(Live(), "");
                         EXPECT_TRUE(device_->retries().empty());
                       }),
            30U);
}

// A12
TEST_F(StagingTest, AfterALossEveryCopySaysSo) {
  const auto allocator = Allocator();
  const auto staging = Make(kFine, allocator);
  std::vector<unsigned char> host = Pattern(kSize, 1);
  ASSERT_TRUE(IsOk(controls().HoldStream(stream_.get())));
  std::thread loser([&] {
    while (allocator->stats().memory.active_requests.current == 0) std::this_thread::yield();
    controls().Lose("a fault");
  });
  EXPECT_EQ(
      staging->CopyToDevice(stream_.get(), memory_.address(), host.data(), Bytes(kSize)).code(),
      StatusCode::kDeviceLost);
  loser.join();
  EXPECT_EQ(staging->CopyToHost(stream_.get(), host.data(), memory_.address(), Bytes(kSize)).code(),
            StatusCode::kDeviceLost);
  EXPECT_EQ(allocator->stats().memory.active_requests.current, 0);
}

// A9
TEST_F(StagingTest, AForkedChildIsRefused) {
  auto staging = Make();
  const std::vector<unsigned char> source = Pattern(kSize, 1);
  ASSERT_TRUE(
      IsOk(staging->CopyToDevice(stream_.get(), memory_.address(), source.data(), Bytes(kSize))));
  const int status = InForkedChild([&] {
    EXPECT_EQ(
        staging->CopyToDevice(stream_.get(), memory_.address(), source.data(), Bytes(kSize)).code(),
        StatusCode::kFailedPrecondition);
    staging.reset();
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(
      IsOk(staging->CopyToDevice(stream_.get(), memory_.address(), source.data(), Bytes(kSize))));
}

}  // namespace
}  // namespace keel::memory
