// An orchestrator that has nothing to do, with all its threads and workers.
#include <ctime>
#include <thread>

#include "task/orchestrator_test.h"
#include "task/processes_test.h"

namespace keel::task {
namespace {

class OrchestratorIdleTest : public OrchestratorTest {
 protected:
  // Of this process, and of those of its workers.
  static std::chrono::nanoseconds Used() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    auto used = seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
    for (const pid_t worker : ChildrenOf(getpid())) {
      used += std::chrono::nanoseconds(ProcessorTime(worker));
    }
    return used;
  }
};

INSTANTIATE_TEST_SUITE_P(, OrchestratorIdleTest, ::testing::ValuesIn(Transports()), TransportName);

TEST_P(OrchestratorIdleTest, T9_NoneOfItTakesProcessorTime) {
  if (GetParam() == Transport::kMpi) {
    GTEST_SKIP() << "the threads of an MPI look for messages: ranks_test.py looks at all processes";
  }
  Start(2);
  const Callable noop = Registered(NoopImage());
  for (int i = 0; i < 1000; ++i) Submit(noop, {});
  ASSERT_TRUE(IsOk(orchestrator_->WaitAll(Long())));
  // Others of this process may still be ending, and the machine's own work is counted to whoever
  // is there.
  constexpr milliseconds kHundredth{10};
  int idle = 0;  // seconds in a row
  std::chrono::nanoseconds used{};
  for (int second = 0; second < 10 && idle < 2; ++second) {
    const std::chrono::nanoseconds before = Used();
    std::this_thread::sleep_for(seconds(1));
    used = Used() - before;
    idle = used < kHundredth ? idle + 1 : 0;
  }
  EXPECT_EQ(idle, 2) << "all of it together, in the last second: " << used.count() << " ns";
}

}  // namespace
}  // namespace keel::task
