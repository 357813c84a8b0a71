// ControlCalls: the orchestrator's side of the control lanes: requests and their answers, one at a
// time, in turns (lane_worker.h says how they end).
//
// Any thread. Every call waits, at most until its deadline: kDeadlineExceeded. If the worker is
// lost they fail with the reason.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "keel/base/deadline.h"
#include "keel/base/mutex.h"
#include "keel/base/result.h"
#include "keel/task/image.h"
#include "task/lane.h"
#include "task/messages.h"
#include "task/peer.h"

namespace keel::task {

class ControlCalls {
 public:
  // `who` is for messages. The peer outlives it. `loss` says why the worker is lost, or OK; `lose`
  // that it makes no sense, or that a call was not over `grace` after its deadline.
  ControlCalls(std::string who, Peer& peer, std::chrono::nanoseconds grace,
               std::function<Status()> loss, std::function<void(Status)> lose);

  // How the worker's start went. Before everything else.
  Result<std::string> AwaitGreeting(Deadline deadline);

  // The number and the deadline of the request are filled in. Its own error is the result's.
  Result<Reply> Call(Request request, Deadline deadline);
  // Of kFree and kUnregister, as in Worker: they have to begin soon, because who gives something
  // back can come again.
  Status GiveBack(Request request, Deadline deadline);
  // In pieces, with a process.
  Status CopyTo(DeviceAddress destination, const std::byte* source, std::uint64_t size,
                Deadline deadline);
  Status CopyFrom(std::byte* destination, DeviceAddress source, std::uint64_t size,
                  Deadline deadline);
  Result<std::uint64_t> Register(const Image& image, Deadline deadline);
  // With a thread only.
  Result<std::uint64_t> RegisterFunction(const HostCode& code, Deadline deadline);
  // Of a process.
  Result<std::uint64_t> RegisterReference(const HostCode& code, Deadline deadline);
  // Does not wait for an answer; only for its turn.
  void SendStop(Deadline deadline);

 private:
  class Turn;
  Status Take(Deadline deadline);
  void Give();

  // All of these: it is the caller's turn.
  Result<Reply> Exchange(Request request, Deadline deadline) {
    return Exchange(request, deadline, deadline);
  }
  // Given up at `begin` if it was not begun by then.
  Result<Reply> Exchange(Request request, Deadline deadline, Deadline begin);
  // The answer with this number. No other can come: a call that was given up gets none.
  Result<Reply> Await(std::uint64_t number, Deadline deadline);
  // For a call that was begun in the caller's memory: until it has ended, whatever else happens.
  Result<Reply> AwaitEnd(std::uint64_t number);
  // To a process, one after the other, as the parts of an image.
  Status SendParts(std::span<const std::span<const std::byte>> parts, Deadline deadline);
  // Ends the call that was left behind, if there is one, and undoes it. If that hangs for too long
  // the worker is lost: everybody would wait for that call for ever.
  Status Settle(Deadline deadline);
  Status Nonsense(const Status& what);

  const std::string who_;
  Peer& peer_;
  const std::chrono::nanoseconds grace_;
  const std::function<Status()> loss_;
  const std::function<void(Status)> lose_;

  Mutex mutex_;
  CondVar turn_over_;
  bool busy_ KEEL_GUARDED_BY(mutex_) = false;

  // Of whose turn it is.
  LaneWriter requests_;
  LaneReader replies_;
  std::vector<std::byte> message_;
  std::uint64_t last_number_ = 0;
  bool withdrawn_ = false;  // the newest request was given up before it was begun
  std::optional<Request> left_behind_;
  Deadline patience_ = Deadline::Never();  // with the call that was left behind
  std::optional<Request> undo_;            // what is to be done before the next call
};

}  // namespace keel::task
