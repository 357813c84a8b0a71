#include "task/lane.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace keel::task {
namespace {

// Any change of one word changes the sum of 64 bits, of which half is kept: each word counts an odd
// number of times, and each a different one; its upper half counts twice, or the highest bits of
// two words would make up for each other. No word waits for the one before it.
class Checksum {
 public:
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

std::uint32_t ChecksumOf(std::uint64_t sequence, const std::byte* from, std::size_t size) {
  Checksum checksum;
  checksum.Add(sequence);
  checksum.Add(size);
  std::uint64_t word = 0;
  for (; size >= sizeof(word); from += sizeof(word), size -= sizeof(word)) {
    std::memcpy(&word, from, sizeof(word));
    checksum.Add(word);
  }
  if (size != 0) {
    word = 0;
    std::memcpy(&word, from, size);
    checksum.Add(word);
  }
  return checksum.value();
}

// Of a message that fits into a slot. Most have whole words.
void CopyShort(std::byte* to, const std::byte* from, std::size_t size) {
  std::size_t at = 0;
  for (std::uint64_t word = 0; at + sizeof(word) <= size; at += sizeof(word)) {
    std::memcpy(&word, from + at, sizeof(word));
    std::memcpy(to + at, &word, sizeof(word));
  }
  if (at != size) std::memcpy(to + at, from + at, size - at);
}

void CopyIn(std::span<std::byte> ring, std::uint32_t at, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const std::size_t begin = at & (ring.size() - 1);
  const std::size_t first = std::min(bytes.size(), ring.size() - begin);
  std::memcpy(ring.data() + begin, bytes.data(), first);
  if (first < bytes.size()) {
    std::memcpy(ring.data(), bytes.data() + first, bytes.size() - first);
  }
}

void CopyOut(std::span<std::byte> bytes, std::span<const std::byte> ring, std::uint32_t at) {
  if (bytes.empty()) return;
  const std::size_t begin = at & (ring.size() - 1);
  const std::size_t first = std::min(bytes.size(), ring.size() - begin);
  std::memcpy(bytes.data(), ring.data() + begin, first);
  if (first < bytes.size()) {
    std::memcpy(bytes.data() + first, ring.data(), bytes.size() - first);
  }
}

std::atomic_ref<std::uint64_t> Number(LaneSlot& slot) { return std::atomic_ref(slot.sequence); }

Status DamagedLane(const char* what) {
  return Internal(
      fmt::format("a lane between the orchestrator and the worker is damaged: {}", what));
}

}  // namespace

Status LaneWriter::Check() {
  read_ = lane_.state->read.load(std::memory_order_acquire);
  read_bytes_ = lane_.state->read_bytes.load(std::memory_order_acquire);
  damaged_ = damaged_ || written_ - read_ > kLaneSlots ||
             bytes_ - read_bytes_ > lane_.ring.size() || read_bytes_ % 8 != 0 ||
             lane_.state->written.load(std::memory_order_relaxed) != written_;
  return damaged_ ? DamagedLane("a cursor points nowhere") : OkStatus();
}

Status LaneWriter::Put(std::span<const std::byte> message) {
  const std::size_t size = RingSize(message.size());
  if (size > lane_.ring.size()) {
    return OutOfRange(fmt::format("a message of {} bytes does not fit into a lane of {}",
                                  message.size(), lane_.ring.size()));
  }
  if (damaged_ || lane_.state->written.load(std::memory_order_relaxed) != written_ ||
      !HasRoom(size)) {
    KEEL_TRY(Check());
    if (!HasRoom(size)) {
      return ResourceExhausted(
          fmt::format("the lane is full: {} messages are under way", written_ - read_));
    }
  }
  LaneSlot& slot = lane_.slots[written_ % kLaneSlots];
  slot.length = static_cast<std::uint32_t>(message.size());
  slot.checksum = ChecksumOf(sequence_, message.data(), message.size());
  if (size == 0) {
    CopyShort(slot.bytes, message.data(), message.size());
  } else {
    CopyIn(lane_.ring, bytes_, message);
    bytes_ += static_cast<std::uint32_t>(size);
  }
  Number(slot).store(sequence_++, std::memory_order_release);
  // After the slot: who sees this can find it.
  lane_.state->written.store(++written_, std::memory_order_release);
  return OkStatus();
}

Status LaneWriter::Write(std::span<const std::byte> message) {
  KEEL_TRY(Put(message));
  Wake();
  return OkStatus();
}

Status LaneReader::Damaged(const char* what) {
  damaged_ = true;
  return DamagedLane(what);
}

Status LaneReader::Check() {
  if (damaged_) return DamagedLane("it was found so before");
  const std::uint32_t written = lane_.state->written.load(std::memory_order_acquire);
  const auto read = static_cast<std::uint32_t>(sequence_ - 1);
  // Behind: of what was read the writer has not said so yet.
  const bool missing = static_cast<std::int32_t>(written - read) > 0 &&
                       Number(slot()).load(std::memory_order_acquire) != sequence_;
  if (missing || lane_.state->read.load(std::memory_order_relaxed) != read ||
      lane_.state->read_bytes.load(std::memory_order_relaxed) != bytes_) {
    return Damaged("a cursor points nowhere");
  }
  return OkStatus();
}

Result<bool> LaneReader::Read(std::vector<std::byte>& message) {
  if (damaged_) return DamagedLane("it was found so before");
  LaneSlot& slot = this->slot();
  const std::uint64_t sequence = Number(slot).load(std::memory_order_acquire);
  if (sequence != sequence_) {
    // What was there the last time is there until the next message is.
    const std::uint64_t before = sequence_ > kLaneSlots ? sequence_ - kLaneSlots : 0;
    if (sequence != before) return Damaged("a message has a wrong number");
    constexpr std::uint32_t kLooksPerCheck = 64;
    if (++looks_ % kLooksPerCheck == 0) KEEL_TRY(Check());
    return false;
  }
  const std::uint32_t length = slot.length;
  const std::uint32_t checksum = slot.checksum;
  const std::size_t size = RingSize(length);
  if (size > lane_.ring.size()) return Damaged("a message is longer than the ring");
  message.resize(length);
  if (size == 0) {
    CopyShort(message.data(), slot.bytes, length);
  } else {
    CopyOut(message, lane_.ring, bytes_);
    bytes_ += static_cast<std::uint32_t>(size);
    lane_.state->read_bytes.store(bytes_, std::memory_order_release);
  }
  if (ChecksumOf(sequence, message.data(), length) != checksum) {
    return Damaged("a message has a wrong checksum");
  }
  lane_.state->read.store(static_cast<std::uint32_t>(sequence_++), std::memory_order_release);
  return true;
}

}  // namespace keel::task
