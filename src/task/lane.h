// A lane: messages from one thread to one other, perhaps in another process, through a ring of
// bytes in memory that both see.
//
// Each message is a record: length, checksum, sequence number, bytes, padding up to a multiple
// of 8. A record may lie across the end of the ring, so that what fits into an empty ring fits
// wherever the cursors stand. Nothing waits: a full ring refuses.
//
// Neither side trusts the other, or the memory. Each keeps its own cursor to itself and publishes a
// copy; the reader copies a message out before it looks at it. A cursor, a length, a number or a
// checksum that cannot be is kInternal, and from then on every call is: a lane that was damaged
// once is not used again. The checksum is for accidents; whoever can write the memory can forge it.
//
// What it costs is cache lines that go from core to core. So each side looks at the other's cursor
// only when what it saw of it last is used up.
//
// One thread writes, one reads; each has its own object, which owns nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/futex_wait.h"
#include "keel/base/result.h"

namespace keel::task {

// What both sides share, beside the ring. All zeros: an empty lane.
struct LaneState {
  alignas(64) std::atomic<std::uint32_t> written;  // bytes ever, modulo 2^32; the writer's
  FutexWord bell;                                  // rung when there may be something to read
  alignas(64) std::atomic<std::uint32_t> read;     // bytes ever, modulo 2^32; the reader's
};

// A piece of memory that is a lane. The ring's size is a power of two, at most 2^30.
struct Lane {
  LaneState* state = nullptr;
  std::span<std::byte> ring;
};

struct RecordHeader {
  std::uint32_t length = 0;    // of the message
  std::uint32_t checksum = 0;  // of the sequence number, the length and the message
  std::uint64_t sequence = 0;
};
static_assert(sizeof(RecordHeader) == 16);

// What a message takes of the ring.
constexpr std::size_t RecordSize(std::size_t message) {
  return sizeof(RecordHeader) + ((message + 7) & ~std::size_t{7});
}

class LaneWriter {
 public:
  LaneWriter() = default;
  explicit LaneWriter(Lane lane) : lane_(lane) {}
  // Put and Publish.
  Status Write(std::span<const std::byte> message);
  // The reader need not see it before it is published. kResourceExhausted: it does not fit now.
  // kOutOfRange: it never will.
  Status Put(std::span<const std::byte> message);
  // Shows the reader what was put, and rings.
  void Publish();
  // For a reader that waits for another bell.
  void PublishSilently();
  // kInternal: the reader's cursor, or the published copy of this side's, was damaged.
  Status Check();

 private:
  Lane lane_;
  std::uint32_t written_ = 0;
  std::uint32_t published_ = 0;
  std::uint32_t read_ = 0;  // the reader's, when it was looked at last
  std::uint64_t sequence_ = 0;
  bool damaged_ = false;
};

class LaneReader {
 public:
  LaneReader() = default;
  explicit LaneReader(Lane lane) : lane_(lane) {}
  // True: `message` is the next one. False: there is none now.
  Result<bool> Read(std::vector<std::byte>& message);
  // Read `bell()` before Read; if that found nothing, wait for another value.
  std::uint32_t bell() const { return lane_.state->bell.value.load(std::memory_order_acquire); }
  // What Read looks at next.
  std::array<const void*, 2> next() const {
    return {lane_.state, lane_.ring.data() + (read_ & (lane_.ring.size() - 1))};
  }
  // Briefly, and without a look at the clock.
  bool SpinWhile(std::uint32_t seen) const { return keel::SpinBriefly(lane_.state->bell, seen); }
  bool WaitWhile(std::uint32_t seen, Deadline deadline) const {
    return keel::WaitWhile(lane_.state->bell, seen, deadline);
  }

 private:
  Status Damaged(const char* what);

  Lane lane_;
  std::uint32_t read_ = 0;
  std::uint32_t written_ = 0;  // the writer's, when it was looked at last
  std::uint64_t sequence_ = 0;
  bool damaged_ = false;
};

}  // namespace keel::task
