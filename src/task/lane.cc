#include "task/lane.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>

namespace keel::task {
namespace {

std::uint32_t Checksum(const RecordHeader& header, std::span<const std::byte> message) {
  uLong crc = crc32(0, reinterpret_cast<const Bytef*>(&header.sequence), sizeof(header.sequence));
  crc = crc32(crc, reinterpret_cast<const Bytef*>(&header.length), sizeof(header.length));
  // Of no bytes at all zlib would take a null pointer for the wish to begin anew.
  if (!message.empty()) {
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(message.data()), message.size());
  }
  return static_cast<std::uint32_t>(crc);
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
  const std::uint32_t read = lane_.state->read.load(std::memory_order_acquire);
  damaged_ = damaged_ || written_ - read > lane_.ring.size() || read % 8 != 0 ||
             lane_.state->written.load(std::memory_order_relaxed) != written_;
  return damaged_ ? DamagedLane("a cursor points nowhere") : OkStatus();
}

Status LaneWriter::Write(std::span<const std::byte> message) {
  const std::size_t size = RecordSize(message.size());
  if (size > lane_.ring.size()) {
    return OutOfRange(fmt::format("a message of {} bytes does not fit into a lane of {}",
                                  message.size(), lane_.ring.size()));
  }
  KEEL_TRY(Check());
  const std::uint32_t used = written_ - lane_.state->read.load(std::memory_order_acquire);
  // The cursor may have been damaged since; then this only writes over a ring that is lost anyway.
  if (used > lane_.ring.size() || lane_.ring.size() - used < size) {
    return ResourceExhausted(
        fmt::format("the lane is full: {} of {} bytes are under way", used, lane_.ring.size()));
  }
  RecordHeader header{.length = static_cast<std::uint32_t>(message.size()),
                      .sequence = sequence_++};
  header.crc = Checksum(header, message);
  CopyIn(lane_.ring, written_, std::as_bytes(std::span(&header, 1)));
  CopyIn(lane_.ring, written_ + static_cast<std::uint32_t>(sizeof(header)), message);
  written_ += static_cast<std::uint32_t>(size);
  lane_.state->written.store(written_, std::memory_order_release);
  Ring(lane_.state->bell);
  return OkStatus();
}

Status LaneReader::Damaged(const char* what) {
  damaged_ = true;
  return DamagedLane(what);
}

Result<bool> LaneReader::Read(std::vector<std::byte>& message) {
  if (damaged_) return DamagedLane("it was found so before");
  const std::uint32_t there = lane_.state->written.load(std::memory_order_acquire) - read_;
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
  if (Checksum(header, message) != header.crc) return Damaged("a record has a wrong checksum");
  ++sequence_;
  read_ += static_cast<std::uint32_t>(RecordSize(header.length));
  lane_.state->read.store(read_, std::memory_order_release);
  return true;
}

}  // namespace keel::task
