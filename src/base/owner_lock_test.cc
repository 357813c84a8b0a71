#include "base/owner_lock.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <thread>
#include <vector>

#include "base/forked_child_test.h"
#include "base/soon_test.h"
#include "base/spin_pause.h"
#include "base/twins_test.h"

namespace keel {
namespace {

class OwnerLockTest : public ::testing::TestWithParam<OwnerLock::Order> {
 protected:
  void SetUp() override {
    if (GetParam() == OwnerLock::Order::kOthers && !OwnerLock::RegisterBarrier()) {
      GTEST_SKIP() << "this system has no barrier for a process";
    }
  }
};

TEST_P(OwnerLockTest, OwnerAndOthersNeverMeetInside) {
  constexpr std::uint64_t kEach = 8'000;
  constexpr std::uint64_t kOthers = 3;
  OwnerLock lock(GetParam());
  Twins twins;
  std::latch start(kOthers + 1);
  std::atomic<std::uint64_t> running{kOthers};
  std::atomic<std::uint64_t> meetings{0};
  std::uint64_t by_owner = 0;
  std::thread owner([&] {
    SlowStores stores;
    start.arrive_and_wait();
    for (; running.load(std::memory_order_relaxed) > 0; ++by_owner) {
      stores.Store();
      const OwnerGuard guard(lock);
      if (!twins.Increase()) ++meetings;
    }
  });
  std::vector<std::thread> others;
  for (std::uint64_t t = 0; t < kOthers; ++t) {
    others.emplace_back([&] {
      start.arrive_and_wait();
      for (std::uint64_t i = 0; i < kEach; ++i) {
        lock.Lock();
        if (!twins.Increase()) ++meetings;
        lock.Unlock();
        // The owner has it most of the time, and is met at ever other places.
        for (std::uint64_t pause = 0; pause < i % 97; ++pause) SpinPause();
      }
      --running;
    });
  }
  for (std::thread& other : others) other.join();
  owner.join();
  EXPECT_EQ(meetings, 0U);
  EXPECT_TRUE(twins.Are(by_owner + kOthers * kEach));
}

// Longer than anybody spins or yields.
TEST_P(OwnerLockTest, AnOtherWaitsUntilTheOwnerIsOut) {
  OwnerLock lock(GetParam());
  std::atomic<bool> trying{false};
  std::atomic<bool> inside{false};
  lock.LockAsOwner();
  std::thread other([&] {
    trying = true;
    lock.Lock();
    inside = true;
    lock.Unlock();
  });
  while (!trying) std::this_thread::yield();
  for (int i = 0; i < 2000; ++i) std::this_thread::yield();
  EXPECT_FALSE(inside);
  lock.UnlockAsOwner();
  other.join();
  EXPECT_TRUE(inside);
}

TEST_P(OwnerLockTest, TheOwnerStepsBackForWhoAskedFirst) {
  OwnerLock lock(GetParam());
  std::atomic<bool> trying{false};
  std::atomic<bool> inside{false};
  std::atomic<bool> may_leave{false};
  std::atomic<bool> left{false};
  lock.Ask();
  std::thread owner([&] {
    trying = true;
    const OwnerGuard guard(lock);
    inside = true;
    EXPECT_TRUE(Soon([&] { return may_leave.load(); }));
    left = true;
  });
  while (!trying) std::this_thread::yield();
  for (int i = 0; i < 2000; ++i) std::this_thread::yield();
  OwnerLock::Barrier();
  lock.Enter();  // would never end if the owner waited without stepping back
  EXPECT_FALSE(inside);
  lock.Unlock();
  // Then it is in as if it had not waited.
  while (!inside) std::this_thread::yield();
  std::atomic<bool> asked{false};
  std::thread next([&] {
    lock.Ask();
    asked = true;
    OwnerLock::Barrier();
    lock.Enter();
    EXPECT_TRUE(left);
    lock.Unlock();
  });
  while (!asked) std::this_thread::yield();
  for (int i = 0; i < 2000; ++i) std::this_thread::yield();
  may_leave = true;
  owner.join();
  next.join();
}

TEST_P(OwnerLockTest, TheOwnerMayTakeItAsOthersDo) {
  OwnerLock lock(GetParam());
  for (int i = 0; i < 3; ++i) {
    lock.LockAsOwner();
    lock.UnlockAsOwner();
    lock.Lock();
    lock.Unlock();
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, OwnerLockTest,
                         ::testing::Values(OwnerLock::Order::kOthers, OwnerLock::Order::kOwner),
                         [](const auto& order) {
                           return order.param == OwnerLock::Order::kOthers ? "Others" : "Owner";
                         });

// From now on the system call ends with `error`, as a sandbox has it. False: no such filters here.
bool ForbidBarrier(unsigned error) {
  std::array<sock_filter, 4> filter = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{.len = filter.size(), .filter = filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(OwnerLockSandboxTest, WithoutBarriersTheOwnerKeepsTheOrder) {
  constexpr int kNoFilters = 2;
  OwnerLock before;  // the process has found out what it has
  for (const unsigned error : {EPERM, ENOSYS}) {
    const int status = InForkedChild([&] {
      if (!ForbidBarrier(error)) _exit(kNoFilters);
      EXPECT_FALSE(OwnerLock::RegisterBarrier());
      // And one that counted on barriers still works, slowly.
      before.Lock();
      before.Unlock();
      before.LockAsOwner();
      before.UnlockAsOwner();
    });
    ASSERT_TRUE(WIFEXITED(status)) << status;
    if (WEXITSTATUS(status) == kNoFilters) GTEST_SKIP() << "no filters of system calls here";
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
}

}  // namespace
}  // namespace keel
