#include "task/lane.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace keel::task {
namespace {

// Any change of one word changes the sum of 64 bits, of which half is kept.
class Checksum {
 public:
  void Add(std::uint64_t word) {
    sum_ = (sum_ ^ word) * 0x9e37'79b9'7f4a'7c15;
    sum_ ^= sum_ >> 32;
  }
  std::uint32_t value() const { return static_cast<std::uint32_t>(sum_); }

 private:
  std::uint64_t sum_ = 0;
};

std::uint32_t ChecksumOf(const RecordHeader& header, std::span<const std::byte> message) {
  Checksum checksum;
  checksum.Add(header.sequence);
  checksum.Add(header.length);
  std::uint64_t word = 0;
  while (message.size() >= sizeof(word)) {
    std::memcpy(&word, message.data(), sizeof(word));
    checksum.Add(word);
    message = message.subspan(sizeof(word));
  }
  if (!message.empty()) {
    word = 0;
    std::memcpy(&word, message.data(), message.size());
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

Status DamagedLane(const char* what) {
  return Internal(
      fmt::format("a lane between the orchestrator and the worker is damaged: {}", what));
}

}  // namespace

Status LaneWriter::Check() {
  read_ = lane_.state->read.load(std::memory_order_acquire);
  damaged_ = damaged_ || written_ - read_ > lane_.ring.size() || read_ % 8 != 0 ||
             lane_.state->written.load(std::memory_order_relaxed) != published_;
  return damaged_ ? DamagedLane("a cursor points nowhere") : OkStatus();
}

Status LaneWriter::Put(std::span<const std::byte> message) {
  const std::size_t size = RecordSize(message.size());
  if (size > lane_.ring.size()) {
    return OutOfRange(fmt::format("a message of {} bytes does not fit into a lane of {}",
                                  message.size(), lane_.ring.size()));
  }
  if (damaged_ || lane_.state->written.load(std::memory_order_relaxed) != published_ ||
      lane_.ring.size() - (written_ - read_) < size) {
    KEEL_TRY(Check());
    const std::uint32_t used = written_ - read_;
    if (lane_.ring.size() - used < size) {
      return ResourceExhausted(
          fmt::format("the lane is full: {} of {} bytes are under way", used, lane_.ring.size()));
    }
  }
  RecordHeader header{.length = static_cast<std::uint32_t>(message.size()),
                      .sequence = sequence_++};
  header.checksum = ChecksumOf(header, message);
  CopyIn(lane_.ring, written_, std::as_bytes(std::span(&header, 1)));
  CopyIn(lane_.ring, written_ + static_cast<std::uint32_t>(sizeof(header)), message);
  written_ += static_cast<std::uint32_t>(size);
  return OkStatus();
}

void LaneWriter::PublishSilently() {
  published_ = written_;
  lane_.state->written.store(written_, std::memory_order_release);
}

void LaneWriter::Publish() {
  PublishSilently();
  Ring(lane_.state->bell);
}

Status LaneWriter::Write(std::span<const std::byte> message) {
  KEEL_TRY(Put(message));
  Publish();
  return OkStatus();
}

Status LaneReader::Damaged(const char* what) {
  damaged_ = true;
  return DamagedLane(what);
}

Result<bool> LaneReader::Read(std::vector<std::byte>& message) {
  if (damaged_) return DamagedLane("it was found so before");
  if (written_ == read_) written_ = lane_.state->written.load(std::memory_order_acquire);
  const std::uint32_t there = written_ - read_;
  if (there == 0) return false;
  if (there > lane_.ring.size() || there % 8 != 0) return Damaged("a cursor points nowhere");
  RecordHeader header;
  if (there < sizeof(header)) return Damaged("a record has no header");
  CopyOut(std::as_writable_bytes(std::span(&header, 1)), lane_.ring, read_);
  if (header.length > there || RecordSize(header.length) > there) {
    return Damaged("a record is longer than what was written");
  }
  if (header.sequence != sequence_) return Damaged("a record has a wrong number");
  message.resize(header.length);
  CopyOut(message, lane_.ring, read_ + static_cast<std::uint32_t>(sizeof(header)));
  if (ChecksumOf(header, message) != header.checksum)
    return Damaged("a record has a wrong checksum");
  ++sequence_;
  read_ += static_cast<std::uint32_t>(RecordSize(header.length));
  lane_.state->read.store(read_, std::memory_order_release);
  return true;
}

}  // namespace keel::task
