// Frames: how the messages of the lanes (messages.h) travel between ranks, with the bytes that
// belong to them.
//
// A region has a twin on the other side with the same layout (region.h), so that a place means the
// same on both. A frame is a head with an encoded message, and then the bytes of the places that
// the message names, in pieces, straight from the one region into the other. Both sides work out
// the places from the message; the head only says how many pieces come, so that those of a frame
// that is not wanted can be thrown away.
//
// Tasks and control have tags of their own, as they have lanes of their own, and the bytes of each
// too. A frame that was begun is always sent to its end, also if its session (bridge.h) has ended.
//
// Deadlines are of one machine's clock: how much is left travels in the head, and is counted from
// when it arrives.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "keel/base/deadline.h"
#include "keel/base/result.h"
#include "task/messages.h"
#include "task/mpi/port.h"
#include "task/region.h"

namespace keel::task::mpi {

// The bytes of a frame have the next tag.
enum FrameTag : int {
  kTaskTag = 1,
  kTaskReplyTag = 3,
  kControlTag = 5,
  kControlReplyTag = 7,
  kLifeTag = 9,  // life.h; without bytes
};

// The values travel, in the byte order of the machine: another one does not know the magic.
struct FrameHead {
  static constexpr std::uint64_t kMagic = 0x4d52'4649'504d'4c4bULL;  // "KLMPIFRM"
  std::uint64_t magic = kMagic;
  std::uint64_t session = 0;
  std::int64_t left = 0;      // nanoseconds until the deadline; the largest: never
  std::uint32_t pieces = 0;   // that follow
  std::uint32_t message = 0;  // bytes of it
};
static_assert(sizeof(FrameHead) == 32);

// What is sent at a time: MPI counts in int, and nothing is gained by more.
inline constexpr std::size_t kPieceSize = 16 << 20;
// Of one frame: more bytes than a region has.
inline constexpr std::uint32_t kMostPieces = 1 << 20;

std::int64_t LeftUntil(Deadline deadline);
Deadline AfterLeft(std::int64_t left);

struct Extent {
  Place place = 0;
  std::uint64_t size = 0;
};
// What goes with a message, and what comes with its answer if that is OK.
std::vector<Extent> BytesTo(const TaskMessage& task);
std::vector<Extent> BytesFrom(const TaskMessage& task);
std::vector<Extent> BytesTo(const Request& request);
std::vector<Extent> BytesFrom(const Request& request);

using Piece = std::span<std::byte>;
// kInvalidArgument: a place is not in the data (tasks), or in the window (control).
Result<std::vector<Piece>> DataPieces(Region& region, std::span<const Extent> extents);
Result<std::vector<Piece>> WindowPieces(Region& region, std::span<const Extent> extents);

// What was sent and has not arrived yet.
class Outbox {
 public:
  explicit Outbox(Port& port) : port_(port) {}
  // `hold` is what the pieces lie in. The head's counts are filled in.
  Status Send(int rank, FrameTag tag, FrameHead head, std::span<const std::byte> message,
              std::span<const Piece> pieces = {},
              const std::shared_ptr<const void>& hold = nullptr);
  // Forgets what has arrived. True: something has.
  Result<bool> Progress();
  bool empty() const { return sent_.empty(); }

 private:
  struct Sent {
    KeelMpiHandle request{};
    std::vector<std::byte> bytes;
    std::shared_ptr<const void> hold;
  };
  Port& port_;
  std::deque<Sent> sent_;
};

// The frames of one tag from one rank, one after the other.
class FrameReader {
 public:
  // `largest`: the message.
  FrameReader(Port& port, int rank, FrameTag tag, std::size_t largest)
      : port_(port), rank_(rank), tag_(tag), largest_(largest) {}

  enum class Event : std::uint8_t {
    kNothing,
    kHead,   // head() and message() are there: Take or Drop
    kWhole,  // all pieces of the one that was taken are there
  };
  // kInternal: what came is no frame; there will be no other.
  Result<Event> Poll();
  const FrameHead& head() const { return head_; }
  std::span<const std::byte> message() const {
    return std::span(bytes_).subspan(sizeof(FrameHead), head_.message);
  }
  // As many as the head says.
  Status Take(std::vector<Piece> pieces, std::shared_ptr<const void> hold);
  void Drop();
  // Whether nothing has begun.
  bool idle() const { return state_ == State::kIdle; }
  // Since when the next part of a frame that has begun is awaited. A sender always sends it to its
  // end, unless it lied about how many there are. The largest time: nothing is.
  std::chrono::steady_clock::time_point awaited_since() const {
    return idle() ? std::chrono::steady_clock::time_point::max() : moved_;
  }

 private:
  enum class State : std::uint8_t { kIdle, kReceiving, kHead, kTaking, kDropping };
  Result<bool> ReceiveHead();
  Result<bool> ReceivePieces();
  Result<bool> DropPieces();
  void Moved() { moved_ = std::chrono::steady_clock::now(); }

  Port& port_;
  const int rank_;
  const FrameTag tag_;
  const std::size_t largest_;
  State state_ = State::kIdle;
  std::chrono::steady_clock::time_point moved_{};
  KeelMpiHandle request_{};
  std::vector<std::byte> bytes_;
  FrameHead head_;
  std::vector<Piece> pieces_;
  std::vector<KeelMpiHandle> requests_;
  std::size_t done_ = 0;   // pieces
  bool dropping_ = false;  // a piece is being received
  std::vector<std::byte> scratch_;
  std::shared_ptr<const void> hold_;
};

}  // namespace keel::task::mpi
