#include "task/lane.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "hal/sim_devices_test.h"

namespace keel::task {
namespace {

using hal::IsOk;
using hal::Need;

constexpr std::size_t kRing = 1024;

std::vector<std::byte> Message(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(seed * 31 + i);
  return bytes;
}

class LaneTest : public ::testing::Test {
 protected:
  LaneState state_{};
  std::vector<std::byte> ring_ = std::vector<std::byte>(kRing);
  LaneWriter writer_{Lane{&state_, ring_}};
  LaneReader reader_{Lane{&state_, ring_}};
  std::vector<std::byte> message_;
};

TEST_F(LaneTest, MessagesArriveInOrder) {
  EXPECT_FALSE(Need(reader_.Read(message_)));
  for (unsigned i = 0; i < 5; ++i) ASSERT_TRUE(IsOk(writer_.Write(Message(i * 7, i))));
  for (unsigned i = 0; i < 5; ++i) {
    ASSERT_TRUE(Need(reader_.Read(message_)));
    EXPECT_EQ(message_, Message(i * 7, i));
  }
  EXPECT_FALSE(Need(reader_.Read(message_)));
}

TEST_F(LaneTest, AFullRingRefusesAndTakesMoreWhenItIsRead) {
  int fitted = 0;
  while (writer_.Write(Message(100, 0)).ok()) ++fitted;
  EXPECT_EQ(fitted, kRing / RecordSize(100));
  EXPECT_EQ(writer_.Write(Message(100, 1)).code(), StatusCode::kResourceExhausted);
  ASSERT_TRUE(Need(reader_.Read(message_)));
  EXPECT_TRUE(IsOk(writer_.Write(Message(100, 1))));
  EXPECT_EQ(writer_.Write(Message(kRing, 1)).code(), StatusCode::kOutOfRange);
}

TEST_F(LaneTest, T6_WhatFitsIntoAnEmptyRingFitsWhereverTheCursorStands) {
  const std::size_t largest = kRing - sizeof(RecordHeader);
  for (unsigned i = 0; i < 2 * kRing / 8; ++i) {
    ASSERT_TRUE(IsOk(writer_.Write(Message(0, 0))));  // moves the cursor by 16
    ASSERT_TRUE(Need(reader_.Read(message_)));
    ASSERT_TRUE(IsOk(writer_.Write(Message(largest, i)))) << i;
    ASSERT_TRUE(Need(reader_.Read(message_)));
    ASSERT_EQ(message_, Message(largest, i));
  }
}

TEST_F(LaneTest, TheCursorsMayWrapAround) {
  std::mt19937 random(1);
  std::uint64_t bytes = 0;
  for (unsigned i = 0; bytes < 200 * kRing; ++i) {
    const std::size_t size = random() % 900;
    bytes += size;
    ASSERT_TRUE(IsOk(writer_.Write(Message(size, i))));
    ASSERT_TRUE(Need(reader_.Read(message_)));
    ASSERT_EQ(message_, Message(size, i));
  }
}

TEST_F(LaneTest, TwoThreadsLoseNothing) {
  constexpr unsigned kMessages = 20'000;
  std::thread peer([&] {
    for (unsigned i = 0; i < kMessages;) {
      const Status status = writer_.Write(Message(i % 200, i));
      if (status.ok()) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  unsigned failed = 0;
  for (unsigned i = 0; i < kMessages;) {
    const std::uint32_t seen = reader_.bell();
    if (!Need(reader_.Read(message_))) {
      if (!reader_.WaitWhile(seen, Deadline::After(std::chrono::seconds(60)))) ++failed;
      continue;
    }
    failed += message_ == Message(i % 200, i) ? 0 : 1;
    ++i;
  }
  peer.join();
  EXPECT_EQ(failed, 0U);
}

TEST_F(LaneTest, ACursorThatPointsNowhereIsAnError) {
  ASSERT_TRUE(IsOk(writer_.Write(Message(8, 0))));
  for (const std::uint32_t bad : {8U, 12U, 4096U, 0xffff'fff8U}) {
    LaneReader reader(Lane{&state_, ring_});
    state_.written = bad;
    const auto read = reader.Read(message_);
    ASSERT_FALSE(read.ok()) << bad;
    EXPECT_EQ(read.status().code(), StatusCode::kInternal);
    state_.written = 24;
    EXPECT_FALSE(reader.Read(message_).ok()) << "a damaged lane was used again";
  }
  state_.read = 4096;
  EXPECT_EQ(writer_.Check().code(), StatusCode::kInternal);
  state_.read = 0;
  EXPECT_EQ(writer_.Write(Message(8, 0)).code(), StatusCode::kInternal);
}

TEST_F(LaneTest, AWriterNoticesThatItsOwnCursorWasDamaged) {
  ASSERT_TRUE(IsOk(writer_.Write(Message(8, 0))));
  state_.written = 0;
  EXPECT_EQ(writer_.Write(Message(8, 0)).code(), StatusCode::kInternal);
}

// A writer looks at the reader's cursor only when it needs room, and trusts it no more then.
TEST_F(LaneTest, AFullRingFindsACursorThatPointsNowhere) {
  while (writer_.Write(Message(100, 0)).ok()) {
  }
  state_.read = 4096;
  EXPECT_EQ(writer_.Write(Message(100, 1)).code(), StatusCode::kInternal);
}

TEST_F(LaneTest, WhatIsPutIsReadWhenItIsPublished) {
  for (unsigned i = 0; i < 3; ++i) ASSERT_TRUE(IsOk(writer_.Put(Message(i, i))));
  EXPECT_FALSE(Need(reader_.Read(message_)));
  EXPECT_TRUE(IsOk(writer_.Check()));
  const std::uint32_t seen = reader_.bell();
  writer_.PublishSilently();
  EXPECT_EQ(reader_.bell(), seen);
  ASSERT_TRUE(IsOk(writer_.Put(Message(3, 3))));
  for (unsigned i = 0; i < 3; ++i) {
    ASSERT_TRUE(Need(reader_.Read(message_)));
    EXPECT_EQ(message_, Message(i, i));
  }
  EXPECT_FALSE(Need(reader_.Read(message_)));
  writer_.Publish();
  EXPECT_NE(reader_.bell(), seen);
  ASSERT_TRUE(Need(reader_.Read(message_)));
  EXPECT_EQ(message_, Message(3, 3));
}

// Whatever byte is changed, what is read is what was written, or an error.
TEST_F(LaneTest, AChangedByteIsNeverReadAsAMessage) {
  const std::vector<std::byte> sent = Message(40, 3);
  ASSERT_TRUE(IsOk(writer_.Write(sent)));
  for (std::size_t at = 0; at < RecordSize(40); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      ring_[at] ^= static_cast<std::byte>(1 << bit);
      LaneReader reader(Lane{&state_, ring_});
      const auto read = reader.Read(message_);
      EXPECT_FALSE(read.ok()) << at;
      ring_[at] ^= static_cast<std::byte>(1 << bit);
    }
  }
  ASSERT_TRUE(Need(reader_.Read(message_)));
  EXPECT_EQ(message_, sent);
}

TEST_F(LaneTest, RandomDamageNeverCrashesAndNeverInvents) {
  std::mt19937 random(7);
  for (int round = 0; round < 5000; ++round) {
    LaneState state{};
    std::vector<std::byte> ring(kRing);
    LaneWriter writer(Lane{&state, ring});
    LaneReader reader(Lane{&state, ring});
    std::vector<std::vector<std::byte>> sent;
    for (unsigned i = 0; i < 4; ++i) {
      sent.push_back(Message(random() % 100, i));
      ASSERT_TRUE(IsOk(writer.Write(sent.back())));
    }
    for (int damage = 0; damage < 3; ++damage) {
      const bool cursor = random() % 4 == 0;
      if (cursor) {
        (random() % 2 == 0 ? state.written : state.read) = static_cast<std::uint32_t>(random());
      } else {
        ring[random() % ring.size()] = static_cast<std::byte>(random());
      }
    }
    for (std::size_t i = 0;; ++i) {
      const auto read = reader.Read(message_);
      if (!read.ok() || !*read) break;
      ASSERT_LT(i, sent.size());
      ASSERT_EQ(message_, sent[i]);
    }
  }
}

}  // namespace
}  // namespace keel::task
