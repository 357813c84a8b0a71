#include "task/lane.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/soon_test.h"
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

// A lane's memory.
struct Memory {
  LaneState state{};
  std::vector<LaneSlot> slots = std::vector<LaneSlot>(kLaneSlots);
  std::vector<std::byte> ring = std::vector<std::byte>(kRing);
  Lane lane() { return {&state, slots, ring}; }
};

class LaneTest : public ::testing::Test {
 protected:
  Memory memory_;
  LaneState& state_ = memory_.state;
  LaneWriter writer_{memory_.lane()};
  LaneReader reader_{memory_.lane()};
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

// Words are a message like any other.
TEST_F(LaneTest, WordsAreReadAsBytesAndBytesAsWords) {
  using Words = std::array<std::uint64_t, 2>;
  std::vector<std::byte> bytes(sizeof(Words));
  for (std::uint64_t i = 0; i < 3 * kLaneSlots; ++i) {
    const Words sent{~i, i << 33};
    std::memcpy(bytes.data(), sent.data(), sizeof(sent));
    ASSERT_TRUE(IsOk(writer_.Check()));
    ASSERT_TRUE(writer_.TryPutWords(sent));
    ASSERT_TRUE(Need(reader_.Read(message_)));
    ASSERT_EQ(message_, bytes);
    Words got{};
    EXPECT_FALSE(reader_.ReadWords(got)) << "there is none";
    ASSERT_TRUE(IsOk(writer_.Put(bytes)));
    ASSERT_TRUE(reader_.ReadWords(got));
    ASSERT_EQ(got, sent);
  }
  ASSERT_TRUE(IsOk(writer_.Put(Message(sizeof(Words) + 8, 1))));
  Words got{};
  EXPECT_FALSE(reader_.ReadWords(got)) << "it is longer";
  ASSERT_TRUE(Need(reader_.Read(message_)));
  EXPECT_EQ(message_, Message(sizeof(Words) + 8, 1));
}

TEST_F(LaneTest, WordsNeedAFreeSlot) {
  const std::array<std::uint64_t, 2> words{1, 2};
  for (std::size_t i = 0; i < kLaneSlots; ++i) ASSERT_TRUE(writer_.TryPutWords(words));
  EXPECT_FALSE(writer_.TryPutWords(words));
  ASSERT_TRUE(Need(reader_.Read(message_)));
  EXPECT_FALSE(writer_.TryPutWords(words)) << "it has not looked";
  ASSERT_TRUE(IsOk(writer_.Check()));
  EXPECT_TRUE(writer_.TryPutWords(words));
  ASSERT_TRUE(Need(reader_.Read(message_)));
  ASSERT_TRUE(IsOk(writer_.Check()));
  state_.written.store(12345);
  EXPECT_FALSE(writer_.TryPutWords(words)) << "its cursor was damaged";
}

// Of a short message each flipped bit is noticed, and told by Read; or, if it makes the message
// look as if it were not there, by Check.
TEST_F(LaneTest, DamagedWordsAreNotRead) {
  const std::array<std::uint64_t, 2> words{0x1234'5678'9abc'def0, 42};
  ASSERT_TRUE(writer_.TryPutWords(words));
  LaneSlot& slot = memory_.slots[0];
  const LaneSlot good = slot;
  auto* const bytes = reinterpret_cast<unsigned char*>(&slot);
  std::array<std::uint64_t, 2> got{};
  for (std::size_t bit = 0; bit < 8 * (sizeof(slot) - sizeof(slot.bytes) + sizeof(words)); ++bit) {
    bytes[bit / 8] ^= static_cast<unsigned char>(1U << bit % 8);
    LaneReader reader(memory_.lane());
    EXPECT_FALSE(reader.ReadWords(got)) << bit;
    const Result<bool> read = reader.Read(message_);
    EXPECT_FALSE(read.ok() && *read) << bit;
    EXPECT_EQ(reader.Check().code(), StatusCode::kInternal) << bit;
    slot = good;
  }
  EXPECT_TRUE(reader_.ReadWords(got));
  EXPECT_EQ(got, words);
}

TEST_F(LaneTest, IsEmptyWhileThereIsNothingToReadOrToSay) {
  for (std::size_t i = 0; i < 2 * kLaneSlots; ++i) {
    ASSERT_TRUE(reader_.Empty());
    ASSERT_TRUE(IsOk(writer_.Put(Message(8, 1))));
    ASSERT_FALSE(reader_.Empty());
    ASSERT_TRUE(Need(reader_.Read(message_)));
  }
  state_.written.fetch_add(1);
  EXPECT_FALSE(reader_.Empty()) << "something was written that is not there";
  state_.written.fetch_sub(1);
  LaneSlot& next = memory_.slots[0];
  next.sequence += kLaneSlots;
  EXPECT_FALSE(reader_.Empty()) << "something is there that was not written";
}

TEST_F(LaneTest, AFullRingRefusesAndTakesMoreWhenItIsRead) {
  std::size_t fitted = 0;
  while (writer_.Write(Message(100, 0)).ok()) ++fitted;
  EXPECT_EQ(fitted, kRing / RingSize(100));
  EXPECT_EQ(writer_.Write(Message(100, 1)).code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(IsOk(writer_.Write(Message(LaneSlot::kShort, 1)))) << "it needs no room there";
  ASSERT_TRUE(Need(reader_.Read(message_)));
  EXPECT_TRUE(IsOk(writer_.Write(Message(100, 1))));
  EXPECT_EQ(writer_.Write(Message(kRing + 1, 1)).code(), StatusCode::kOutOfRange);
}

TEST_F(LaneTest, AsManyMessagesFitAsThereAreSlots) {
  for (unsigned i = 0; i < kLaneSlots; ++i) ASSERT_TRUE(IsOk(writer_.Write(Message(4, i))));
  EXPECT_EQ(writer_.Write(Message(0, 0)).code(), StatusCode::kResourceExhausted);
  ASSERT_TRUE(Need(reader_.Read(message_)));
  EXPECT_TRUE(IsOk(writer_.Write(Message(4, kLaneSlots))));
  for (unsigned i = 1; i <= kLaneSlots; ++i) {
    ASSERT_TRUE(Need(reader_.Read(message_)));
    ASSERT_EQ(message_, Message(4, i));
  }
  EXPECT_FALSE(Need(reader_.Read(message_)));
}

TEST_F(LaneTest, T6_WhatFitsIntoAnEmptyRingFitsWhereverTheCursorStands) {
  for (unsigned i = 0; i < 2 * kRing / 8; ++i) {
    ASSERT_TRUE(IsOk(writer_.Write(Message(LaneSlot::kShort + 1, 0))));  // moves the cursor by 24
    ASSERT_TRUE(Need(reader_.Read(message_)));
    ASSERT_TRUE(IsOk(writer_.Write(Message(kRing, i)))) << i;
    ASSERT_TRUE(Need(reader_.Read(message_)));
    ASSERT_EQ(message_, Message(kRing, i));
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
  for (const auto& [read, bytes] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{
           {2, 0}, {0x8000'0000, 0}, {0, 8}, {0, 4}, {0, 0xffff'0000}}) {
    LaneWriter writer(memory_.lane());
    state_.written = 0;
    state_.read = read;
    state_.read_bytes = bytes;
    EXPECT_EQ(writer.Check().code(), StatusCode::kInternal) << read << ' ' << bytes;
    state_.read = 0;
    state_.read_bytes = 0;
    EXPECT_EQ(writer.Write(Message(8, 0)).code(), StatusCode::kInternal)
        << "a damaged lane was used again";
  }
}

// The reader looks at the writer's cursor when it has waited for a while.
TEST_F(LaneTest, AMessageThatIsNotThereIsAnError) {
  ASSERT_TRUE(IsOk(writer_.Write(Message(8, 0))));
  EXPECT_TRUE(IsOk(reader_.Check()));
  ASSERT_TRUE(Need(reader_.Read(message_)));
  EXPECT_TRUE(IsOk(reader_.Check()));
  state_.written = 0;
  EXPECT_TRUE(IsOk(reader_.Check())) << "the writer has not got that far";
  state_.written = 2;
  EXPECT_EQ(reader_.Check().code(), StatusCode::kInternal);
  EXPECT_FALSE(reader_.Read(message_).ok()) << "a damaged lane was used again";
}

// Somebody who looks all the time finds out without asking.
TEST_F(LaneTest, AMessageThatWasTakenBackIsNoticed) {
  ASSERT_TRUE(IsOk(writer_.Write(Message(8, 0))));
  memory_.slots[0].sequence = 0;
  bool noticed = false;
  for (int i = 0; i < 100 && !noticed; ++i) noticed = !reader_.Read(message_).ok();
  EXPECT_TRUE(noticed);
}

TEST_F(LaneTest, AReaderNoticesThatItsOwnCursorsWereDamaged) {
  ASSERT_TRUE(IsOk(writer_.Write(Message(100, 0))));
  ASSERT_TRUE(Need(reader_.Read(message_)));
  ASSERT_TRUE(IsOk(reader_.Check()));
  LaneReader other = reader_;
  state_.read = 0;
  EXPECT_EQ(reader_.Check().code(), StatusCode::kInternal);
  state_.read = 1;
  state_.read_bytes = 0;
  EXPECT_EQ(other.Check().code(), StatusCode::kInternal);
}

// Whoever waited for it may look late.
TEST_F(LaneTest, ASignHoldsAlsoWhenItsSlotIsUsedAgain) {
  const Sign sign = reader_.next();
  for (unsigned i = 0; i <= kLaneSlots; ++i) {
    ASSERT_TRUE(IsOk(writer_.Write(Message(4, i))));
    ASSERT_TRUE(Need(reader_.Read(message_)));
  }
  EXPECT_TRUE(sign.there());
  EXPECT_FALSE(reader_.next().there());
}

TEST_F(LaneTest, ANumberThatCannotBeIsAnError) {
  for (unsigned i = 0; i < kLaneSlots; ++i) {
    ASSERT_TRUE(IsOk(writer_.Write(Message(4, i))));
    ASSERT_TRUE(Need(reader_.Read(message_)));
  }
  // The first slot has what was there in the last round.
  EXPECT_FALSE(Need(reader_.Read(message_)));
  memory_.slots[0].sequence = 2;
  EXPECT_EQ(reader_.Read(message_).status().code(), StatusCode::kInternal);
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
  state_.read_bytes = 4096;
  EXPECT_EQ(writer_.Write(Message(100, 1)).code(), StatusCode::kInternal);
}

TEST_F(LaneTest, WhatIsPutIsThereAndTheBellIsForThoseWhoSleep) {
  const std::uint32_t seen = reader_.bell();
  const Sign sign = reader_.next();
  EXPECT_FALSE(sign.there());
  EXPECT_FALSE(reader_.SpinWhile(seen));
  ASSERT_TRUE(IsOk(writer_.Put(Message(3, 3))));
  EXPECT_TRUE(sign.there());
  EXPECT_TRUE(reader_.SpinWhile(seen));
  writer_.Wake();
  EXPECT_EQ(reader_.bell(), seen) << "nobody sleeps";
  ASSERT_TRUE(Need(reader_.Read(message_)));
  EXPECT_EQ(message_, Message(3, 3));
  EXPECT_FALSE(reader_.next().there());

  std::thread sleeper(
      [&] { EXPECT_TRUE(reader_.WaitWhile(seen, Deadline::After(std::chrono::seconds(60)))); });
  EXPECT_TRUE(Soon([&] { return state_.bell.sleepers.load() == 1; }));
  ASSERT_TRUE(IsOk(writer_.Write(Message(4, 4))));
  sleeper.join();
  EXPECT_NE(reader_.bell(), seen);
  EXPECT_TRUE(Need(reader_.Read(message_)));
}

// Whatever byte is changed, what is read is what was written, or an error.
TEST_F(LaneTest, AChangedByteIsNeverReadAsAMessage) {
  for (const std::size_t size : {std::size_t{40}, LaneSlot::kShort, std::size_t{100}}) {
    Memory memory;
    const std::vector<std::byte> sent = Message(size, 3);
    ASSERT_TRUE(IsOk(LaneWriter(memory.lane()).Write(sent)));
    const auto each_bit = [&](std::span<std::byte> bytes) {
      for (std::byte& byte : bytes) {
        for (int bit = 0; bit < 8; ++bit) {
          byte ^= static_cast<std::byte>(1 << bit);
          LaneReader reader(memory.lane());
          const auto read = reader.Read(message_);
          // With a number of 0 it is not there yet, which somebody who waits finds out.
          EXPECT_TRUE(!read.ok() || (!*read && !reader.Check().ok()));
          byte ^= static_cast<std::byte>(1 << bit);
        }
      }
    };
    const auto slot = std::as_writable_bytes(std::span(memory.slots).first(1));
    each_bit(slot.first(RingSize(size) == 0 ? 16 + size : 16));
    if (RingSize(size) != 0) each_bit(std::span(memory.ring).first(size));
    LaneReader reader(memory.lane());
    ASSERT_TRUE(Need(reader.Read(message_)));
    EXPECT_EQ(message_, sent);
  }
}

// As a message of two numbers is, of which the signs are those of another.
TEST_F(LaneTest, EqualChangesOfTwoWordsDoNotMakeUpForEachOther) {
  for (int bit = 0; bit < 64; ++bit) {
    for (std::size_t other = 8; other < LaneSlot::kShort; other += 8) {
      Memory memory;
      LaneWriter writer(memory.lane());
      LaneReader reader(memory.lane());
      ASSERT_TRUE(IsOk(writer.Write(Message(LaneSlot::kShort, 3))));
      for (const std::size_t word : {std::size_t{0}, other}) {
        memory.slots[0].bytes[word + static_cast<std::size_t>(bit) / 8] ^= std::byte{1}
                                                                           << (bit % 8);
      }
      EXPECT_EQ(reader.Read(message_).status().code(), StatusCode::kInternal)
          << "bit " << bit << " of the words at 0 and " << other;
    }
  }
}

TEST_F(LaneTest, RandomDamageNeverCrashesAndNeverInvents) {
  std::mt19937 random(7);
  for (int round = 0; round < 5000; ++round) {
    Memory memory;
    LaneWriter writer(memory.lane());
    LaneReader reader(memory.lane());
    std::vector<std::vector<std::byte>> sent;
    for (unsigned i = 0; i < 4; ++i) {
      sent.push_back(Message(random() % 100, i));
      ASSERT_TRUE(IsOk(writer.Write(sent.back())));
    }
    for (int damage = 0; damage < 3; ++damage) {
      const auto slots = std::as_writable_bytes(std::span(memory.slots));
      switch (random() % 4) {
        case 0:
          (random() % 2 == 0 ? memory.state.written : memory.state.read) =
              static_cast<std::uint32_t>(random());
          break;
        case 1:
          memory.ring[random() % memory.ring.size()] = static_cast<std::byte>(random());
          break;
        default:
          slots[random() % (5 * sizeof(LaneSlot))] = static_cast<std::byte>(random());
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
