#include "task/mpi/session.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hal/sim_devices_test.h"
#include "task/mpi/fake_mpi_test.h"
#include "task/serve.h"

namespace keel::task::mpi {
namespace {

using hal::IsOk;
using hal::Need;

class SessionTest : public ::testing::Test {
 protected:
  static constexpr int kRank = 1;

  void SendTask(std::uint64_t number, const Arguments& arguments = {}) {
    ASSERT_TRUE(
        IsOk(lane_.Write(task::Encode(TaskMessage{.number = number, .arguments = arguments}))));
    ASSERT_TRUE(Need(session_.Forward(outbox_)));
  }
  static std::vector<std::byte> Answer(std::uint64_t number, Status status = OkStatus()) {
    return task::Encode(Reply{.number = number, .status = std::move(status)});
  }

  FakeMpi mpi_;
  const std::unique_ptr<Port> port_ = Need(Port::Open(FakeMpi::table()));
  Outbox outbox_{*port_};
  const std::shared_ptr<Doorbell> doorbell_ = Need(Doorbell::Create());
  Session session_{kRank, 7, Need(Region::CreateShared(1_MiB)), doorbell_};
  LaneWriter lane_{session_.region().lane(LaneName::kTasks)};
  LaneWriter control_lane_{session_.region().lane(LaneName::kControl)};
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

TEST_F(SessionTest, TensorsTravelTheWayThatTheirTagsSay) {
  constexpr std::uint64_t kIn = Region::kData;
  constexpr std::uint64_t kBoth = Region::kData + 4096;
  constexpr std::uint64_t kOut = Region::kData + 8192;
  const std::array<std::uint32_t, 1> shape{100};
  const auto at = [&](std::uint64_t place) {
    return Tensor::Host(reinterpret_cast<void*>(place), DataType::kUInt8, shape);
  };
  Region& region = session_.region();
  std::memset(region.at(kIn), 1, 100);
  std::memset(region.at(kBoth), 2, 100);
  std::memset(region.at(kOut), 3, 100);
  const auto arguments =
      Arguments().Add(Tag::kIn, at(kIn)).Add(Tag::kInOut, at(kBoth)).Add(Tag::kOut, at(kOut));
  SendTask(1, arguments);
  SendTask(2, arguments);
  const std::vector<FakeMpi::Message> sent = mpi_.messages[{kRank, kTaskTag + 1}];
  ASSERT_EQ(sent.size(), 4U) << "of two tasks";
  EXPECT_EQ(sent[0], FakeMpi::Message(100, std::byte{1}));
  EXPECT_EQ(sent[1], FakeMpi::Message(100, std::byte{2}));
  const std::vector<Piece> back = Need(session_.ExpectTaskReply(Answer(1)));
  ASSERT_EQ(back.size(), 2U);
  EXPECT_EQ(back[0].data(), region.at(kBoth));
  EXPECT_EQ(back[1].data(), region.at(kOut));
  EXPECT_EQ(back[1].size(), 100U);
  EXPECT_TRUE(Need(session_.ExpectTaskReply(Answer(1, Internal("failed")))).empty());
}

TEST_F(SessionTest, AnAnswerIsToWhatIsNext) {
  SendTask(1);
  SendTask(2);
  const auto refused = [&](std::uint64_t number) {
    return std::string(session_.ExpectTaskReply(Answer(number)).status().message());
  };
  EXPECT_EQ(refused(1), "");
  EXPECT_EQ(refused(2), "it answered task number 2, which is not the next");
  ASSERT_TRUE(IsOk(session_.DeliverTaskReply(Answer(1))));
  EXPECT_EQ(refused(1), "it answered task number 1, which is not the next");
  EXPECT_EQ(refused(2), "");
  EXPECT_EQ(session_.ExpectControlReply(Answer(5)).status().message(),
            "it answered request 5, which nobody waits for");
}

TEST_F(SessionTest, AnAnswerIsInTheLaneAndRings) {
  SendTask(1);
  EXPECT_TRUE(session_.awaiting());
  const std::uint32_t before = doorbell_->value();
  ASSERT_TRUE(IsOk(session_.DeliverTaskReply(Answer(1))));
  EXPECT_NE(doorbell_->value(), before);
  AnswerReader answers(session_.region());
  ASSERT_EQ(Need(answers.Look(1)), 1U);
  Status status = Internal("not yet");
  ASSERT_TRUE(IsOk(answers.Take(status)));
  EXPECT_TRUE(IsOk(status));
  EXPECT_TRUE(session_.awaiting()) << "the greeting";
  ASSERT_TRUE(IsOk(session_.DeliverControlReply(Answer(0))));
  EXPECT_FALSE(session_.awaiting());
}

TEST_F(SessionTest, ARequestThatWasGivenUpIsNotSent) {
  ASSERT_TRUE(IsOk(session_.DeliverControlReply(Answer(0))));
  auto& ticket = session_.region().header().ticket;
  const auto send = [&](std::uint64_t number) {
    ASSERT_TRUE(IsOk(
        control_lane_.Write(task::Encode(Request{.kind = RequestKind::kStats, .number = number}))));
    ASSERT_TRUE(Need(session_.Forward(outbox_)));
  };
  ticket = 0;
  send(4);
  EXPECT_TRUE((mpi_.messages[{kRank, kControlTag}].empty()));
  EXPECT_FALSE(session_.awaiting());
  ticket = 5;
  send(5);
  EXPECT_EQ((mpi_.messages[{kRank, kControlTag}].size()), 1U);
  EXPECT_TRUE(session_.awaiting());
  EXPECT_EQ(ticket, 5 | kBegun);
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
