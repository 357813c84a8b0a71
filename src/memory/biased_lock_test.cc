#include "memory/biased_lock.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace keel::memory {
namespace {

TEST(BiasedLock, OwnerAndOthersNeverMeetInside) {
  BiasedLock lock;
  std::uint64_t plain = 0;  // torn or lost updates show here; a race shows under ThreadSanitizer
  constexpr int kOwner = 200'000;
  constexpr int kOther = 200;
  std::atomic<bool> go{false};
  std::thread owner([&] {
    while (!go) std::this_thread::yield();
    for (int i = 0; i < kOwner; ++i) {
      lock.OwnerLock();
      ++plain;
      lock.OwnerUnlock();
    }
  });
  std::vector<std::thread> others;
  for (int t = 0; t < 3; ++t) {
    others.emplace_back([&] {
      go = true;
      for (int i = 0; i < kOther; ++i) {
        lock.OtherLock();
        const std::uint64_t seen = plain;
        std::this_thread::yield();
        plain = seen + 1;
        lock.OtherUnlock();
      }
    });
  }
  owner.join();
  for (std::thread& other : others) other.join();
  EXPECT_EQ(plain, kOwner + 3u * kOther);
}

TEST(BiasedLock, AnOtherWaitsForTheOwnerToLeave) {
  BiasedLock lock;
  lock.OwnerLock();
  std::atomic<bool> inside{false};
  std::thread other([&] {
    lock.OtherLock();
    inside = true;
    lock.OtherUnlock();
  });
  // It cannot be in while the owner is; that it gets in afterwards is what join() waits for.
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(inside);
    std::this_thread::yield();
  }
  lock.OwnerUnlock();
  other.join();
  EXPECT_TRUE(inside);
}

}  // namespace
}  // namespace keel::memory
