#include "task/mpi/session.h"

#include <gtest/gtest.h>

#include <memory>

#include "hal/sim_devices_test.h"
#include "task/mpi/fake_mpi_test.h"

namespace keel::task::mpi {
namespace {

using hal::IsOk;
using hal::Need;

class SessionTest : public ::testing::Test {
 protected:
  void SendTask(std::uint64_t number) {
    ASSERT_TRUE(
        IsOk(lane_.Write(task::Encode(TaskMessage{.number = number, .arguments = Arguments()}))));
    ASSERT_TRUE(Need(session_.Forward(outbox_)));
  }

  FakeMpi mpi_;
  const std::unique_ptr<Port> port_ = Need(Port::Open(FakeMpi::table()));
  Outbox outbox_{*port_};
  Session session_{1, 7, Need(Region::CreateShared(1_MiB)), Need(Doorbell::Create())};
  LaneWriter lane_{session_.region().lane(LaneName::kTasks)};
};

// What a rank says when its worker has ended decides how many answers are waited for.
TEST_F(SessionTest, NoMoreAnswersAreBelievedThanWereAskedFor) {
  EXPECT_TRUE(session_.CanHaveGiven(0, 1)) << "the greeting";
  EXPECT_FALSE(session_.CanHaveGiven(0, 2));
  EXPECT_FALSE(session_.CanHaveGiven(1, 0));
  SendTask(1);
  SendTask(2);
  EXPECT_TRUE(session_.CanHaveGiven(2, 1));
  EXPECT_FALSE(session_.CanHaveGiven(3, 0));
  const auto answer = task::Encode(Reply{.number = 1, .status = OkStatus(), .stats = {}});
  Need(session_.ExpectTaskReply(answer));
  ASSERT_TRUE(IsOk(session_.DeliverTaskReply(answer)));
  EXPECT_TRUE(session_.CanHaveGiven(1, 0)) << "the other is lost with the worker";
  EXPECT_TRUE(session_.CanHaveGiven(2, 1));
  EXPECT_FALSE(session_.CanHaveGiven(3, 1));
  EXPECT_FALSE(session_.CanHaveGiven(~std::uint64_t{0}, 0));
}

TEST_F(SessionTest, TheFirstReasonStays) {
  EXPECT_FALSE(session_.lost());
  session_.Lose(Unavailable("first"));
  EXPECT_TRUE(session_.lost());
  EXPECT_FALSE(session_.over());
  session_.End(Unavailable("second"));
  EXPECT_TRUE(session_.over());
  EXPECT_EQ(session_.Ended().message(), "first");
}

}  // namespace
}  // namespace keel::task::mpi
