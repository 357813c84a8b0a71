#include "task/mpi/watchdog.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace keel::task::mpi {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
constexpr auto kLong = std::chrono::seconds(30);  // it ends long before

class WatchdogTest : public ::testing::Test {
 protected:
  WatchdogTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(WatchdogTest, DoesNothingToWhatEnds) {
  {
    const Watchdog watchdog("a call", Deadline::After(hours(1)));
  }
  {
    const Watchdog watchdog("a call", Deadline::Never());
  }
}

TEST_F(WatchdogTest, EndsTheProcessAtTheDeadline) {
  EXPECT_EXIT(
      {
        const Watchdog watchdog("a call", Deadline::After(milliseconds(10)));
        std::this_thread::sleep_for(kLong);
      },
      ::testing::ExitedWithCode(1), "a call has not ended, and the time is up");
}

TEST_F(WatchdogTest, EndsTheProcessWithTheOther) {
  EXPECT_EXIT(
      {
        const pid_t other = fork();
        if (other == 0) _exit(0);
        const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, other, 0)));
        const Watchdog watchdog("a call", Deadline::Never(), process.get());
        std::this_thread::sleep_for(kLong);
      },
      ::testing::ExitedWithCode(1), "a call has not ended, and what launched it has");
}

}  // namespace
}  // namespace keel::task::mpi
