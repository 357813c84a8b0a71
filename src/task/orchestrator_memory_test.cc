// Very many tasks in a row, through real workers: neither side's memory grows with them.
#include <fstream>

#include "task/orchestrator_test.h"
#include "task/processes_test.h"

namespace keel::task {
namespace {

class OrchestratorMemoryTest : public OrchestratorTest {
 protected:
  // What a process has of the machine's memory.
  static Bytes Resident(const std::string& process) {
    std::ifstream file("/proc/" + process + "/statm");
    std::uint64_t all = 0;
    std::uint64_t resident = 0;
    file >> all >> resident;
    return Bytes(resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
  }
  // By this and by whoever works for it.
  Bytes Held() const {
    Bytes held = Resident("self");
    const std::vector<pid_t> others = Others();
    EXPECT_EQ(others.empty(), GetParam() == Transport::kThread);
    for (const pid_t other : others) held += Resident(std::to_string(other));
    return held;
  }

 private:
  std::vector<pid_t> Others() const {
    if (GetParam() != Transport::kMpi) return ChildrenOf(getpid());
    // The ranks and their workers have other parents: tests/mpi/runs.py marks all of a run.
    constexpr const char* kMark = "KEEL_TEST_MARK";
    const char* const mark = std::getenv(kMark);
    return mark == nullptr ? std::vector<pid_t>() : ProcessesWith(kMark, mark);
  }
};

INSTANTIATE_TEST_SUITE_P(, OrchestratorMemoryTest, ::testing::ValuesIn(Transports()),
                         TransportName);

TEST_P(OrchestratorMemoryTest, ManyTasksInARowHoldConstantMemory) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer keeps what was freed";
#endif
  const std::uint64_t tasks = Soaking() ? 1'000'000 : 300'000;
  constexpr std::uint64_t kFirst = 100'000;
  constexpr std::uint64_t kInARow = 500;
  Start(1);
  const Callable noop = Registered(NoopImage());
  const DeviceAddress block = Upload(0, std::vector<float>(4096));
  std::vector<float> host(4096);
  Bytes first;
  for (std::uint64_t i = 0; i < tasks; i += kInARow) {
    if (i == kFirst) first = Held();
    TaskHandle last;
    for (std::uint64_t j = 0; j < kInARow; ++j) {
      // One in ten with tensors, at ever other places.
      if (j % 10 != 0) {
        last = Submit(noop, {});
        continue;
      }
      const std::uint64_t at = (i / kInARow * 7 + j) % 4000;
      Arguments arguments;
      arguments.Add(Tag::kInOut, At<float>(block + Bytes(4 * at), 50)).AddScalar(i);
      if (j % 100 == 0) {
        const std::array<std::uint32_t, 1> shape{50};
        arguments.Add(Tag::kInOut, Tensor::Host(&host[at], DataType::kFloat32, shape));
      }
      last = Submit(noop, arguments);
    }
    ASSERT_TRUE(IsOk(last.Wait(Long())));
    ASSERT_TRUE(IsOk(orchestrator_->WaitAll(Long())));
    ASSERT_EQ(orchestrator_->live_tasks(), 0U);
  }
  // Three bytes for each task would be more. Of the many processes of MPI each uses some of what it
  // has for the first time now and then: there it is eleven, and an allocation has more.
  const Bytes always = GetParam() == Transport::kMpi ? 2_MiB : 512_KiB;
  EXPECT_LE(Held().count(), (first + always).count());
  EXPECT_EQ(orchestrator_->Report()[0].restarts, 0U);
}

}  // namespace
}  // namespace keel::task
