#include "task/nap.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/soon_test.h"

namespace keel::task {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(NapTest, ARingBeforeItIsNotLostAndCountsOnce) {
  Nap nap;
  nap.Ring();
  nap.Ring();
  nap.Sleep();
  EXPECT_FALSE(nap.SleepFor(milliseconds(1)));
  nap.Ring();
  EXPECT_TRUE(nap.SleepFor(seconds(60)));
}

TEST(NapTest, LastsAsLongAsItShould) {
  Nap nap;
  const auto began = std::chrono::steady_clock::now();
  EXPECT_FALSE(nap.SleepFor(milliseconds(20)));
  EXPECT_GE(std::chrono::steady_clock::now() - began, milliseconds(20));
}

TEST(NapTest, AnotherThreadEndsIt) {
  Nap nap;
  std::atomic<int> woken{0};
  std::thread sleeper([&] {
    nap.Sleep();
    woken = 1;
    if (nap.SleepFor(seconds(60))) woken = 2;
  });
  EXPECT_EQ(woken, 0);
  nap.Ring();
  EXPECT_TRUE(Soon([&] { return woken == 1; }));
  nap.Ring();
  EXPECT_TRUE(Soon([&] { return woken == 2; }));
  sleeper.join();
}

}  // namespace
}  // namespace keel::task
