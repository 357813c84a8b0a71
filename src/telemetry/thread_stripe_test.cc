#include "telemetry/thread_stripe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <latch>
#include <set>
#include <thread>
#include <vector>

#include "base/forked_child_test.h"

namespace keel::telemetry {
namespace {

// Threads that have asked and live until they are told to end.
class LivingThreads {
 public:
  explicit LivingThreads(std::size_t count)
      : stripes_(count), asked_(static_cast<std::ptrdiff_t>(count)) {
    for (std::size_t t = 0; t < count; ++t) {
      threads_.emplace_back([this, t] {
        stripes_[t] = ThreadStripe();
        asked_.count_down();
        end_.wait();
        if (stripes_[t] != ThreadStripe()) stripes_[t] = internal::kNoStripe;
      });
    }
    asked_.wait();
  }
  // Their stripes; one that changed meanwhile is none.
  const std::vector<std::size_t>& End() {
    end_.count_down();
    for (std::thread& thread : threads_) thread.join();
    return stripes_;
  }
  const std::vector<std::size_t>& stripes() const { return stripes_; }

 private:
  std::vector<std::size_t> stripes_;
  std::latch asked_;
  std::latch end_{1};
  std::vector<std::thread> threads_;
};

// Twice: what the first ones had is there again.
TEST(ThreadStripeTest, EachIsOfOneLivingThreadAndTheRestIsShared) {
  const std::size_t own = ThreadStripe();
  ASSERT_LT(own, kOwnedStripes);
  for (int round = 0; round < 2; ++round) {
    LivingThreads threads(kOwnedStripes + kSharedStripes);
    std::set<std::size_t> owned{own};
    std::set<std::size_t> shared;
    for (const std::size_t stripe : threads.End()) {
      ASSERT_LT(stripe, kOwnedStripes + kSharedStripes);
      if (stripe < kOwnedStripes) {
        EXPECT_TRUE(owned.insert(stripe).second) << stripe << " has two owners";
      } else {
        shared.insert(stripe);
      }
    }
    EXPECT_EQ(owned.size(), kOwnedStripes);
    EXPECT_EQ(shared.size(), kSharedStripes);
    EXPECT_EQ(ThreadStripe(), own);
  }
}

TEST(ThreadStripeTest, OneThatEndedLeavesItsStripeToTheNext) {
  std::set<std::size_t> seen;
  for (std::size_t t = 0; t < 2 * kOwnedStripes; ++t) {
    std::thread([&] { seen.insert(ThreadStripe()); }).join();
  }
  EXPECT_EQ(seen.size(), 1U);
  EXPECT_LT(*seen.begin(), kOwnedStripes);
}

// Its destructor runs after that which gives the stripe back, because it was made before.
struct AskedAtTheEnd {
  ~AskedAtTheEnd() {
    if (answer == nullptr) return;
    *answer = ThreadStripe();
    std::thread([this] { *next = ThreadStripe(); }).join();
  }
  std::size_t* answer = nullptr;
  std::size_t* next = nullptr;
};
thread_local AskedAtTheEnd asked_at_the_end;

TEST(ThreadStripeTest, AfterItsEndAThreadSharesOne) {
  std::size_t first = 0;
  std::size_t last = 0;
  std::size_t next = 0;
  std::thread([&] {
    asked_at_the_end.answer = &last;
    asked_at_the_end.next = &next;
    first = ThreadStripe();
  }).join();
  EXPECT_LT(first, kOwnedStripes);
  EXPECT_GE(last, kOwnedStripes);
  EXPECT_LT(last, kOwnedStripes + kSharedStripes);
  EXPECT_EQ(next, first) << "it was free by then";
}

TEST(ThreadStripeTest, AChildLeavesAloneWhatItsParentsThreadsHad) {
  const std::size_t own = ThreadStripe();
  LivingThreads threads(5);
  const int status = InForkedChild([&] {
    EXPECT_EQ(ThreadStripe(), own);
    if (!kForksAmongBusyThreads) return;  // starts no threads
    std::size_t stripe = own;
    std::thread([&] { stripe = ThreadStripe(); }).join();
    EXPECT_LT(stripe, kOwnedStripes);
    EXPECT_NE(stripe, own);
    EXPECT_EQ(std::count(threads.stripes().begin(), threads.stripes().end(), stripe), 0);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  threads.End();
}

}  // namespace
}  // namespace keel::telemetry
