// A lane: messages from one thread to one other, perhaps in another process, through memory that
// both see.
//
// It has slots, two to a cache line, that are used in turn. A short message is in its slot; of a
// longer one the slot has the length, and the bytes are in a ring beside the slots, where they may
// lie across the end, so that what fits into an empty ring fits wherever the cursors stand. Nothing
// waits: a full lane refuses.
//
// What a lane costs is cache lines that go from core to core. So a reader waits for the slot
// itself, whose sequence number is written last: a short message arrives with the line that tells
// of it, often with the next one, and the slots are few enough to stay in the caches. The cursors,
// and the bell of a reader that sleeps, have lines of their own, which the other side looks at only
// when it must.
//
// Neither side trusts the other, or the memory. Each keeps its own cursors to itself and publishes
// copies; the reader copies a message out before it looks at it. A cursor, a length, a number or a
// checksum that cannot be is kInternal, and from then on every call is: a lane that was damaged
// once is not used again. The checksum is for accidents; whoever can write the memory can forge it.
//
// One thread writes, one reads; each has its own object, which owns nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "base/futex_wait.h"
#include "base/prefetch.h"
#include "keel/base/result.h"

namespace keel::task {

inline constexpr std::size_t kCacheLine = 64;
// So far apart are words that different cores write: processors also fetch the neighbours of a
// line.
inline constexpr std::size_t kApart = 256;

// What both sides share, beside the slots and the ring. All zeros: an empty lane.
struct LaneState {
  // The writer's: messages ever, modulo 2^32.
  alignas(kApart) std::atomic<std::uint32_t> written;
  // The reader's: messages ever, and bytes of the ring ever, modulo 2^32.
  alignas(kApart) std::atomic<std::uint32_t> read;
  std::atomic<std::uint32_t> read_bytes;
  alignas(kApart) FutexWord bell;  // of a reader that sleeps
};

struct alignas(kCacheLine / 2) LaneSlot {
  static constexpr std::size_t kShort = 16;
  std::uint64_t sequence;  // of messages, from 1 on
  std::uint32_t length;    // of the message
  std::uint32_t checksum;  // of the sequence number, the length and the message
  std::byte bytes[kShort];
};
static_assert(2 * sizeof(LaneSlot) == kCacheLine);

inline constexpr std::size_t kLaneSlots = 256;

// Memory that is a lane. The ring's size is a power of two, at most 2^30.
struct Lane {
  LaneState* state = nullptr;
  std::span<LaneSlot> slots;  // kLaneSlots
  std::span<std::byte> ring;
};

// What a message takes of the ring.
constexpr std::size_t RingSize(std::size_t message) {
  return message <= LaneSlot::kShort ? 0 : (message + 7) & ~std::size_t{7};
}

// Of a message, of which Add takes one word after the other. Any change of one word changes the sum
// of 64 bits, of which half is kept: each word counts an odd number of times, and each a different
// one; its upper half counts twice, or the highest bits of two words would make up for each other.
// No word waits for the one before it.
class LaneChecksum {
 public:
  LaneChecksum(std::uint64_t sequence, std::size_t size) {
    Add(sequence);
    Add(size);
  }
  void Add(std::uint64_t word) {
    sum_ += (word ^ (word >> 32)) * factor_;
    factor_ += 2 * kFactor;
  }
  std::uint32_t value() const { return static_cast<std::uint32_t>(sum_ ^ (sum_ >> 32)); }

 private:
  static constexpr std::uint64_t kFactor = 0x9e37'79b9'7f4a'7c15;
  std::uint64_t sum_ = 0;
  std::uint64_t factor_ = kFactor;
};

// A word that tells of a message, or of an answer: it is there, or was, when the lower half of the
// word has this value or a later one, modulo 2^32.
struct Sign {
  std::uint64_t* word = nullptr;
  std::uint32_t value = 0;
  bool there() const {
    if (word == nullptr) return false;
    const std::uint64_t now = std::atomic_ref<std::uint64_t>(*word).load(std::memory_order_acquire);
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(now) - value) >= 0;
  }
};

class LaneWriter {
 public:
  LaneWriter() = default;
  explicit LaneWriter(Lane lane) : lane_(lane) {}
  // Put and Wake.
  Status Write(std::span<const std::byte> message);
  // A reader that looks sees it from now on. kResourceExhausted: it does not fit now. kOutOfRange:
  // it never will.
  Status Put(std::span<const std::byte> message);
  // The same of a message of so few words that its slot has room for them. They go there from where
  // they are, which may be registers. Without a look at how far the reader is. False: Put must
  // tell.
  template <std::size_t kWords>
  [[gnu::always_inline]] bool TryPutWords(const std::array<std::uint64_t, kWords>& words) {
    return TryPutWords(words, std::make_index_sequence<kWords>());
  }
  // Has the next message's slot come to this core, while the writer does what else is to be done
  // before it writes: the reader that looks there has taken it away.
  void Expect() const { PrefetchForWrite(&lane_.slots[written_ % kLaneSlots]); }
  // Wakes a reader that sleeps, after any number of Puts.
  void Wake() { RingSleepers(lane_.state->bell); }
  // kInternal: the reader's cursor, or the published copy of this side's, was damaged.
  Status Check();

 private:
  // Word by word, and not in a loop, which would read two at a time what was stored one by one, and
  // wait for it.
  template <std::size_t kWords, std::size_t... kIndex>
  [[gnu::always_inline]] bool TryPutWords(const std::array<std::uint64_t, kWords>& words,
                                          std::index_sequence<kIndex...> /*all*/) {
    constexpr std::size_t kSize = kWords * sizeof(std::uint64_t);
    static_assert(kSize <= LaneSlot::kShort);
    if (!CanPut(0)) [[unlikely]] {
      return false;
    }
    LaneChecksum checksum(sequence_, kSize);
    (checksum.Add(words[kIndex]), ...);
    LaneSlot& slot = lane_.slots[written_ % kLaneSlots];
    slot.length = static_cast<std::uint32_t>(kSize);
    slot.checksum = checksum.value();
    (std::memcpy(slot.bytes + kIndex * sizeof(std::uint64_t), &words[kIndex],
                 sizeof(std::uint64_t)),
     ...);
    Publish(slot);
    return true;
  }
  bool HasRoom(std::size_t bytes) const {
    return written_ - read_ < kLaneSlots && lane_.ring.size() - (bytes_ - read_bytes_) >= bytes;
  }
  // For a message that takes so many bytes of the ring, as far as is known without a look at the
  // reader's cursors.
  bool CanPut(std::size_t bytes) const {
    return !damaged_ && lane_.state->written.load(std::memory_order_relaxed) == written_ &&
           HasRoom(bytes);
  }
  // Takes that look.
  Status MakeRoom(std::size_t bytes);
  // Who looks sees the message from now on.
  void Publish(LaneSlot& slot) {
    std::atomic_ref(slot.sequence).store(sequence_++, std::memory_order_release);
    // After the slot: who sees this can find it.
    lane_.state->written.store(++written_, std::memory_order_release);
  }

  Lane lane_;
  std::uint32_t written_ = 0;
  std::uint32_t bytes_ = 0;  // of the ring
  // The reader's, when they were looked at last.
  std::uint32_t read_ = 0;
  std::uint32_t read_bytes_ = 0;
  std::uint64_t sequence_ = 1;
  bool damaged_ = false;
};

class LaneReader {
  auto Ready(std::uint32_t seen) const {
    return [this, sign = next(), seen] { return sign.there() || bell() != seen; };
  }

 public:
  LaneReader() = default;
  explicit LaneReader(Lane lane) : lane_(lane) {}
  // True: `message` is the next one. False: there is none now.
  Result<bool> Read(std::vector<std::byte>& message);
  // The short way, for a message of just so many words in its slot. False: there is none, or it is
  // another one, or damaged, which Read tells.
  template <std::size_t kWords>
  bool ReadWords(std::array<std::uint64_t, kWords>& words) {
    return ReadWords(words, std::make_index_sequence<kWords>());
  }
  // kInternal: something was written that cannot be found, or the published copies of this side's
  // cursors were damaged. For who has waited for a while; Read does so now and then.
  Status Check();
  // Whether nothing is to be read or to be said: no message, and nothing that looks damaged.
  bool Empty() const {
    const auto read = static_cast<std::uint32_t>(sequence_ - 1);
    return !damaged_ && lane_.state->written.load(std::memory_order_acquire) == read &&
           std::atomic_ref(slot().sequence).load(std::memory_order_relaxed) == before();
  }
  // Of the next message, until it was read.
  Sign next() const { return {&slot().sequence, static_cast<std::uint32_t>(sequence_)}; }
  // Rung also for other reasons: read it before Read; if that found nothing, wait for another
  // value, or for a message.
  std::uint32_t bell() const { return lane_.state->bell.value.load(std::memory_order_acquire); }
  // Briefly, and without a look at the clock.
  bool SpinWhile(std::uint32_t seen) const { return SpinUntil(Ready(seen)); }
  bool WaitWhile(std::uint32_t seen, Deadline deadline) const {
    return WaitUntil(lane_.state->bell, Ready(seen), deadline);
  }

 private:
  template <std::size_t kWords, std::size_t... kIndex>
  bool ReadWords(std::array<std::uint64_t, kWords>& words, std::index_sequence<kIndex...> /*all*/) {
    constexpr std::size_t kSize = kWords * sizeof(std::uint64_t);
    static_assert(kSize <= LaneSlot::kShort);
    LaneSlot& slot = this->slot();
    if (damaged_ || std::atomic_ref(slot.sequence).load(std::memory_order_acquire) != sequence_ ||
        slot.length != kSize) {
      return false;
    }
    (std::memcpy(&words[kIndex], slot.bytes + kIndex * sizeof(std::uint64_t),
                 sizeof(std::uint64_t)),
     ...);
    LaneChecksum checksum(sequence_, kSize);
    (checksum.Add(words[kIndex]), ...);
    if (checksum.value() != slot.checksum) return false;
    lane_.state->read.store(static_cast<std::uint32_t>(sequence_++), std::memory_order_release);
    return true;
  }
  Status Damaged(const char* what);

  LaneSlot& slot() const { return lane_.slots[(sequence_ - 1) % kLaneSlots]; }
  // What the slot of the next message has until that is there.
  std::uint64_t before() const { return sequence_ > kLaneSlots ? sequence_ - kLaneSlots : 0; }

  Lane lane_;
  std::uint32_t bytes_ = 0;  // of the ring
  std::uint64_t sequence_ = 1;
  std::uint32_t looks_ = 0;  // that found nothing
  bool damaged_ = false;
};

}  // namespace keel::task
