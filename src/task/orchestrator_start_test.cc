// How workers are started.
#include <latch>

#include "task/orchestrator_core_test.h"

namespace keel::task {
namespace {

class OrchestratorStartTest : public OrchestratorCoreTest {
 protected:
  static constexpr std::size_t kCount = 3;

  static OrchestratorOptions Options() {
    OrchestratorOptions options;
    options.workers.resize(kCount);
    return options;
  }
};

// Each waits until all have begun: one after the other none would.
TEST_F(OrchestratorStartTest, AllWorkersAreStartedAtATime) {
  std::latch begun(kCount);
  core_ = Need(OrchestratorCore::Create(
      Options(), [&](const WorkerStart& start, Deadline) -> Result<std::unique_ptr<Worker>> {
        begun.count_down();
        if (!Soon([&] { return begun.try_wait(); })) return DeadlineExceeded("it is alone");
        return std::unique_ptr<Worker>(std::make_unique<FakeWorker>(start.doorbell));
      }));
  for (WorkerId worker = 0; worker < kCount; ++worker) EXPECT_TRUE(ReportOf(worker).up);
}

TEST_F(OrchestratorStartTest, TheFirstThatCannotBeStartedIsNamed) {
  const auto refused = OrchestratorCore::Create(
      Options(), [&](const WorkerStart& start, Deadline) -> Result<std::unique_ptr<Worker>> {
        if (start.index > 0) return NotFound("no such device");
        return std::unique_ptr<Worker>(std::make_unique<FakeWorker>(start.doorbell));
      });
  EXPECT_EQ(refused.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(refused.status()), HasSubstr("worker 1 (default): no such device"));
}

TEST_F(OrchestratorStartTest, AReportOfOneAsksNobodyElse) {
  Start(2);
  EXPECT_EQ(Need(core_->Report(1)).worker, 1U);
  EXPECT_EQ(Need(core_->Report(1)).bytes_to_device, 100U);
  EXPECT_TRUE(fakes_[0]->stats_deadline().never());
  EXPECT_FALSE(fakes_[1]->stats_deadline().never());
  EXPECT_THAT(MessageOf(core_->Report(2).status()), HasSubstr("there is no worker 2"));
}

}  // namespace
}  // namespace keel::task
