#include "keel/telemetry/event_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "telemetry/thread_stripe.h"

namespace keel::telemetry {
namespace {

using ::testing::HasSubstr;

MemoryEvent Numbered(std::uint64_t number, std::uint64_t stream = 0) {
  return {.action = EventAction::kAlloc, .size = Bytes(number), .stream = stream};
}

void EnableOk(EventLog& log, std::size_t capacity, bool stacks = false) {
  const Status status = log.Enable({.capacity = capacity, .stacks = stacks});
  ASSERT_TRUE(status.ok()) << status.ToString();
}

TEST(EventLogTest, ActionsHavePyTorchsNames) {
  const std::pair<EventAction, const char*> names[] = {
      {EventAction::kAlloc, "alloc"},
      {EventAction::kFreeRequested, "free_requested"},
      {EventAction::kFreeCompleted, "free_completed"},
      {EventAction::kSegmentAlloc, "segment_alloc"},
      {EventAction::kSegmentFree, "segment_free"},
      {EventAction::kSegmentMap, "segment_map"},
      {EventAction::kSegmentUnmap, "segment_unmap"},
      {EventAction::kOom, "oom"},
      {EventAction::kSnapshot, "snapshot"},
  };
  for (const auto& [action, name] : names) EXPECT_EQ(EventActionName(action), name);
}

TEST(EventLogTest, OffRecordsNothing) {
  EventLog log;
  EXPECT_FALSE(log.enabled());
  log.Record(Numbered(1));
  EXPECT_TRUE(log.Read().empty());
  EXPECT_EQ(log.recorded(), 0U);
}

TEST(EventLogTest, EventsComeBackWithTheirTime) {
  EventLog log;
  EnableOk(log, 10);
  const TagId tag = InternTag("event log test");
  const std::int64_t before = EventLog::Now();
  log.Record({.action = EventAction::kSegmentMap,
              .device = static_cast<hal::DeviceId>(3),
              .address = DeviceAddress(0x1000),
              .size = 2_MiB,
              .stream = 7,
              .tag = tag});
  log.Record({.action = EventAction::kOom, .address = DeviceAddress(512), .size = 1_GiB});
  const std::int64_t after = EventLog::Now();
  const std::vector<MemoryEvent> events = log.Read();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].action, EventAction::kSegmentMap);
  EXPECT_EQ(events[0].device, static_cast<hal::DeviceId>(3));
  EXPECT_EQ(events[0].address, DeviceAddress(0x1000));
  EXPECT_EQ(events[0].size, 2_MiB);
  EXPECT_EQ(events[0].stream, 7U);
  EXPECT_EQ(events[0].tag, tag);
  EXPECT_EQ(events[0].stack, StackId::kNone);
  EXPECT_EQ(events[1].device_free(), 512_B);
  constexpr std::int64_t kMicrosecond = 1000;
  EXPECT_GE(events[0].time_ns, before - kMicrosecond);
  EXPECT_GE(events[1].time_ns, events[0].time_ns);
  EXPECT_LE(events[1].time_ns, after + kMicrosecond);
  EXPECT_EQ(log.Read(1).size(), 1U);
  EXPECT_EQ(log.Read(1)[0].action, EventAction::kOom);
}

TEST(EventLogTest, KeepsExactlyTheNewest) {
  for (const std::size_t capacity : {1U, 1000U, 1023U, 1024U, 1025U, 3000U}) {
    EventLog log;
    EnableOk(log, capacity);
    const std::uint64_t count = capacity * 7 + 5;
    for (std::uint64_t i = 0; i < count; ++i) log.Record(Numbered(i));
    EXPECT_EQ(log.recorded(), count);
    const std::vector<MemoryEvent> events = log.Read();
    ASSERT_EQ(events.size(), capacity);
    for (std::size_t i = 0; i < capacity; ++i) {
      ASSERT_EQ(events[i].size.count(), count - capacity + i);
    }
  }
}

TEST(EventLogTest, ABadCapacityIsRefused) {
  EventLog log;
  EXPECT_THAT(std::string(log.Enable({.capacity = 0}).message()), HasSubstr("0 events"));
  EXPECT_FALSE(log.Enable({.capacity = EventLog::kMaxCapacity + 1}).ok());
  EXPECT_FALSE(log.enabled());
}

TEST(EventLogTest, DisableKeepsAndClearForgets) {
  EventLog log;
  EnableOk(log, 1000);
  for (std::uint64_t i = 0; i < 600; ++i) log.Record(Numbered(i));
  log.Disable();
  log.Record(Numbered(600));
  EXPECT_EQ(log.Read().size(), 600U);
  // A smaller capacity drops the oldest; a larger one brings nothing back.
  EnableOk(log, 10);
  EXPECT_EQ(log.Read().front().size.count(), 590U);
  EnableOk(log, 1000);
  EXPECT_EQ(log.Read().back().size.count(), 599U);
  log.Clear();
  EXPECT_TRUE(log.enabled());
  EXPECT_TRUE(log.Read().empty());
  EXPECT_EQ(log.recorded(), 0U);
  log.Record(Numbered(601));
  EXPECT_EQ(log.Read().size(), 1U);
}

// Of each thread a contiguous piece up to its last event, in order, and as many as promised.
TEST(EventLogTest, ManyThreadsLeaveNoHoles) {
  constexpr std::uint64_t kThreads = 8;
  constexpr std::uint64_t kEach = 6000;
  constexpr std::size_t kCapacity = 5000;
  EventLog log;
  EnableOk(log, kCapacity);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&log, t] {
      // Some are slower than others.
      const std::uint64_t count = t % 2 == 0 ? kEach : kEach / 50;
      for (std::uint64_t i = 0; i < count; ++i) log.Record(Numbered(i, t));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<MemoryEvent> events = log.Read();
  ASSERT_EQ(events.size(), kCapacity);
  std::map<std::uint64_t, std::uint64_t> last;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (i > 0) {
      ASSERT_LE(events[i - 1].time_ns, events[i].time_ns);
    }
    const auto [entry, first] = last.emplace(events[i].stream, events[i].size.count());
    if (first) continue;
    ASSERT_EQ(events[i].size.count(), entry->second + 1) << "of thread " << events[i].stream;
    entry->second = events[i].size.count();
  }
  for (const auto& [thread, number] : last) {
    EXPECT_EQ(number, (thread % 2 == 0 ? kEach : kEach / 50) - 1) << "of thread " << thread;
  }
}

// A thread that stopped long ago still has its unfinished chunk: those events are older than ones
// that are gone, and must not come back as if nothing had been between.
TEST(EventLogTest, OldEventsOfAnIdleThreadGoWithTheirTime) {
  EventLog log;
  EnableOk(log, 300);
  log.Record(Numbered(0, 2));  // so that the other one's stripe is not this one's later
  std::thread([&log] {
    for (std::uint64_t i = 0; i < 20; ++i) log.Record(Numbered(i, 1));
  }).join();
  for (std::uint64_t i = 0; i < 5000; ++i) log.Record(Numbered(i, 2));
  EXPECT_EQ(log.Read().size(), 300U);
  // Also when more is asked for later than was kept.
  EnableOk(log, 100'000);
  const std::vector<MemoryEvent> events = log.Read();
  EXPECT_GE(events.size(), 300U);
  for (const MemoryEvent& event : events) EXPECT_EQ(event.stream, 2U);
}

// Threads in step fill their chunks at the same time; dropping one of those puts a hole into the
// time of all the others. There must be enough behind it.
TEST(EventLogTest, ThreadsInStepKeepTheNewest) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kCount = kThreads * 1024 * 2;
  constexpr std::size_t kCapacity = 1024;
  EventLog log;
  EnableOk(log, kCapacity);
  std::atomic<std::uint64_t> turn{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = t; i < kCount; i += kThreads) {
        while (turn.load(std::memory_order_acquire) != i) std::this_thread::yield();
        log.Record(Numbered(i, t));
        turn.store(i + 1, std::memory_order_release);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<MemoryEvent> events = log.Read();
  ASSERT_EQ(events.size(), kCapacity);
  for (std::size_t i = 0; i < kCapacity; ++i) {
    ASSERT_EQ(events[i].size.count(), kCount - kCapacity + i);
  }
}

// More of them than there are stripes that one thread has alone, all alive at once, twice.
TEST(EventLogTest, MoreThreadsThanStripesLoseNothing) {
  constexpr std::uint64_t kThreads = kOwnedStripes + 2 * kSharedStripes;
  constexpr std::uint64_t kEach = 2500;  // more than two chunks
  EventLog log;
  EnableOk(log, 2 * kThreads * kEach);
  for (std::uint64_t round = 0; round < 2; ++round) {
    std::latch all(kThreads);
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (std::uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        log.Record(Numbered(0, round * kThreads + t));
        all.arrive_and_wait();
        for (std::uint64_t i = 1; i < kEach; ++i) {
          log.Record(Numbered(i, round * kThreads + t));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(log.recorded(), 2 * kThreads * kEach);
  std::map<std::uint64_t, std::uint64_t> next;
  for (const MemoryEvent& event : log.Read()) {
    ASSERT_EQ(event.size.count(), next[event.stream]++) << "of thread " << event.stream;
  }
  EXPECT_EQ(next.size(), 2 * kThreads);
  for (const auto& [thread, count] : next) EXPECT_EQ(count, kEach) << "of thread " << thread;
}

// Made before the thread's first event, so destroyed after whatever that event left to be
// destroyed.
struct RecordsAtTheEnd {
  ~RecordsAtTheEnd() {
    for (std::uint64_t i = 10; log != nullptr && i < 12; ++i) log->Record(Numbered(i, 1));
  }
  EventLog* log = nullptr;
};
thread_local RecordsAtTheEnd records_at_the_end;

TEST(EventLogTest, TheLastEventsOfAThreadAreKept) {
  EventLog log;
  EnableOk(log, 10);
  std::thread([&log] {
    records_at_the_end.log = &log;
    log.Record(Numbered(9, 1));
  }).join();
  log.Record(Numbered(12, 1));
  const std::vector<MemoryEvent> events = log.Read();
  ASSERT_EQ(events.size(), 4U);
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].size.count(), 9 + i);
}

// One thread records numbers, another records which of them it has seen. A reader never sees a
// consequence without its cause, nor before it. In a large crowd the other's stripe is a shared
// one.
void ReadAtOneMoment(std::size_t crowd_size) {
  constexpr std::uint64_t kCause = 1;
  constexpr std::uint64_t kConsequence = 2;
  EventLog log;
  EnableOk(log, 20'000);
  std::atomic<std::uint64_t> published{0};
  std::atomic<bool> done{false};
  std::thread cause([&] {
    for (std::uint64_t i = 1; !done.load(std::memory_order_relaxed); ++i) {
      log.Record(Numbered(i, kCause));
      published.store(i, std::memory_order_release);
    }
  });
  while (published.load() == 0) std::this_thread::yield();
  // Others in between, so that a reader takes its time from the one to the other.
  std::latch crowd_is_there(static_cast<std::ptrdiff_t>(crowd_size));
  std::latch crowd_may_go(1);
  std::vector<std::thread> crowd;
  crowd.reserve(crowd_size);
  for (std::size_t t = 0; t < crowd_size; ++t) {
    crowd.emplace_back([&] {
      for (std::uint64_t n = 0; n < 200; ++n) log.Record(Numbered(n));
      crowd_is_there.count_down();
      crowd_may_go.wait();
    });
  }
  crowd_is_there.wait();
  std::thread consequence([&] {
    EXPECT_EQ(ThreadStripe() >= kOwnedStripes, crowd_size >= kOwnedStripes);
    while (!done.load(std::memory_order_relaxed)) {
      log.Record(Numbered(published.load(std::memory_order_acquire), kConsequence));
    }
  });
  for (int i = 0; i < 50; ++i) {
    std::uint64_t last_cause = 0;
    for (const MemoryEvent& event : log.Read()) {
      const std::uint64_t number = event.size.count();
      // Until the first cause, those before it are older than what is read.
      if (event.stream == kCause) {
        EXPECT_TRUE(last_cause == 0 || number == last_cause + 1) << number << " " << last_cause;
        last_cause = number;
      } else if (event.stream == kConsequence && last_cause != 0) {
        EXPECT_GE(last_cause, number);
      }
    }
    if (::testing::Test::HasFailure()) break;
  }
  done = true;
  cause.join();
  consequence.join();
  crowd_may_go.count_down();
  for (std::thread& thread : crowd) thread.join();
}

TEST(EventLogTest, ReadingIsAtOneMoment) { ReadAtOneMoment(40); }
TEST(EventLogTest, ReadingIsAtOneMomentInACrowd) { ReadAtOneMoment(kOwnedStripes); }

TEST(EventLogTest, SwitchesAtAnyTime) {
  EventLog log;
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (std::uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; !done.load(); ++i) log.Record(Numbered(i, t));
    });
  }
  for (int i = 0; i < 60; ++i) {
    EnableOk(log, i % 3 == 0 ? 100 : 2000, i % 20 == 0);
    if (i % 5 == 0) log.Clear();
    EXPECT_LE(log.Read().size(), 2000U);
    log.Disable();
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  log.Clear();
  EXPECT_TRUE(log.Read().empty());
}

TEST(EventLogTest, AScopesStackIsThatOfItsEvents) {
  EventLog log;
  for (const bool stacks : {false, true}) {
    EnableOk(log, 10, stacks);
    log.Clear();
    {
      const ScopedStack scope(ForeignStack(3));
      log.Record({});
    }
    log.Record({});
    const std::vector<MemoryEvent> events = log.Read();
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[0].stack, ForeignStack(3));
    EXPECT_EQ(events[1].stack != StackId::kNone, stacks);
    EXPECT_FALSE(IsForeign(events[1].stack));
  }
}

TEST(EventLogTest, StacksAreOfTheCallerAndShared) {
  EventLog log;
  EnableOk(log, 100, true);
  for (std::uint64_t i = 0; i < 3; ++i) log.Record(Numbered(i));
  log.Record(Numbered(3));
  const std::vector<MemoryEvent> events = log.Read();
  ASSERT_EQ(events.size(), 4U);
  EXPECT_NE(events[0].stack, StackId::kNone);
  EXPECT_EQ(events[0].stack, events[2].stack);
  EXPECT_NE(events[0].stack, events[3].stack);
  for (const Frame& frame : ReadStack(events[0].stack)) {
    EXPECT_EQ(frame.function.find("RecordAlways"), std::string::npos);
  }
}

TEST(EventLogTest, TheGlobalLogIsOne) {
  EXPECT_EQ(&EventLog::Global(), &EventLog::Global());
  EXPECT_FALSE(EventLog::Global().enabled());
}

}  // namespace
}  // namespace keel::telemetry
