// A lane: messages from one thread to one other, perhaps in another process, through memory that
// both see.
//
// It has slots, each a cache line, that are used in turn. A short message is in its slot; of a
// longer one the slot has the length, and the bytes are in a ring beside the slots, where they may
// lie across the end, so that what fits into an empty ring fits wherever the cursors stand. Nothing
// waits: a full lane refuses.
//
// What a lane costs is cache lines that go from core to core. So a reader waits for the slot
// itself, whose sequence number is written last: a short message arrives with the line that tells
// of it, and the slots are few enough to stay in the caches. The cursors, and the bell of a reader
// that sleeps, have lines of their own, which the other side looks at only when it must.
//
// Neither side trusts the other, or the memory. Each keeps its own cursors to itself and publishes
// copies; the reader copies a message out before it looks at it. A cursor, a length, a number or a
// checksum that cannot be is kInternal, and from then on every call is: a lane that was damaged
// once is not used again. The checksum is for accidents; whoever can write the memory can forge it.
//
// One thread writes, one reads; each has its own object, which owns nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/futex_wait.h"
#include "keel/base/result.h"

namespace keel::task {

inline constexpr std::size_t kCacheLine = 64;

// What both sides share, beside the slots and the ring. All zeros: an empty lane.
struct LaneState {
  // The writer's: messages ever, modulo 2^32.
  alignas(kCacheLine) std::atomic<std::uint32_t> written;
  // The reader's: messages ever, and bytes of the ring ever, modulo 2^32.
  alignas(kCacheLine) std::atomic<std::uint32_t> read;
  std::atomic<std::uint32_t> read_bytes;
  alignas(kCacheLine) FutexWord bell;  // of a reader that sleeps
};

struct alignas(kCacheLine) LaneSlot {
  static constexpr std::size_t kShort = 48;
  std::uint64_t sequence;  // of messages, from 1 on
  std::uint32_t length;    // of the message
  std::uint32_t checksum;  // of the sequence number, the length and the message
  std::byte bytes[kShort];
};
static_assert(sizeof(LaneSlot) == kCacheLine);

inline constexpr std::size_t kLaneSlots = 64;

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
  // Wakes a reader that sleeps, after any number of Puts.
  void Wake() { RingSleepers(lane_.state->bell); }
  // kInternal: the reader's cursor, or the published copy of this side's, was damaged.
  Status Check();

 private:
  bool HasRoom(std::size_t bytes) const {
    return written_ - read_ < kLaneSlots && lane_.ring.size() - (bytes_ - read_bytes_) >= bytes;
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
  // kInternal: something was written that cannot be found, or the published copies of this side's
  // cursors were damaged. For who has waited for a while; Read does so now and then.
  Status Check();
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
  Status Damaged(const char* what);

  LaneSlot& slot() const { return lane_.slots[(sequence_ - 1) % kLaneSlots]; }

  Lane lane_;
  std::uint32_t bytes_ = 0;  // of the ring
  std::uint64_t sequence_ = 1;
  std::uint32_t looks_ = 0;  // that found nothing
  bool damaged_ = false;
};

}  // namespace keel::task
