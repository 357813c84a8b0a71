#include "task/mpi/frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>

namespace keel::task::mpi {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

int DataTag(FrameTag tag) { return static_cast<int>(tag) + 1; }

void Split(Region& region, const Extent& extent, std::vector<Piece>& pieces) {
  for (std::uint64_t at = 0; at < extent.size; at += kPieceSize) {
    pieces.emplace_back(region.at(extent.place + at),
                        std::min<std::uint64_t>(kPieceSize, extent.size - at));
  }
}

template <class Wanted>
std::vector<Extent> TensorsOf(const TaskMessage& task, Wanted wanted) {
  std::vector<Extent> extents;
  const auto& arguments = task.arguments;
  for (std::size_t i = 0; i < arguments.tensors().size(); ++i) {
    const Tensor& tensor = arguments.tensors()[i];
    if (tensor.resident() || tensor.size().empty() || !wanted(arguments.tags()[i])) continue;
    extents.push_back({tensor.address, tensor.size().count()});
  }
  return extents;
}

std::vector<Extent> WindowOf(const Request& request) {
  if (request.size == 0) return {};
  return {{request.place, request.size}};
}

Status Nonsense(int rank, std::string_view what) {
  return Internal(fmt::format("rank {} sent nonsense: {}", rank, what));
}

}  // namespace

std::int64_t LeftUntil(Deadline deadline) {
  if (deadline.never()) return kNever;
  // Before the clock began: long past.
  if (deadline.when() < Deadline::Clock::time_point{}) return -1;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.when() -
                                                              Deadline::Clock::now())
      .count();
}

Deadline AfterLeft(std::int64_t left) { return Deadline::After(std::chrono::nanoseconds(left)); }

std::vector<Extent> BytesTo(const TaskMessage& task) {
  return TensorsOf(task, [](Tag tag) { return Reads(tag); });
}

std::vector<Extent> BytesFrom(const TaskMessage& task) {
  return TensorsOf(task, [](Tag tag) { return Writes(tag); });
}

std::vector<Extent> BytesTo(const Request& request) {
  const bool has = request.kind == RequestKind::kCopyTo || request.kind == RequestKind::kImagePart;
  return has ? WindowOf(request) : std::vector<Extent>();
}

std::vector<Extent> BytesFrom(const Request& request) {
  return request.kind == RequestKind::kCopyFrom ? WindowOf(request) : std::vector<Extent>();
}

Result<std::vector<Piece>> DataPieces(Region& region, std::span<const Extent> extents) {
  std::vector<Piece> pieces;
  for (const Extent& extent : extents) {
    if (!region.InData(extent.place, extent.size)) {
      return InvalidArgument(fmt::format("{} bytes of a tensor at {}: they are not in the data",
                                         extent.size, extent.place));
    }
    Split(region, extent, pieces);
  }
  return pieces;
}

Result<std::vector<Piece>> WindowPieces(Region& region, std::span<const Extent> extents) {
  std::vector<Piece> pieces;
  for (const Extent& extent : extents) {
    if (!region.InWindow(extent.place, extent.size)) {
      return InvalidArgument(
          fmt::format("{} bytes at {}: they are not in the window of control calls", extent.size,
                      extent.place));
    }
    Split(region, extent, pieces);
  }
  return pieces;
}

// --- Outbox --------------------------------------------------------------------------------------

Status Outbox::Send(int rank, FrameTag tag, FrameHead head, std::span<const std::byte> message,
                    std::span<const Piece> pieces, const std::shared_ptr<const void>& hold) {
  head.pieces = static_cast<std::uint32_t>(pieces.size());
  head.message = static_cast<std::uint32_t>(message.size());
  std::vector<std::byte> bytes(sizeof(head) + message.size());
  std::memcpy(bytes.data(), &head, sizeof(head));
  std::ranges::copy(message, bytes.begin() + sizeof(head));
  KEEL_ASSIGN(const KeelMpiHandle request, port_.Send(bytes, rank, tag));
  sent_.push_back({request, std::move(bytes), nullptr});
  for (const Piece& piece : pieces) {
    KEEL_ASSIGN(const KeelMpiHandle begun, port_.Send(piece, rank, DataTag(tag)));
    sent_.push_back({begun, {}, hold});
  }
  return OkStatus();
}

Result<bool> Outbox::Progress() {
  const std::size_t before = sent_.size();
  for (auto each = sent_.begin(); each != sent_.end();) {
    KEEL_ASSIGN(const auto done, port_.Done(each->request));
    each = done.has_value() ? sent_.erase(each) : each + 1;
  }
  return sent_.size() != before;
}

// --- FrameReader ---------------------------------------------------------------------------------

Result<FrameReader::Event> FrameReader::Poll() {
  for (;;) {
    switch (state_) {
      case State::kIdle: {
        KEEL_ASSIGN(auto message, port_.Match(rank_, tag_));
        if (!message.has_value()) return Event::kNothing;
        if (message->size < sizeof(FrameHead) || message->size > sizeof(FrameHead) + largest_) {
          return Nonsense(rank_, fmt::format("a message of {} bytes", message->size));
        }
        bytes_.resize(message->size);
        KEEL_ASSIGN(request_, port_.Receive(bytes_, *message));
        state_ = State::kReceiving;
        Moved();
        break;
      }
      case State::kReceiving: {
        KEEL_ASSIGN(const bool there, ReceiveHead());
        if (!there) return Event::kNothing;
        state_ = State::kHead;
        return Event::kHead;
      }
      case State::kHead:
        return Event::kHead;
      case State::kTaking: {
        KEEL_ASSIGN(const bool whole, ReceivePieces());
        if (!whole) return Event::kNothing;
        hold_.reset();
        state_ = State::kIdle;
        return Event::kWhole;
      }
      case State::kDropping: {
        KEEL_ASSIGN(const bool whole, DropPieces());
        if (!whole) return Event::kNothing;
        scratch_ = {};
        state_ = State::kIdle;
        break;
      }
    }
  }
}

Result<bool> FrameReader::ReceiveHead() {
  KEEL_ASSIGN(const auto size, port_.Done(request_));
  if (!size.has_value()) return false;
  std::memcpy(&head_, bytes_.data(), sizeof(head_));
  if (head_.magic != FrameHead::kMagic) return Nonsense(rank_, "a message without its mark");
  if (*size != bytes_.size() || head_.message != bytes_.size() - sizeof(head_)) {
    return Nonsense(rank_, fmt::format("a message of {} bytes that says {}", *size - sizeof(head_),
                                       head_.message));
  }
  if (head_.pieces > kMostPieces) {
    return Nonsense(rank_, fmt::format("a message with {} pieces of bytes", head_.pieces));
  }
  return true;
}

Status FrameReader::Take(std::vector<Piece> pieces, std::shared_ptr<const void> hold) {
  pieces_ = std::move(pieces);
  hold_ = std::move(hold);
  requests_.clear();
  done_ = 0;
  for (const Piece& piece : pieces_) {
    KEEL_ASSIGN(const KeelMpiHandle begun, port_.Receive(piece, rank_, DataTag(tag_)));
    requests_.push_back(begun);
  }
  state_ = State::kTaking;
  Moved();
  return OkStatus();
}

Result<bool> FrameReader::ReceivePieces() {
  for (; done_ < requests_.size(); ++done_) {
    KEEL_ASSIGN(const auto size, port_.Done(requests_[done_]));
    if (!size.has_value()) return false;
    if (*size != pieces_[done_].size()) {
      return Nonsense(rank_,
                      fmt::format("{} bytes where {} were due", *size, pieces_[done_].size()));
    }
    Moved();
  }
  return true;
}

void FrameReader::Drop() {
  done_ = 0;
  dropping_ = false;
  state_ = State::kDropping;
  Moved();
}

Result<bool> FrameReader::DropPieces() {
  while (done_ < head_.pieces) {
    if (!dropping_) {
      scratch_.resize(kPieceSize);
      KEEL_ASSIGN(request_, port_.Receive(scratch_, rank_, DataTag(tag_)));
      dropping_ = true;
    }
    KEEL_ASSIGN(const auto size, port_.Done(request_));
    if (!size.has_value()) return false;
    dropping_ = false;
    ++done_;
    Moved();
  }
  return true;
}

}  // namespace keel::task::mpi
