#include "keel/memory/event_pool.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/forked_child_test.h"
#include "hal/sim_devices_test.h"
#include "keel/hal/stream.h"

namespace keel::memory {
namespace {

using hal::IsOk;
using hal::Need;
using hal::Primitive;

class EventPoolTest : public hal::SimDevicesTest {};

TEST_F(EventPoolTest, AWarmPoolMakesNoDriverCall) {
  EventPool pool(device_);
  hal::EventHandle first;
  {
    const PooledEvent event = Need(pool.Acquire());
    first = event.get();
    EXPECT_EQ(pool.stats().in_use, 1U);
  }
  EXPECT_EQ(pool.stats().idle, 1U);
  device_->ResetCounts();
  for (int i = 0; i < 100; ++i) {
    const PooledEvent event = Need(pool.Acquire());
    EXPECT_EQ(event.get(), first);
  }
  EXPECT_EQ(device_->calls(), 0U);
  EXPECT_EQ(pool.stats().created, 1U);
  EXPECT_EQ(pool.stats().reused, 100U);
}

TEST_F(EventPoolTest, AnEventStandsForWhatItsOwnerRecorded) {
  EventPool pool(device_);
  const hal::Stream stream = Need(hal::Stream::Create(device_));
  ASSERT_TRUE(IsOk(controls().HoldStream(stream.get())));
  {
    const PooledEvent event = Need(pool.Acquire());
    ASSERT_TRUE(IsOk(event.Record(stream.get())));
    EXPECT_EQ(Need(event.Query()), hal::Completion::kPending);
    EXPECT_EQ(event.Synchronize(Deadline::Now()).code(), StatusCode::kDeadlineExceeded);
    ASSERT_TRUE(IsOk(controls().ReleaseStream(stream.get())));
    ASSERT_TRUE(IsOk(event.Synchronize(Deadline::Never())));
    EXPECT_EQ(Need(event.Query()), hal::Completion::kDone);
  }
  EXPECT_EQ(PooledEvent().Record(stream.get()).code(), StatusCode::kInvalidArgument);
}

TEST_F(EventPoolTest, NoMoreThanMaxIdleAreKeptAndTrimDestroysThem) {
  {
    EventPool pool(device_, {.max_idle = 3});
    {
      std::vector<PooledEvent> events;
      events.reserve(8);
      for (int i = 0; i < 8; ++i) events.push_back(Need(pool.Acquire()));
      std::set<std::uint64_t> handles;
      for (const PooledEvent& event : events) handles.insert(event.get().value);
      EXPECT_EQ(handles.size(), 8U);
      // Moving gives back once.
      PooledEvent moved = std::move(events[0]);
      moved = std::move(events[1]);
      EXPECT_EQ(pool.stats().in_use, 8U);
    }
    EXPECT_EQ(pool.stats().in_use, 0U);
    EXPECT_EQ(pool.stats().idle, 3U);
    EXPECT_EQ(device_->Live().size(), 3U);
    EXPECT_TRUE(IsOk(pool.Trim(1)));
    EXPECT_EQ(device_->Live().size(), 1U);
  }
  ExpectNothingLeft();
}

TEST_F(EventPoolTest, AnEventMayOutliveThePool) {
  PooledEvent event;
  {
    EventPool pool(device_);
    event = Need(pool.Acquire());
  }
  const hal::Stream stream = Need(hal::Stream::Create(device_));
  EXPECT_TRUE(IsOk(event.Record(stream.get())));
  EXPECT_TRUE(IsOk(event.Synchronize(Deadline::Never())));
  event = {};
  ASSERT_EQ(device_->Live().size(), 1U);  // the stream
}

// A12
TEST_F(EventPoolTest, AfterALossAnEventIsAnErrorAndNothingIsLeft) {
  {
    EventPool pool(device_);
    const hal::Stream stream = Need(hal::Stream::Create(device_));
    const PooledEvent event = Need(pool.Acquire());
    {
      const PooledEvent idle = Need(pool.Acquire());
    }
    ASSERT_TRUE(IsOk(controls().HoldStream(stream.get())));
    ASSERT_TRUE(IsOk(event.Record(stream.get())));
    controls().Lose("a fault");
    EXPECT_EQ(event.Query().status().code(), StatusCode::kDeviceLost);
    EXPECT_EQ(pool.Acquire().status().code(), StatusCode::kDeviceLost);
    EXPECT_EQ(pool.stats().idle, 0U);
  }
  EXPECT_TRUE(device_->retries().empty());
}

// A9
TEST_F(EventPoolTest, AForkedChildIsRefusedAndLeavesTheParentsEventsAlone) {
  {
    auto pool = std::make_unique<EventPool>(device_);
    PooledEvent event = Need(pool->Acquire());
    const WorkingThread busy([&] {
      std::vector<PooledEvent> taken;
      for (int i = 0; i < 8; ++i) taken.push_back(Need(pool->Acquire()));
      taken.clear();
      static_cast<void>(pool->Trim(2).ok());
    });
    for (int round = 0; round < kForks; ++round) {
      const int status = InForkedChild([&] {
        EXPECT_EQ(pool->Acquire().status().code(), StatusCode::kFailedPrecondition);
        EXPECT_EQ(pool->Trim().code(), StatusCode::kFailedPrecondition);
        event = {};
        pool.reset();
      });
      ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << " in " << round;
    }
  }
  ExpectNothingLeft();
}

TEST_F(EventPoolTest, ThreadsNeverShareAnEvent) {
  EventPool pool(device_, {.max_idle = 4});
  Mutex mutex;
  std::set<std::uint64_t> taken;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 2000; ++turn) {
        const PooledEvent event = Need(pool.Acquire());
        {
          MutexLock lock(mutex);
          EXPECT_TRUE(taken.insert(event.get().value).second);
        }
        MutexLock lock(mutex);
        taken.erase(event.get().value);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.stats().in_use, 0U);
  EXPECT_LE(device_->Live().size(), 4U);
}

TEST_F(EventPoolTest, CreatingAndDestroyingMayFailAndNothingLeaks) {
  {
    EventPool pool(device_, {.max_idle = 1});
    device_->FailNth(Primitive::kCreateEvent, 1, Internal("injected"));
    EXPECT_EQ(pool.Acquire().status().ToString(), "INTERNAL: injected");
    EXPECT_EQ(pool.stats().in_use, 0U);
    PooledEvent first = Need(pool.Acquire());
    PooledEvent second = Need(pool.Acquire());
    first = {};
    device_->FailNth(Primitive::kDestroyEvent, 1, Internal("injected"));
    second = {};
    EXPECT_EQ(device_->retries().size(), 1U);
    device_->FailNth(Primitive::kDestroyEvent, 2, Internal("injected"));
    EXPECT_FALSE(pool.Trim().ok());
  }
  ExpectNothingLeft();
}

}  // namespace
}  // namespace keel::memory
