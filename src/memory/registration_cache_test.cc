#include "keel/memory/registration_cache.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/forked_child_test.h"
#include "hal/sim_devices_test.h"
#include "memory/every_call_fails_test.h"

namespace keel::memory {
namespace {

using hal::IsOk;
using hal::Need;

constexpr std::size_t kHostPage = 4096;

// Pages that can be unmapped under the cache's eyes.
class Pages {
 public:
  explicit Pages(std::size_t count)
      : size_(count * kHostPage),
        start_(static_cast<std::byte*>(
            mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { munmap(start_, size_); }
  std::byte* page(std::size_t index) const { return start_ + index * kHostPage; }

 private:
  std::size_t size_;
  std::byte* start_;
};

class RegistrationCacheTest : public hal::SimDevicesTest {
 protected:
  bool Pinned(const void* pointer) { return inner_->GetHostAddress(pointer).ok(); }

  Pages pages_{64};
};

TEST_F(RegistrationCacheTest, ARangeThatIsKnownCostsNoDriverCall) {
  {
    RegistrationCache cache(device_);
    EXPECT_FALSE(cache.Find(pages_.page(0), 1_B));
    {
      const RegistrationLease lease = Need(cache.Lease(pages_.page(0) + 100, Bytes(3 * kHostPage)));
    }
    EXPECT_TRUE(Pinned(pages_.page(3))) << "whole pages, kept after the lease";
    device_->ResetCounts();
    {
      const RegistrationLease inside = Need(cache.Lease(pages_.page(1), Bytes(2 * kHostPage)));
    }
    EXPECT_TRUE(cache.Find(pages_.page(0), Bytes(4 * kHostPage)));
    EXPECT_FALSE(cache.Find(pages_.page(0), Bytes(4 * kHostPage + 1)));
    EXPECT_EQ(device_->calls(), 0U);
    const RegistrationCache::Stats stats = cache.stats();
    EXPECT_EQ(stats.ranges, 1U);
    EXPECT_EQ(stats.bytes, Bytes(4 * kHostPage));
    EXPECT_EQ(stats.registrations, 1U);
    EXPECT_EQ(stats.hits, 2U);
  }
  ExpectNothingLeft();
  EXPECT_FALSE(Pinned(pages_.page(0)));
}

TEST_F(RegistrationCacheTest, OverlappingRangesBecomeOne) {
  RegistrationCache cache(device_);
  {
    const auto lease = Need(cache.Lease(pages_.page(2), Bytes(2 * kHostPage)));
  }
  {
    const auto lease = Need(cache.Lease(pages_.page(6), Bytes(2 * kHostPage)));
  }
  EXPECT_EQ(cache.stats().ranges, 2U);
  {
    const auto lease = Need(cache.Lease(pages_.page(3), Bytes(4 * kHostPage)));
  }
  EXPECT_EQ(cache.stats().ranges, 1U);
  EXPECT_EQ(cache.stats().bytes, Bytes(6 * kHostPage));
  EXPECT_EQ(cache.stats().merges, 2U);
  EXPECT_TRUE(cache.Find(pages_.page(2), Bytes(6 * kHostPage)));
  EXPECT_EQ(device_->Live().size(), 1U);
  // Neighbours that only touch stay two.
  {
    const auto lease = Need(cache.Lease(pages_.page(8), Bytes(kHostPage)));
  }
  EXPECT_EQ(cache.stats().ranges, 2U);
}

TEST_F(RegistrationCacheTest, ARangeThatIsHeldIsNotReplaced) {
  RegistrationCache cache(device_);
  const auto held = Need(cache.Lease(pages_.page(2), Bytes(2 * kHostPage)));
  const Status status = cache.Lease(pages_.page(3), Bytes(4 * kHostPage)).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status.ToString();
  EXPECT_TRUE(IsOk(cache.Trim()));
  EXPECT_TRUE(Pinned(pages_.page(2)));
}

TEST_F(RegistrationCacheTest, TheLimitHoldsAndRoomIsMadeOffTheHotPath) {
  RegistrationCache cache(device_, {.limit = Bytes(8 * kHostPage)});
  {
    const auto oldest = Need(cache.Lease(pages_.page(0), Bytes(4 * kHostPage)));
  }
  const auto held = Need(cache.Lease(pages_.page(10), Bytes(4 * kHostPage)));
  device_->ResetCounts();
  const Status status = cache.Lease(pages_.page(20), Bytes(2 * kHostPage)).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(device_->calls(), 0U) << "nothing is unpinned behind a request";
  ASSERT_TRUE(IsOk(cache.Maintain()));
  EXPECT_FALSE(Pinned(pages_.page(0)));
  EXPECT_TRUE(Pinned(pages_.page(10)));
  EXPECT_EQ(cache.stats().evictions, 1U);
  EXPECT_TRUE(IsOk(cache.Lease(pages_.page(20), Bytes(2 * kHostPage))));
}

TEST_F(RegistrationCacheTest, OnlyWhatIsLackingIsMarked) {
  RegistrationCache cache(device_, {.limit = Bytes(8 * kHostPage)});
  for (const std::size_t first : {0, 10, 20}) {
    ASSERT_TRUE(IsOk(cache.Lease(pages_.page(first), Bytes(2 * kHostPage))));
  }
  // Nothing would make room for it.
  EXPECT_EQ(cache.Lease(pages_.page(30), Bytes(9 * kHostPage)).status().code(),
            StatusCode::kResourceExhausted);
  ASSERT_TRUE(IsOk(cache.Maintain()));
  EXPECT_EQ(cache.stats().evictions, 0U);
  // It lacks two pages of four.
  EXPECT_EQ(cache.Lease(pages_.page(30), Bytes(4 * kHostPage)).status().code(),
            StatusCode::kResourceExhausted);
  ASSERT_TRUE(IsOk(cache.Maintain()));
  EXPECT_EQ(cache.stats().evictions, 1U);
  EXPECT_FALSE(Pinned(pages_.page(0)));
  ASSERT_TRUE(IsOk(cache.Lease(pages_.page(30), Bytes(4 * kHostPage))));
  // It would fit alone, but not with what it overlaps: that must go.
  EXPECT_EQ(cache.Lease(pages_.page(33), Bytes(7 * kHostPage)).status().code(),
            StatusCode::kResourceExhausted);
  ASSERT_TRUE(IsOk(cache.Maintain()));
  EXPECT_TRUE(IsOk(cache.Lease(pages_.page(33), Bytes(7 * kHostPage))));
}

TEST_F(RegistrationCacheTest, WhatCouldNotBeUnpinnedIsTriedAgain) {
  RegistrationCache cache(device_, {.limit = Bytes(2 * kHostPage)});
  ASSERT_TRUE(IsOk(cache.Lease(pages_.page(0), Bytes(2 * kHostPage))));
  EXPECT_FALSE(cache.Lease(pages_.page(10), Bytes(2 * kHostPage)).ok());
  device_->FailNth(hal::Primitive::kUnregisterHost, 1, Internal("injected"));
  EXPECT_EQ(cache.Maintain().code(), StatusCode::kInternal);
  EXPECT_TRUE(Pinned(pages_.page(0)));
  EXPECT_TRUE(IsOk(cache.Maintain()));
  EXPECT_FALSE(Pinned(pages_.page(0)));
}

TEST_F(RegistrationCacheTest, MemoryThatGoesIsUnpinnedFirst) {
  RegistrationCache cache(device_);
  {
    const auto lease = Need(cache.Lease(pages_.page(0), Bytes(2 * kHostPage)));
  }
  {
    const auto lease = Need(cache.Lease(pages_.page(4), Bytes(2 * kHostPage)));
  }
  {
    const auto lease = Need(cache.Lease(pages_.page(8), Bytes(2 * kHostPage)));
  }
  ASSERT_TRUE(IsOk(cache.Invalidate(pages_.page(1), Bytes(4 * kHostPage))));
  EXPECT_FALSE(Pinned(pages_.page(0)));
  EXPECT_FALSE(Pinned(pages_.page(4)));
  EXPECT_TRUE(Pinned(pages_.page(8)));
  EXPECT_TRUE(IsOk(MemoryGone(pages_.page(9), Bytes(1))));
  EXPECT_FALSE(Pinned(pages_.page(8)));
  EXPECT_EQ(cache.stats().ranges, 0U);
}

TEST_F(RegistrationCacheTest, MemoryThatStaysPinnedIsSaid) {
  EXPECT_TRUE(IsOk(MemoryGone(pages_.page(0), Bytes(kHostPage)))) << "without a cache";
  RegistrationCache cache(device_);
  RegistrationCache other(peer_);
  EXPECT_TRUE(IsOk(MemoryGone(nullptr, Bytes(0))));
  ASSERT_TRUE(IsOk(cache.Lease(pages_.page(0), Bytes(kHostPage))));
  ASSERT_TRUE(IsOk(other.Lease(pages_.page(2), Bytes(kHostPage))));
  EXPECT_TRUE(IsLentByACache(pages_.page(1), Bytes(kHostPage + 1)));
  EXPECT_FALSE(IsLentByACache(pages_.page(1), Bytes(kHostPage)));
  device_->FailNth(hal::Primitive::kUnregisterHost, 1, Internal("injected"));
  EXPECT_EQ(MemoryGone(pages_.page(0), Bytes(4 * kHostPage)).code(), StatusCode::kInternal);
  EXPECT_TRUE(Pinned(pages_.page(0)));
  EXPECT_FALSE(Pinned(pages_.page(2))) << "the other caches are told all the same";
  EXPECT_TRUE(IsOk(MemoryGone(pages_.page(0), Bytes(4 * kHostPage))));
  EXPECT_FALSE(IsLentByACache(pages_.page(0), Bytes(4 * kHostPage)));
}

TEST_F(RegistrationCacheTest, MemoryThatGoesWaitsForWhoHoldsIt) {
  RegistrationCache cache(device_);
  RegistrationLease lease = Need(cache.Lease(pages_.page(0), Bytes(2 * kHostPage)));
  std::atomic<bool> released{false};
  std::atomic<bool> started{false};
  std::thread owner([&] {
    started = true;
    EXPECT_TRUE(IsOk(cache.Invalidate(pages_.page(0), Bytes(kHostPage))));
    EXPECT_TRUE(released.load()) << "unpinned under a lease";
  });
  while (!started) std::this_thread::yield();
  EXPECT_TRUE(Pinned(pages_.page(0)));
  released = true;
  lease = {};
  owner.join();
  EXPECT_FALSE(Pinned(pages_.page(0)));
}

TEST_F(RegistrationCacheTest, OnlyRangesThatComeAgainArePinned) {
  RegistrationCache cache(device_, {.pin_after = 3});
  EXPECT_FALSE(cache.LeaseIfSeen(pages_.page(0), Bytes(kHostPage)));
  EXPECT_FALSE(cache.LeaseIfSeen(pages_.page(0), Bytes(kHostPage)));
  EXPECT_FALSE(cache.LeaseIfSeen(pages_.page(5), Bytes(kHostPage)));
  EXPECT_EQ(device_->calls(), 0U);
  EXPECT_TRUE(cache.LeaseIfSeen(pages_.page(0), Bytes(kHostPage)));
  EXPECT_TRUE(Pinned(pages_.page(0)));
}

TEST_F(RegistrationCacheTest, WhatCannotBePinnedIsAnErrorThatSaysSo) {
  RegistrationCache cache(device_);
  EXPECT_EQ(cache.Lease(nullptr, 1_KiB).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(cache.Lease(pages_.page(0), 0_B).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(cache.Lease(pages_.page(0), Bytes(~0ULL)).status().code(),
            StatusCode::kInvalidArgument);
  ASSERT_TRUE(IsOk(inner_->RegisterHost(pages_.page(3), Bytes(kHostPage))));
  EXPECT_EQ(cache.Lease(pages_.page(2), Bytes(4 * kHostPage)).status().code(),
            StatusCode::kAlreadyExists);
  EXPECT_EQ(cache.stats().bytes, 0_B);
  ASSERT_TRUE(IsOk(inner_->UnregisterHost(pages_.page(3))));
}

TEST_F(RegistrationCacheTest, EveryCallMayFailAndNothingLeaks) {
  const auto use = [this](RegistrationCache& cache) -> Status {
    KEEL_TRY(cache.Lease(pages_.page(0), Bytes(2 * kHostPage)).status());
    KEEL_TRY(cache.Lease(pages_.page(1), Bytes(2 * kHostPage)).status());
    KEEL_TRY(cache.Lease(pages_.page(8), Bytes(2 * kHostPage)).status());
    KEEL_TRY(cache.Invalidate(pages_.page(0), Bytes(kHostPage)));
    return cache.Trim();
  };
  const auto scenario = [&] {
    RegistrationCache cache(device_);
    Status status = use(cache);
    if (!status.ok()) {
      EXPECT_TRUE(IsOk(use(cache))) << "the same cache, after " << status.ToString();
    }
    EXPECT_EQ(cache.stats().bytes, 0_B);
    return status;
  };
  EXPECT_EQ(SweepCalls(*device_, scenario, [this] { ExpectNothingLeft(); }), 6U);
}

// A12
TEST_F(RegistrationCacheTest, AfterALossNothingIsPinnedAndRequestsSaySo) {
  RegistrationCache cache(device_);
  {
    const auto lease = Need(cache.Lease(pages_.page(0), Bytes(kHostPage)));
  }
  controls().Lose("a fault");
  EXPECT_EQ(cache.Lease(pages_.page(0), Bytes(kHostPage)).status().code(), StatusCode::kDeviceLost);
  EXPECT_FALSE(cache.Find(pages_.page(0), Bytes(kHostPage)));
  EXPECT_EQ(cache.stats().bytes, 0_B);
  EXPECT_TRUE(IsOk(cache.Invalidate(pages_.page(0), Bytes(kHostPage))));
}

// A9
TEST_F(RegistrationCacheTest, AForkedChildIsRefusedAndLeavesTheParentsPinsAlone) {
  auto cache = std::make_unique<RegistrationCache>(device_);
  RegistrationLease lease = Need(cache->Lease(pages_.page(0), Bytes(kHostPage)));
  std::optional<WorkingThread> busy([&] {
    for (unsigned page = 2; page < 10; page += 2) {
      static_cast<void>(cache->LeaseIfSeen(pages_.page(page), Bytes(kHostPage)));
    }
    static_cast<void>(cache->Trim().ok());
  });
  for (int round = 0; round < kForks; ++round) {
    const int status = InForkedChild([&] {
      EXPECT_EQ(cache->Lease(pages_.page(0), Bytes(kHostPage)).status().code(),
                StatusCode::kFailedPrecondition);
      EXPECT_EQ(cache->Invalidate(pages_.page(0), Bytes(kHostPage)).code(),
                StatusCode::kFailedPrecondition);
      EXPECT_TRUE(IsOk(MemoryGone(pages_.page(0), Bytes(kHostPage))));
      lease = {};
      cache.reset();
    });
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << " in " << round;
  }
  busy.reset();
  EXPECT_TRUE(Pinned(pages_.page(0)));
  lease = {};
  cache.reset();
  ExpectNothingLeft();
}

TEST_F(RegistrationCacheTest, ThreadsThatPinAndUnpinTheSamePagesStayWithinTheLimit) {
  RegistrationCache cache(device_, {.limit = Bytes(24 * kHostPage)});
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (unsigned thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      std::uint64_t random = thread + 1;
      const auto below = [&](std::uint64_t n) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        return (random >> 33) % n;
      };
      for (int turn = 0; turn < 400; ++turn) {
        const std::size_t first = below(56);
        const Bytes size((1 + below(8)) * kHostPage);
        const Result<RegistrationLease> lease = cache.Lease(pages_.page(first), size);
        EXPECT_LE(cache.stats().bytes, Bytes(24 * kHostPage));
        if (lease.ok()) {
          EXPECT_TRUE(Pinned(pages_.page(first) + size.count() - 1));
        } else {
          EXPECT_TRUE(lease.status().code() == StatusCode::kUnavailable ||
                      lease.status().code() == StatusCode::kResourceExhausted)
              << lease.status().ToString();
          EXPECT_TRUE(IsOk(cache.Maintain()));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(cache.stats().peak_bytes, Bytes(24 * kHostPage));
  EXPECT_TRUE(IsOk(cache.Trim()));
  EXPECT_EQ(cache.stats().bytes, 0_B);
}

}  // namespace
}  // namespace keel::memory
