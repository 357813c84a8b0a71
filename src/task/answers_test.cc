#include "task/answers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "hal/sim_devices_test.h"

namespace keel::task {
namespace {

using hal::IsOk;
using hal::Need;

class AnswersTest : public ::testing::Test {
 protected:
  Status Taken() {
    Status status = Internal("nothing was taken");
    EXPECT_TRUE(IsOk(reader_.Take(status)));
    return status;
  }
  std::uint64_t& word() { return region_->header().answered; }

  std::unique_ptr<Region> region_ = Need(Region::CreatePrivate());
  AnswerWriter writer_{*region_};
  AnswerReader reader_{*region_};
};

TEST_F(AnswersTest, OneLookTellsOfAllThatAreDone) {
  EXPECT_EQ(Need(reader_.Look(0)), 0U);
  EXPECT_EQ(Need(reader_.Look(5)), 0U);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(IsOk(writer_.Answer(OkStatus())));
  EXPECT_EQ(Need(reader_.Look(5)), 3U);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(IsOk(Taken()));
  EXPECT_EQ(Need(reader_.Look(2)), 0U);
  EXPECT_EQ(writer_.next(), 4U);
  EXPECT_TRUE(IsOk(writer_.Check()));
  EXPECT_TRUE(IsOk(reader_.Check()));
}

TEST_F(AnswersTest, WhatFailedIsToldOfTheTaskThatDid) {
  const auto expect = [&](const char* failures) {
    for (const char* at = failures; *at != '\0'; ++at) {
      const Status sent = *at == '.' ? OkStatus() : Internal(std::string(1, *at));
      ASSERT_TRUE(IsOk(writer_.Answer(sent)));
    }
    const std::size_t count = std::string_view(failures).size();
    ASSERT_EQ(Need(reader_.Look(count)), count);
    for (const char* at = failures; *at != '\0'; ++at) {
      EXPECT_EQ(Taken().message(), *at == '.' ? "" : std::string(1, *at)) << failures;
    }
  };
  for (const char* failures : {"a", ".b.", "cd", "..ef..g", ".", "h...", "...i"}) expect(failures);
}

TEST_F(AnswersTest, WhatWentWellIsTakenInOneStep) {
  EXPECT_EQ(reader_.TakeDone(5), 0U);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(IsOk(writer_.Answer(OkStatus())));
  EXPECT_EQ(reader_.TakeDone(2), 0U) << "more than were given";
  EXPECT_EQ(reader_.TakeDone(5), 3U);
  EXPECT_EQ(reader_.TakeDone(2), 0U);
  EXPECT_EQ(Need(reader_.Look(2)), 0U) << "they were taken";
  ASSERT_TRUE(IsOk(writer_.Answer(Internal("no"))));
  ASSERT_EQ(Need(reader_.Look(2)), 1U);
  EXPECT_EQ(Taken().message(), "no");
  // Once around the slots of the lane: what is there from the last time is no message.
  for (std::size_t i = 0; i < 3 * kLaneSlots; ++i) {
    ASSERT_TRUE(IsOk(writer_.Answer(i % 2 == 0 ? OkStatus() : Internal("again"))));
    const std::size_t done = reader_.TakeDone(1);
    ASSERT_EQ(done, i % 2 == 0 ? 1U : 0U);
    if (done != 0) continue;
    ASSERT_EQ(Need(reader_.Look(1)), 1U);
    ASSERT_EQ(Taken().message(), "again");
  }
}

TEST_F(AnswersTest, OfSeveralNoneIsTakenInOneStepIfOneFailed) {
  for (const char* failed : {"1", "2", "3"}) {
    for (int i = 1; i <= 3; ++i) {
      const bool fails = std::to_string(i) == failed;
      ASSERT_TRUE(IsOk(writer_.Answer(fails ? Internal(failed) : OkStatus())));
    }
    EXPECT_EQ(reader_.TakeDone(3), 0U) << failed;
    ASSERT_EQ(Need(reader_.Look(3)), 3U);
    // The message of a later one may be in hand.
    EXPECT_EQ(Taken().ok(), *failed != '1');
    EXPECT_EQ(reader_.TakeDone(2), *failed == '1' ? 2U : 0U) << failed;
    if (*failed == '1') continue;
    for (int i = 2; i <= 3; ++i) EXPECT_EQ(Taken().ok(), std::to_string(i) != failed);
  }
}

TEST_F(AnswersTest, NothingIsTakenInOneStepOfWhatIsDamaged) {
  ASSERT_TRUE(IsOk(writer_.Answer(OkStatus())));
  const std::uint64_t good = word();
  word() = good ^ std::uint64_t{1} << 40;
  EXPECT_EQ(reader_.TakeDone(1), 0U);
  word() = good;
  const Lane replies = region_->lane(LaneName::kTaskReplies);
  replies.slots[0].sequence = 77;
  EXPECT_EQ(reader_.TakeDone(1), 0U);
  replies.slots[0].sequence = 0;
  replies.state->written.store(1);
  EXPECT_EQ(reader_.TakeDone(1), 0U) << "a message of a failure got lost";
  replies.state->written.store(0);
  EXPECT_EQ(reader_.TakeDone(1), 1U);
}

TEST_F(AnswersTest, ASignIsThereFromTheAnswerOn) {
  const Sign first = reader_.next();
  EXPECT_FALSE(first.there());
  ASSERT_TRUE(IsOk(writer_.Answer(OkStatus())));
  EXPECT_TRUE(first.there());
  ASSERT_EQ(Need(reader_.Look(1)), 1U);
  EXPECT_TRUE(IsOk(Taken()));
  const Sign second = reader_.next();
  EXPECT_FALSE(second.there());
  ASSERT_TRUE(IsOk(writer_.Answer(Internal("no"))));
  ASSERT_TRUE(IsOk(writer_.Answer(OkStatus())));
  EXPECT_TRUE(first.there()) << "it was";
  EXPECT_TRUE(second.there());
}

TEST_F(AnswersTest, NoMoreAreAnsweredThanWereGiven) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(IsOk(writer_.Answer(OkStatus())));
  const Result<std::size_t> found = reader_.Look(2);
  ASSERT_EQ(found.status().code(), StatusCode::kInternal);
  EXPECT_NE(found.status().message().find("damaged"), std::string_view::npos)
      << found.status().ToString();
}

// Of a word that counts nothing, no value of a byte but its own makes sense.
TEST_F(AnswersTest, ADamagedWordIsNoticedByBothSides) {
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(IsOk(writer_.Answer(OkStatus())));
    ASSERT_EQ(Need(reader_.Look(1)), 1U);
    EXPECT_TRUE(IsOk(Taken()));
  }
  const std::uint64_t good = word();
  for (unsigned byte = 0; byte < sizeof(good); ++byte) {
    for (std::uint64_t flip = 1; flip < 256; ++flip) {
      word() = good ^ flip << byte * 8;
      EXPECT_EQ(reader_.Look(64).status().code(), StatusCode::kInternal) << byte << " " << flip;
      EXPECT_EQ(writer_.Check().code(), StatusCode::kInternal) << byte << " " << flip;
    }
  }
  word() = good;
  EXPECT_EQ(Need(reader_.Look(64)), 0U);
}

TEST_F(AnswersTest, AMessageThatNobodyWaitsForIsNoticed) {
  LaneWriter lane(region_->lane(LaneName::kTaskReplies));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(IsOk(writer_.Answer(OkStatus())));
    ASSERT_EQ(Need(reader_.Look(1)), 1U);
    EXPECT_TRUE(IsOk(Taken()));
  }
  ASSERT_TRUE(IsOk(lane.Write(Encode(Reply{.number = 2, .status = Internal("late")}))));
  ASSERT_TRUE(IsOk(writer_.Answer(OkStatus())));
  ASSERT_EQ(Need(reader_.Look(1)), 1U);
  Status status;
  EXPECT_EQ(reader_.Take(status).message(), "it answered task number 2 again");
}

TEST_F(AnswersTest, AMessageOfATaskThatWasNeverGivenIsNoticed) {
  LaneWriter lane(region_->lane(LaneName::kTaskReplies));
  ASSERT_TRUE(IsOk(lane.Write(Encode(Reply{.number = 9, .status = Internal("early")}))));
  ASSERT_TRUE(IsOk(writer_.Answer(OkStatus())));
  ASSERT_EQ(Need(reader_.Look(8)), 1U);
  Status status;
  EXPECT_EQ(reader_.Take(status).message(), "its message of task number 9 makes no sense");
}

TEST_F(AnswersTest, AFailureWhoseMessageGotLostIsNoSuccess) {
  ASSERT_TRUE(IsOk(writer_.Answer(Internal("broken"))));
  region_->lane(LaneName::kTaskReplies).slots[0].sequence = 0;
  ASSERT_EQ(Need(reader_.Look(1)), 1U);
  Status status;
  EXPECT_EQ(reader_.Take(status).code(), StatusCode::kInternal);
}

TEST_F(AnswersTest, OfADamagedWordNothingIsLeftAfterTheNextAnswer) {
  ASSERT_TRUE(IsOk(writer_.Answer(OkStatus())));
  word() = 4;
  EXPECT_EQ(reader_.Look(2).status().code(), StatusCode::kInternal);
  ASSERT_TRUE(IsOk(writer_.Answer(OkStatus())));
  EXPECT_EQ(Need(reader_.Look(2)), 2U);
}

TEST_F(AnswersTest, BetweenThreadsEachFailureIsSeenWithItsTask) {
  constexpr std::uint64_t kTasks = 200'000;
  constexpr std::uint64_t kAhead = 64;
  std::atomic<std::uint64_t> taken{0};
  std::thread worker([&] {
    for (std::uint64_t i = 1; i <= kTasks; ++i) {
      while (i - taken.load(std::memory_order_acquire) > kAhead) std::this_thread::yield();
      const Status status = i % 7 == 0 ? Internal(std::to_string(i)) : OkStatus();
      ASSERT_TRUE(IsOk(writer_.Answer(status)));
    }
  });
  for (std::uint64_t next = 1; next <= kTasks;) {
    const std::size_t done = reader_.TakeDone(kAhead);
    for (std::size_t i = 0; i < done; ++i, ++next) ASSERT_NE(next % 7, 0U);
    const std::size_t count = Need(reader_.Look(kAhead));
    for (std::size_t i = 0; i < count; ++i, ++next) {
      ASSERT_EQ(Taken().message(), next % 7 == 0 ? std::to_string(next) : "");
    }
    taken.store(next - 1, std::memory_order_release);
    if (done + count == 0) std::this_thread::yield();
  }
  worker.join();
}

}  // namespace
}  // namespace keel::task
