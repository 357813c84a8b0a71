#include "task/lane.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace keel::task {
namespace {

std::uint32_t ChecksumOf(std::uint64_t sequence, std::span<const std::byte> bytes) {
  LaneChecksum checksum(sequence, bytes.size());
  const std::byte* from = bytes.data();
  std::size_t size = bytes.size();
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

// The same of a message that fits into a slot, which it copies, word by word: who reads words of it
// next need not wait until the copy is in memory.
std::uint32_t CopyShort(std::uint64_t sequence, std::byte* to, std::span<const std::byte> from) {
  LaneChecksum checksum(sequence, from.size());
  const std::byte* at = from.data();
  std::uint64_t word = 0;
  for (const std::byte* const last = at + from.size() / sizeof(word) * sizeof(word); at != last;
       at += sizeof(word), to += sizeof(word)) {
    std::memcpy(&word, at, sizeof(word));
    std::memcpy(to, &word, sizeof(word));
    checksum.Add(word);
  }
  if (const std::size_t rest = from.size() % sizeof(word); rest != 0) {
    word = 0;
    std::memcpy(&word, at, rest);
    std::memcpy(to, &word, rest);
    checksum.Add(word);
  }
  return checksum.value();
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

Status LaneWriter::MakeRoom(std::size_t bytes) {
  KEEL_TRY(Check());
  if (HasRoom(bytes)) return OkStatus();
  return ResourceExhausted(
      fmt::format("the lane is full: {} messages are under way", written_ - read_));
}

Status LaneWriter::Put(std::span<const std::byte> message) {
  const std::size_t size = RingSize(message.size());
  if (size > lane_.ring.size()) {
    return OutOfRange(fmt::format("a message of {} bytes does not fit into a lane of {}",
                                  message.size(), lane_.ring.size()));
  }
  if (!CanPut(size)) KEEL_TRY(MakeRoom(size));
  LaneSlot& slot = lane_.slots[written_ % kLaneSlots];
  slot.length = static_cast<std::uint32_t>(message.size());
  if (size == 0) {
    slot.checksum = CopyShort(sequence_, slot.bytes, message);
  } else {
    slot.checksum = ChecksumOf(sequence_, message);
    CopyIn(lane_.ring, bytes_, message);
    bytes_ += static_cast<std::uint32_t>(size);
  }
  Publish(slot);
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
    if (sequence != before()) return Damaged("a message has a wrong number");
    constexpr std::uint32_t kLooksPerCheck = 64;
    if (++looks_ % kLooksPerCheck == 0) KEEL_TRY(Check());
    return false;
  }
  const std::uint32_t length = slot.length;
  const std::uint32_t checksum = slot.checksum;
  const std::size_t size = RingSize(length);
  if (size > lane_.ring.size()) return Damaged("a message is longer than the ring");
  if (message.size() != length) message.resize(length);
  std::uint32_t found = 0;
  if (size == 0) {
    found = CopyShort(sequence, message.data(), {slot.bytes, length});
  } else {
    CopyOut(message, lane_.ring, bytes_);
    bytes_ += static_cast<std::uint32_t>(size);
    lane_.state->read_bytes.store(bytes_, std::memory_order_release);
    found = ChecksumOf(sequence, message);
  }
  if (found != checksum) return Damaged("a message has a wrong checksum");
  lane_.state->read.store(static_cast<std::uint32_t>(sequence_++), std::memory_order_release);
  return true;
}

}  // namespace keel::task
