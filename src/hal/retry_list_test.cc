#include "keel/hal/retry_list.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace keel::hal {
namespace {

// Fails `failures` times, then succeeds; notes each attempt.
RetryList::Entry Fails(const std::string& name, int failures, std::vector<std::string>* log) {
  auto left = std::make_shared<int>(failures);
  return {name, [name, left, log] {
            log->push_back(name);
            return (*left)-- > 0 ? Internal(name + " is not ready") : OkStatus();
          }};
}

TEST(RetryListTest, StartsEmptyAndDrainsToNothing) {
  RetryList list;
  EXPECT_TRUE(list.empty());
  EXPECT_TRUE(list.Drain().ok());
  std::vector<std::string> log;
  list.Add(Fails("a", 0, &log));
  EXPECT_EQ(list.size(), 1U);
  EXPECT_EQ(list.List(), std::vector<std::string>{"a"});
  EXPECT_TRUE(list.Drain().ok());
  EXPECT_TRUE(list.empty());
  EXPECT_TRUE(list.List().empty());
}

TEST(RetryListTest, TriesOldestFirst) {
  RetryList list;
  std::vector<std::string> log;
  for (const char* name : {"a", "b", "c"}) list.Add(Fails(name, 0, &log));
  EXPECT_TRUE(list.Drain().ok());
  EXPECT_EQ(log, (std::vector<std::string>{"a", "b", "c"}));
}

TEST(RetryListTest, TriesAgainWhileSomethingSucceeds) {
  RetryList list;
  std::vector<std::string> log;
  bool outer_gone = false;
  // The older depends on the newer, as a range does on the mapping in it.
  list.Add({"range", [&] {
              log.emplace_back("range");
              return outer_gone ? OkStatus() : FailedPrecondition("mapped");
            }});
  list.Add({"mapping", [&] {
              log.emplace_back("mapping");
              outer_gone = true;
              return OkStatus();
            }});
  EXPECT_TRUE(list.Drain().ok());
  EXPECT_EQ(log, (std::vector<std::string>{"range", "mapping", "range"}));
}

TEST(RetryListTest, StopsWithoutProgressAndReportsTheOldest) {
  RetryList list;
  std::vector<std::string> log;
  list.Add(Fails("good", 0, &log));
  list.Add(Fails("old", 9, &log));
  list.Add(Fails("new", 9, &log));
  const Status status = list.Drain();
  EXPECT_EQ(status.ToString(), "INTERNAL: 2 not given back yet: old: old is not ready");
  // One pass with progress, one without.
  EXPECT_EQ(log, (std::vector<std::string>{"good", "old", "new", "old", "new"}));
  EXPECT_EQ(list.List(), (std::vector<std::string>{"old", "new"}));
}

TEST(RetryListTest, KeepsTheOrderOverFailedDrains) {
  RetryList list;
  std::vector<std::string> log;
  list.Add(Fails("a", 1, &log));
  list.Add(Fails("b", 1, &log));
  EXPECT_FALSE(list.Drain().ok());
  list.Add(Fails("c", 0, &log));
  EXPECT_EQ(list.List(), (std::vector<std::string>{"a", "b", "c"}));
  log.clear();
  EXPECT_TRUE(list.Drain().ok());
  EXPECT_EQ(log, (std::vector<std::string>{"a", "b", "c"}));
}

TEST(RetryListTest, DropsWhatALostDeviceHeld) {
  RetryList list;
  int attempts = 0;
  list.Add({"lost", [&] {
              ++attempts;
              return DeviceLost("fault");
            }});
  EXPECT_TRUE(list.Drain().ok());
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(attempts, 1);
}

// When the entry of an unmap is dropped, what it kept is given back, and that may fail too.
class AddsWhenDropped {
 public:
  AddsWhenDropped(RetryList* list, std::vector<std::string>* log) : list_(list), log_(log) {}
  AddsWhenDropped(const AddsWhenDropped&) = delete;
  AddsWhenDropped& operator=(const AddsWhenDropped&) = delete;
  ~AddsWhenDropped() { list_->Add(Fails("kept", 0, log_)); }

 private:
  RetryList* list_;
  std::vector<std::string>* log_;
};

TEST(RetryListTest, AnEntryIsDroppedWithoutTheLockAndMayAdd) {
  RetryList list;
  std::vector<std::string> log;
  auto kept = std::make_shared<AddsWhenDropped>(&list, &log);
  list.Add({"unmap", [kept = std::move(kept), &log] {
              log.emplace_back("unmap");
              return OkStatus();
            }});
  EXPECT_TRUE(list.Drain().ok());
  EXPECT_EQ(log, (std::vector<std::string>{"unmap", "kept"}));
  EXPECT_TRUE(list.empty());
}

TEST(RetryListTest, AnAttemptRunsWithoutTheLock) {
  RetryList list;
  list.Add({"looks", [&] {
              // Under way, so no longer listed, but still counted.
              EXPECT_TRUE(list.List().empty());
              EXPECT_EQ(list.size(), 1U);
              return OkStatus();
            }});
  EXPECT_TRUE(list.Drain().ok());
}

TEST(RetryListTest, WhileAnotherThreadTriesTheRestDrainDoesNotClaimThatNothingIsLeft) {
  RetryList list;
  list.Add({"slow", [&] {
              Status elsewhere;
              std::thread other([&] { elsewhere = list.Drain(); });
              other.join();
              EXPECT_EQ(elsewhere.code(), StatusCode::kUnavailable) << elsewhere.ToString();
              return OkStatus();
            }});
  EXPECT_TRUE(list.Drain().ok());
}

TEST(RetryListTest, AbandonDropsEverythingUntriedAndSaysWhat) {
  RetryList list;
  std::vector<std::string> log;
  auto kept = std::make_shared<AddsWhenDropped>(&list, &log);
  list.Add({"unmap", [kept = std::move(kept)] { return Internal("no"); }});
  list.Add(Fails("other", 5, &log));
  EXPECT_EQ(list.Abandon(), (std::vector<std::string>{"unmap", "other", "kept"}));
  EXPECT_TRUE(list.empty());
  EXPECT_TRUE(log.empty());
}

TEST(RetryListTest, EveryEntryOfManyThreadsIsGivenBackOnce) {
  RetryList list;
  constexpr int kThreads = 4;
  constexpr int kEach = 500;
  std::atomic<int> successes{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        auto failures = std::make_shared<int>(i % 3);
        list.Add({"x", [&successes, failures] {
                    if ((*failures)-- > 0) return Internal("not yet");
                    ++successes;
                    return OkStatus();
                  }});
        if (i % 7 == 0) (void)list.Drain();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 3 && !list.Drain().ok(); ++i) continue;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(successes.load(), kThreads * kEach);
}

}  // namespace
}  // namespace keel::hal
