#include "task/mpi/frames.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <numeric>

#include "hal/sim_devices_test.h"
#include "task/mpi/fake_mpi_test.h"
#include "task/mpi/life.h"

namespace keel::task::mpi {
namespace {

using hal::IsOk;
using hal::Need;
using Event = FrameReader::Event;

std::vector<std::byte> Pattern(std::size_t size, unsigned first) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(first + i * 7);
  return bytes;
}

class FramesTest : public ::testing::Test {
 protected:
  static constexpr int kRank = 1;
  FakeMpi mpi_;
  const std::unique_ptr<Port> port_ = Need(Port::Open(FakeMpi::table()));
  Outbox outbox_{*port_};
  FrameReader reader_{*port_, kRank, kTaskTag, 100};
};

TEST_F(FramesTest, AMessageArrivesWithItsBytes) {
  std::vector<std::byte> message = Pattern(30, 1);
  std::vector<std::byte> one = Pattern(1000, 2);
  std::vector<std::byte> two = Pattern(1, 3);
  const std::vector<Piece> pieces{one, two};
  ASSERT_TRUE(IsOk(outbox_.Send(kRank, kTaskTag, {.session = 7, .left = 5}, message, pieces)));
  ASSERT_EQ(Need(reader_.Poll()), Event::kHead);
  EXPECT_EQ(reader_.head().session, 7U);
  EXPECT_EQ(reader_.head().left, 5);
  EXPECT_EQ(reader_.head().pieces, 2U);
  EXPECT_TRUE(std::ranges::equal(reader_.message(), message));
  std::vector<std::byte> got_one(1000);
  std::vector<std::byte> got_two(1);
  ASSERT_TRUE(IsOk(reader_.Take({got_one, got_two}, nullptr)));
  ASSERT_EQ(Need(reader_.Poll()), Event::kWhole);
  EXPECT_EQ(got_one, one);
  EXPECT_EQ(got_two, two);
  EXPECT_EQ(Need(reader_.Poll()), Event::kNothing);
  EXPECT_TRUE(reader_.idle());
}

TEST_F(FramesTest, WhatIsDroppedTakesItsBytesWithIt) {
  std::vector<std::byte> bytes = Pattern(1000, 2);
  const std::vector<Piece> pieces{bytes, bytes, bytes};
  ASSERT_TRUE(IsOk(outbox_.Send(kRank, kTaskTag, {.session = 1}, Pattern(8, 1), pieces)));
  ASSERT_TRUE(IsOk(outbox_.Send(kRank, kTaskTag, {.session = 2}, Pattern(8, 1), pieces)));
  ASSERT_EQ(Need(reader_.Poll()), Event::kHead);
  reader_.Drop();
  ASSERT_EQ(Need(reader_.Poll()), Event::kHead);
  EXPECT_EQ(reader_.head().session, 2U);
  EXPECT_EQ((mpi_.messages[{kRank, kTaskTag + 1}].size()), 3U) << "of the second alone";
}

TEST_F(FramesTest, BytesThatHaveNotComeAreWaitedFor) {
  std::vector<std::byte> bytes = Pattern(1000, 2);
  ASSERT_TRUE(
      IsOk(outbox_.Send(kRank, kTaskTag, {}, Pattern(8, 1), std::vector<Piece>{bytes, bytes})));
  auto& under_way = mpi_.messages[{kRank, kTaskTag + 1}];
  const FakeMpi::Message late = under_way.back();
  under_way.pop_back();
  ASSERT_EQ(Need(reader_.Poll()), Event::kHead);
  std::vector<std::byte> one(1000);
  std::vector<std::byte> two(1000);
  ASSERT_TRUE(IsOk(reader_.Take({one, two}, nullptr)));
  EXPECT_EQ(Need(reader_.Poll()), Event::kNothing);
  EXPECT_FALSE(reader_.idle());
  under_way.push_back(late);
  EXPECT_EQ(Need(reader_.Poll()), Event::kWhole);
  EXPECT_EQ(two, bytes);
}

// The head says more pieces than there are.
TEST_F(FramesTest, AFrameThatDoesNotEndIsOverdue) {
  using std::chrono::seconds;
  const auto now = [] { return std::chrono::steady_clock::now(); };
  EXPECT_FALSE(Overdue(reader_, now() + seconds(1000))) << "nothing has begun";
  std::vector<std::byte> bytes = Pattern(1000, 2);
  const auto send = [&] {
    ASSERT_TRUE(
        IsOk(outbox_.Send(kRank, kTaskTag, {}, Pattern(8, 1), std::vector<Piece>{bytes, bytes})));
    mpi_.messages[{kRank, kTaskTag + 1}].clear();
    ASSERT_EQ(Need(reader_.Poll()), Event::kHead);
  };
  const auto expect_overdue = [&] {
    EXPECT_EQ(Need(reader_.Poll()), Event::kNothing);
    EXPECT_FALSE(Overdue(reader_, now()));
    EXPECT_TRUE(Overdue(reader_, now() + kSilence));
    // The last one is still due.
    mpi_.messages[{kRank, kTaskTag + 1}].push_back(bytes);
    EXPECT_EQ(Need(reader_.Poll()), Event::kNothing);
    EXPECT_TRUE(Overdue(reader_, now() + kSilence));
    mpi_.messages[{kRank, kTaskTag + 1}].push_back(bytes);
  };
  send();
  std::vector<std::byte> one(1000);
  std::vector<std::byte> two(1000);
  ASSERT_TRUE(IsOk(reader_.Take({one, two}, nullptr)));
  expect_overdue();
  ASSERT_EQ(Need(reader_.Poll()), Event::kWhole);
  EXPECT_FALSE(Overdue(reader_, now() + seconds(1000)));
  send();
  reader_.Drop();
  expect_overdue();
}

TEST_F(FramesTest, WhatIsNoFrameIsSaidSo) {
  const auto refused = [&](std::vector<std::byte> bytes) {
    mpi_.messages[{kRank, kTaskTag}] = {std::move(bytes)};
    FrameReader reader(*port_, kRank, kTaskTag, 100);
    return reader.Poll().status();
  };
  FrameHead head{.message = 4};
  std::vector<std::byte> bytes(sizeof(head) + 4);
  const auto put = [&] { std::memcpy(bytes.data(), &head, sizeof(head)); };
  put();
  EXPECT_TRUE(refused(bytes).ok());
  EXPECT_EQ(refused(Pattern(10, 1)).message(), "rank 1 sent nonsense: a message of 10 bytes");
  EXPECT_EQ(refused(Pattern(sizeof(head) + 101, 1)).message(),
            "rank 1 sent nonsense: a message of 133 bytes");
  ++head.magic;
  put();
  EXPECT_EQ(refused(bytes).message(), "rank 1 sent nonsense: a message without its mark");
  head.magic = FrameHead::kMagic;
  head.pieces = kMostPieces;
  put();
  EXPECT_TRUE(refused(bytes).ok());
  head.pieces = kMostPieces + 1;
  put();
  EXPECT_EQ(refused(bytes).code(), StatusCode::kInternal) << "more bytes than can be";
  head.pieces = 0;
  head.message = 5;
  put();
  EXPECT_EQ(refused(bytes).code(), StatusCode::kInternal) << "another length";
}

TEST_F(FramesTest, BytesOfAnotherSizeAreNonsense) {
  std::vector<std::byte> bytes = Pattern(1000, 2);
  ASSERT_TRUE(IsOk(outbox_.Send(kRank, kTaskTag, {}, Pattern(8, 1), std::vector<Piece>{bytes})));
  ASSERT_EQ(Need(reader_.Poll()), Event::kHead);
  std::vector<std::byte> more(1001);
  ASSERT_TRUE(IsOk(reader_.Take({more}, nullptr)));
  EXPECT_EQ(reader_.Poll().status().code(), StatusCode::kInternal);
}

TEST_F(FramesTest, WhatIsSentIsHeldUntilItHasArrived) {
  const auto held = std::make_shared<std::vector<std::byte>>(Pattern(1000, 1));
  mpi_.sends_end = false;
  ASSERT_TRUE(IsOk(outbox_.Send(kRank, kTaskTag, {}, {}, std::vector<Piece>{*held}, held)));
  EXPECT_FALSE(Need(outbox_.Progress()));
  EXPECT_EQ(held.use_count(), 2);
  mpi_.sends_end = true;
  EXPECT_TRUE(Need(outbox_.Progress()));
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_TRUE(outbox_.empty());
}

TEST(FramePiecesTest, PlacesOutsideTheirAreaAreRefused) {
  const auto region = Need(Region::CreateShared(1_MiB));
  const Extent window{Region::kWindow, 100};
  const Extent data{Region::kData, 100};
  EXPECT_EQ(Need(WindowPieces(*region, std::vector{window})).size(), 1U);
  EXPECT_EQ(Need(DataPieces(*region, std::vector{data})).size(), 1U);
  EXPECT_EQ(WindowPieces(*region, std::vector{data}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(DataPieces(*region, std::vector{window}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(DataPieces(*region, std::vector{Extent{Region::kData, (1 << 20) + 1}}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(DataPieces(*region, std::vector{Extent{~0ULL - 10, 100}}).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(FramePiecesTest, BytesGoWithTheRequestsThatHaveThem) {
  for (std::uint32_t kind = 1; kind <= kLastRequestKind; ++kind) {
    const Request request{
        .kind = static_cast<RequestKind>(kind), .number = 1, .place = 64, .size = 5};
    const bool to = request.kind == RequestKind::kCopyTo || request.kind == RequestKind::kImagePart;
    const bool from = request.kind == RequestKind::kCopyFrom;
    ASSERT_EQ(BytesTo(request).size(), to ? 1U : 0U) << kind;
    ASSERT_EQ(BytesFrom(request).size(), from ? 1U : 0U) << kind;
    if (!to && !from) continue;
    const Extent extent = to ? BytesTo(request)[0] : BytesFrom(request)[0];
    EXPECT_EQ(extent.place, 64U);
    EXPECT_EQ(extent.size, 5U);
  }
}

TEST(FramePiecesTest, LargeTensorsAreSplitWithoutALoss) {
  const auto region = Need(Region::CreateShared(100_MiB));
  const Extent extent{Region::kData + 4096, 2 * kPieceSize + 5};
  const std::vector<Piece> pieces = Need(DataPieces(*region, std::vector{extent}));
  ASSERT_EQ(pieces.size(), 3U);
  EXPECT_EQ(pieces[0].data(), region->at(extent.place));
  EXPECT_EQ(pieces[1].data(), pieces[0].data() + kPieceSize);
  EXPECT_EQ(pieces[2].data(), pieces[1].data() + kPieceSize);
  EXPECT_EQ(pieces[2].size(), 5U);
}

TEST(FrameTimeTest, ADeadlineIsCountedFromWhereItArrives) {
  EXPECT_TRUE(AfterLeft(LeftUntil(Deadline::Never())).never());
  EXPECT_TRUE(AfterLeft(LeftUntil(Deadline::Now())).Passed());
  const Deadline hour = Deadline::After(std::chrono::hours(1));
  const auto difference = AfterLeft(LeftUntil(hour)).when() - hour.when();
  EXPECT_LT(difference, std::chrono::minutes(10));
  EXPECT_GE(difference, std::chrono::seconds(0));
}

TEST(LifeTest, ComesBackAsItWas) {
  const Life sent{.kind = LifeKind::kEnded,
                  .version = 3,
                  .orchestration = 2,
                  .process = 4,
                  .shared_memory = 5,
                  .task_replies = 6,
                  .control_replies = 7,
                  .text = std::string(399, 'x'),
                  .machine = "here"};
  const Life got = Need(DecodeLife(Encode(sent)));
  EXPECT_EQ(got.kind, sent.kind);
  EXPECT_EQ(got.version, 3U);
  EXPECT_EQ(got.orchestration, 2U);
  EXPECT_EQ(got.process, 4U);
  EXPECT_EQ(got.shared_memory, 5U);
  EXPECT_EQ(got.task_replies, 6U);
  EXPECT_EQ(got.control_replies, 7U);
  EXPECT_EQ(got.text, sent.text);
  EXPECT_EQ(got.machine, "here");
  EXPECT_EQ(Need(DecodeLife(Encode(Life{.text = std::string(1000, 'x')}))).text.size(), 400U);
}

TEST(LifeTest, DamageIsReadOrRefused) {
  const std::vector<std::byte> good = Encode(Hello());
  EXPECT_FALSE(DecodeLife(std::span(good).first(good.size() - 1)).ok());
  std::vector<std::byte> bytes = good;
  bytes[0] = std::byte{99};
  EXPECT_EQ(DecodeLife(bytes).status().code(), StatusCode::kInvalidArgument);
  bytes = good;
  bytes[8] = std::byte{9};
  EXPECT_EQ(DecodeLife(bytes).status().code(), StatusCode::kInvalidArgument) << "orchestration";
  for (std::size_t i = 0; i < good.size(); ++i) {
    bytes = good;
    bytes[i] = std::byte{0xff};
    const Result<Life> life = DecodeLife(bytes);
    if (!life.ok()) continue;
    for (const char c : life->text + life->machine) EXPECT_TRUE(c >= ' ' && c <= '~');
  }
}

TEST(LifeTest, AProcessOfThisMachineIsSeenToEnd) {
  EXPECT_TRUE(Watch(Hello()).valid());
  Life elsewhere = Hello();
  elsewhere.machine += "x";
  EXPECT_FALSE(Watch(elsewhere).valid());
}

}  // namespace
}  // namespace keel::task::mpi
