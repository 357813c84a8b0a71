#include "graph/timeline.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "graph/graph_test.h"
#include "keel/hal/graph.h"

namespace keel::graph {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

class TimelineTest : public GraphTest {
 protected:
  TimelineTest() { timeline_.Watch({&seen_, 1}); }
  // As the device does.
  void Mark() { std::atomic_ref<std::uint64_t>(seen_).fetch_add(1, std::memory_order_release); }
  Status Wait(std::uint64_t mark, Deadline deadline) {
    return timeline_.Wait(bench_.device(), mark, deadline);
  }
  // Work that is under way until the stream is released.
  void HoldWork() {
    ASSERT_TRUE(IsOk(bench_.controls().HoldStream(bench_.stream())));
    ASSERT_TRUE(IsOk(bench_.inner()->CallHost(bench_.stream(), {.function = [](void*) {}})));
  }
  void Release() { ASSERT_TRUE(IsOk(bench_.controls().ReleaseStream(bench_.stream()))); }

  alignas(8) std::uint64_t seen_ = 0;
  Timeline timeline_;
};

TEST_F(TimelineTest, IsIdleBeforeTheFirstStep) {
  EXPECT_TRUE(timeline_.Idle());
  EXPECT_TRUE(timeline_.Reached(0));
  EXPECT_TRUE(IsOk(Wait(0, Deadline::Now())));
}

TEST_F(TimelineTest, AStepIsReachedWithItsMarkAndNotBefore) {
  timeline_.Launched(bench_.stream());
  timeline_.Launched(bench_.stream());
  EXPECT_EQ(timeline_.launched(), 2u);
  EXPECT_EQ(timeline_.stream(), bench_.stream());
  EXPECT_FALSE(timeline_.Reached(1));
  Mark();
  EXPECT_TRUE(timeline_.Reached(1));
  EXPECT_FALSE(timeline_.Reached(2));
  EXPECT_FALSE(timeline_.Idle());
  Mark();
  EXPECT_TRUE(timeline_.Idle());
}

TEST_F(TimelineTest, AStepIsReachedWhenEachOfItsMarksIs) {
  std::uint64_t seen[3] = {};
  Timeline timeline;
  timeline.Watch(seen);
  timeline.Launched(bench_.stream());
  for (const int i : {2, 0, 1}) {
    EXPECT_FALSE(timeline.Reached(1));
    EXPECT_FALSE(timeline.Idle());
    seen[i] = 1;
  }
  EXPECT_TRUE(timeline.Reached(1));
  EXPECT_TRUE(timeline.Idle());
  EXPECT_FALSE(timeline.Reached(2));
}

TEST_F(TimelineTest, ReadingIsNoDriverCall) {
  timeline_.Launched(bench_.stream());
  Mark();
  bench_.device().ResetCounts();
  EXPECT_TRUE(IsOk(timeline_.Look(bench_.device())));
  EXPECT_TRUE(IsOk(Wait(1, Soon())));
  EXPECT_EQ(bench_.device().calls(), 0u);
}

TEST_F(TimelineTest, G6_AWaitEndsAtItsDeadlineAndSaysWhatIsMissing) {
  timeline_.Launched(bench_.stream());
  timeline_.Launched(bench_.stream());
  Mark();
  // A machine that is busy may delay a wait, but not each of three.
  constexpr milliseconds kInTime{500};
  auto best = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 3 && best >= kInTime; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const Status status = Wait(2, Deadline::After(milliseconds(30)));
    best = std::min(best, std::chrono::steady_clock::now() - begin);
    EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
    EXPECT_THAT(status.message(), HasSubstr("step 2 of the slot is not done: 1 are"));
  }
  EXPECT_GE(best, milliseconds(30));
  EXPECT_LT(best, kInTime);
  EXPECT_EQ(Wait(2, Deadline::Now()).code(), StatusCode::kDeadlineExceeded);
}

TEST_F(TimelineTest, G6_AWaitDoesNotBurnACore) {
  timeline_.Launched(bench_.stream());
  const auto used = [] {
    rusage usage{};
    EXPECT_EQ(getrusage(RUSAGE_THREAD, &usage), 0);
    const auto us = [](const timeval& time) { return time.tv_sec * 1'000'000 + time.tv_usec; };
    return us(usage.ru_utime) + us(usage.ru_stime);
  };
  constexpr std::int64_t kTenthUs = 40'000;
  std::int64_t least = kTenthUs;
  for (int i = 0; i < 3 && least >= kTenthUs; ++i) {
    const std::int64_t before = used();
    EXPECT_EQ(Wait(1, Deadline::After(milliseconds(400))).code(), StatusCode::kDeadlineExceeded);
    least = std::min<std::int64_t>(least, used() - before);
  }
  EXPECT_LT(least, kTenthUs);
}

TEST_F(TimelineTest, AWaitEndsWhenTheMarkComes) {
  timeline_.Launched(bench_.stream());
  std::thread device([&] { Mark(); });
  EXPECT_TRUE(IsOk(Wait(1, Soon())));
  device.join();
}

TEST_F(TimelineTest, WorkWithoutAMarkIsDoneWhenItsStreamIs) {
  HoldWork();
  timeline_.LostTrack(bench_.stream());
  EXPECT_FALSE(timeline_.Idle());
  EXPECT_TRUE(IsOk(timeline_.Look(bench_.device())));
  EXPECT_FALSE(timeline_.Idle()) << "the stream is not done";
  const Status status = Wait(0, Deadline::After(milliseconds(10)));
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(status.message(), HasSubstr("failed half way is not done"));
  Release();
  EXPECT_TRUE(IsOk(Wait(0, Soon())));
  EXPECT_TRUE(timeline_.Idle());
}

// After a step that failed half way the count goes on where it was.
TEST_F(TimelineTest, StepsAfterALostOneAreCountedRight) {
  timeline_.Launched(bench_.stream());
  Mark();
  timeline_.LostTrack(bench_.stream());
  ASSERT_TRUE(IsOk(Wait(0, Soon())));
  timeline_.Launched(bench_.stream());
  EXPECT_EQ(timeline_.launched(), 2u);
  EXPECT_FALSE(timeline_.Idle());
  Mark();
  EXPECT_TRUE(timeline_.Idle());
}

TEST_F(TimelineTest, ALostDeviceEndsTheWait) {
  timeline_.Launched(bench_.stream());
  std::thread fault([&] { bench_.controls().Lose("a fault"); });
  EXPECT_EQ(Wait(1, Soon()).code(), StatusCode::kDeviceLost);
  fault.join();
  timeline_.LostTrack(bench_.stream());
  EXPECT_EQ(Wait(1, Soon()).code(), StatusCode::kDeviceLost);
}

// Asking a stream that captures would break the capture, which is somebody else's.
TEST_F(TimelineTest, NeverAsksAStreamThatCaptures) {
  timeline_.Launched(bench_.stream());
  hal::Capture capture = Need(hal::Capture::Begin(bench_.inner(), bench_.stream()));
  EXPECT_EQ(Wait(1, Deadline::After(milliseconds(30))).code(), StatusCode::kDeadlineExceeded);
  timeline_.LostTrack(bench_.stream());
  EXPECT_EQ(Wait(1, Deadline::After(milliseconds(30))).code(), StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(IsOk(timeline_.Look(bench_.device())));
  EXPECT_TRUE(IsOk(capture.End()));
}

}  // namespace
}  // namespace keel::graph
