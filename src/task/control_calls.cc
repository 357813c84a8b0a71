#include "task/control_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "task/serve.h"

namespace keel::task {
namespace {

// What gives something back and is not begun by then is given up.
constexpr std::chrono::milliseconds kGiveBackBegins{100};

Deadline Sooner(Deadline a, Deadline b) { return a.when() < b.when() ? a : b; }

// Whether the worker works with the caller's own memory, if there is no region for it.
bool UsesMemory(RequestKind kind) {
  return kind == RequestKind::kCopyTo || kind == RequestKind::kCopyFrom ||
         kind == RequestKind::kRegister || kind == RequestKind::kRegisterFunction ||
         kind == RequestKind::kRegisterReference;
}

// What undoes a request whose result nobody has.
std::optional<Request> Undo(const Request& request, const Reply& reply) {
  if (!reply.status.ok()) return std::nullopt;
  switch (request.kind) {
    case RequestKind::kAllocate:
      return Request{.kind = RequestKind::kFree, .address = reply.value};
    case RequestKind::kRegister:
    case RequestKind::kRegisterFunction:
    case RequestKind::kRegisterReference:
      return Request{.kind = RequestKind::kUnregister, .address = reply.value};
    default:
      return std::nullopt;
  }
}

}  // namespace

// Whose turn it is.
class ControlCalls::Turn {
 public:
  static Result<Turn> Take(ControlCalls& calls, Deadline deadline) {
    KEEL_TRY(calls.Take(deadline));
    return Turn(calls);
  }
  Turn(Turn&& other) noexcept : calls_(std::exchange(other.calls_, nullptr)) {}
  Turn& operator=(Turn&&) = delete;
  ~Turn() {
    if (calls_ != nullptr) calls_->Give();
  }

 private:
  explicit Turn(ControlCalls& calls) : calls_(&calls) {}
  ControlCalls* calls_;
};

ControlCalls::ControlCalls(std::string who, Peer& peer, std::chrono::nanoseconds grace,
                           std::function<Status()> loss, std::function<void(Status)> lose)
    : who_(std::move(who)),
      peer_(peer),
      grace_(grace),
      loss_(std::move(loss)),
      lose_(std::move(lose)),
      requests_(peer.region().lane(LaneName::kControl)),
      replies_(peer.region().lane(LaneName::kControlReplies)) {}

Status ControlCalls::Take(Deadline deadline) {
  const MutexLock lock(mutex_);
  while (busy_) {
    if (deadline.never()) {
      turn_over_.Wait(mutex_);
    } else if (deadline.Passed() || !turn_over_.WaitUntil(mutex_, deadline.when())) {
      if (busy_) return DeadlineExceeded(fmt::format("{} is still busy with another call", who_));
    }
  }
  busy_ = true;
  return OkStatus();
}

void ControlCalls::Give() {
  const MutexLock lock(mutex_);
  busy_ = false;
  turn_over_.NotifyOne();
}

Status ControlCalls::Nonsense(const Status& what) {
  lose_(Unavailable(fmt::format("{} does not make sense: {}", who_, what.message())));
  return loss_();
}

Result<std::string> ControlCalls::AwaitGreeting(Deadline deadline) {
  KEEL_ASSIGN(const Turn turn, Turn::Take(*this, deadline));
  KEEL_ASSIGN(Reply greeting, Await(0, deadline));
  KEEL_TRY(greeting.status);
  if (greeting.value == kProtocolVersion) return std::move(greeting.device);
  return FailedPrecondition(fmt::format("{} speaks version {}, and this library {}", who_,
                                        greeting.value, kProtocolVersion));
}

Result<Reply> ControlCalls::Call(Request request, Deadline deadline) {
  KEEL_ASSIGN(const Turn turn, Turn::Take(*this, deadline));
  KEEL_TRY(Settle(deadline));
  return Exchange(request, deadline);
}

Status ControlCalls::GiveBack(Request request, Deadline deadline) {
  // Of a worker that is lost that says enough.
  const auto not_begun = [](Status why) {
    if (why.code() == StatusCode::kUnavailable) return why;
    return ResourceExhausted(fmt::format("nothing was given back: {}", why.message()));
  };
  const Deadline begin = Sooner(deadline, Deadline::After(kGiveBackBegins));
  Result<Turn> turn = Turn::Take(*this, begin);
  if (!turn.ok()) return not_begun(std::move(turn).status());
  if (Status settled = Settle(begin); !settled.ok()) return not_begun(std::move(settled));
  withdrawn_ = false;
  Status given = Exchange(request, deadline, begin).status();
  return withdrawn_ ? not_begun(std::move(given)) : given;
}

Result<Reply> ControlCalls::Await(std::uint64_t number, Deadline deadline) {
  for (;;) {
    const Status loss = loss_();
    const std::uint32_t seen = replies_.bell();
    const Result<bool> found = replies_.Read(message_);
    if (!found.ok()) return Nonsense(found.status());
    if (*found) {
      Result<Reply> reply = DecodeReply(message_);
      if (!reply.ok()) return Nonsense(reply.status());
      if (reply->number == number) return reply;
      return Nonsense(
          Internal(fmt::format("it answered request {}, which nobody waits for", reply->number)));
    }
    KEEL_TRY(loss);
    if (const Status lane = replies_.Check(); !lane.ok()) return Nonsense(lane);
    // Only this side changes it otherwise: a worker that finds another number is silent.
    if (const std::uint64_t ticket = peer_.region().header().ticket.load();
        ticket != number && ticket != (number | kBegun)) {
      return Nonsense(Internal("the ticket of control requests is damaged"));
    }
    if (deadline.Passed()) {
      return DeadlineExceeded(fmt::format("{} has not answered in time", who_));
    }
    replies_.WaitWhile(seen, Sooner(deadline, Deadline::After(kLookAgain)));
  }
}

Result<Reply> ControlCalls::AwaitEnd(std::uint64_t number) {
  for (;;) {
    const bool ended = peer_.WaitEnded(Deadline::Now());
    const std::uint32_t seen = replies_.bell();
    Result<bool> found = replies_.Read(message_);
    if (const Status lane = replies_.Check(); found.ok() && !*found && !lane.ok()) found = lane;
    if (found.ok() && *found) {
      Result<Reply> reply = DecodeReply(message_);
      if (reply.ok() && reply->number == number) return reply;
      lose_(Unavailable(fmt::format("{} does not make sense", who_)));
    } else if (!found.ok()) {
      // Nothing more will be heard.
      lose_(Unavailable(fmt::format("{} does not make sense: {}", who_, found.status().message())));
      peer_.WaitEnded(Deadline::Never());
      return loss_();
    } else if (ended) {
      return loss_();
    } else {
      replies_.WaitWhile(seen, Deadline::After(kLookAgain));
    }
  }
}

Result<Reply> ControlCalls::Exchange(Request request, Deadline deadline, Deadline begin) {
  KEEL_TRY(loss_());
  request.number = ++last_number_;
  request.deadline = deadline;
  std::atomic<std::uint64_t>& ticket = peer_.region().header().ticket;
  ticket.store(request.number, std::memory_order_release);
  if (Status sent = requests_.Write(Encode(request)); !sent.ok()) {
    if (sent.code() == StatusCode::kInternal) return Nonsense(sent);
    return std::move(sent).Annotate(fmt::format("{} does not take requests", who_));
  }
  Result<Reply> reply = Await(request.number, begin);
  if (!reply.ok()) {
    std::uint64_t expected = request.number;
    withdrawn_ = ticket.compare_exchange_strong(expected, 0);
    if (withdrawn_) return reply;
    if (reply.status().code() == StatusCode::kDeadlineExceeded) {
      reply = Await(request.number, deadline);
    }
  }
  if (!reply.ok()) {
    if (peer_.data() == nullptr && UsesMemory(request.kind)) {
      // Also if the worker is lost: its thread may still be at it.
      reply = AwaitEnd(request.number);
    } else if (reply.status().code() == StatusCode::kDeadlineExceeded) {
      left_behind_ = request;
      patience_ = Deadline::After(grace_);
    }
  }
  if (!reply.ok()) return reply;
  KEEL_TRY(reply->status);
  return reply;
}

Status ControlCalls::Settle(Deadline deadline) {
  if (left_behind_) {
    Result<Reply> reply = Await(left_behind_->number, Sooner(deadline, patience_));
    if (!reply.ok()) {
      if (reply.status().code() != StatusCode::kDeadlineExceeded) return reply.status();
      if (patience_.Passed()) {
        lose_(Unavailable(fmt::format("{} hangs in a call whose time was over {:.3g} s ago", who_,
                                      std::chrono::duration<double>(grace_).count())));
        return loss_();
      }
      return std::move(reply).status().Annotate("an earlier call");
    }
    // What was left behind is perhaps an undoing itself, and then all there was to undo.
    undo_ = Undo(*left_behind_, *reply);
    left_behind_.reset();
    if (peer_.data() != nullptr) peer_.data()->LeaveWindow();
  }
  if (!undo_) return OkStatus();
  Status undone = Exchange(*undo_, deadline).status();
  const bool refused = undone.code() == StatusCode::kDeadlineExceeded ||
                       undone.code() == StatusCode::kResourceExhausted;
  // Not begun: it is for the next call to do.
  if (!refused || left_behind_) undo_.reset();
  return std::move(undone).Annotate("undoing an earlier call");
}

Status ControlCalls::CopyTo(DeviceAddress destination, const std::byte* source, std::uint64_t size,
                            Deadline deadline) {
  Request request{.kind = RequestKind::kCopyTo,
                  .address = destination.value(),
                  .place = reinterpret_cast<std::uintptr_t>(source),
                  .size = size};
  if (peer_.data() == nullptr) return Call(request, deadline).status();
  // Once also for nothing: the address may be wrong.
  do {
    KEEL_ASSIGN(const Turn turn, Turn::Take(*this, deadline));
    KEEL_TRY(Settle(deadline));
    request.place = Region::kWindow;
    request.size = std::min(size, Region::kWindowSize);
    peer_.data()->UseWindow();
    if (size > 0) std::memcpy(peer_.region().at(Region::kWindow), source, request.size);
    const Status status = Exchange(request, deadline).status();
    if (!left_behind_) peer_.data()->LeaveWindow();
    KEEL_TRY(status);
    request.address += request.size;
    source += request.size;
    size -= request.size;
  } while (size > 0);
  return OkStatus();
}

Status ControlCalls::CopyFrom(std::byte* destination, DeviceAddress source, std::uint64_t size,
                              Deadline deadline) {
  Request request{.kind = RequestKind::kCopyFrom,
                  .address = source.value(),
                  .place = reinterpret_cast<std::uintptr_t>(destination),
                  .size = size};
  if (peer_.data() == nullptr) return Call(request, deadline).status();
  do {
    KEEL_ASSIGN(const Turn turn, Turn::Take(*this, deadline));
    KEEL_TRY(Settle(deadline));
    request.place = Region::kWindow;
    request.size = std::min(size, Region::kWindowSize);
    peer_.data()->UseWindow();
    const Status status = Exchange(request, deadline).status();
    if (status.ok() && size > 0) {
      std::memcpy(destination, peer_.region().at(Region::kWindow), request.size);
    }
    if (!left_behind_) peer_.data()->LeaveWindow();
    KEEL_TRY(status);
    request.address += request.size;
    destination += request.size;
    size -= request.size;
  } while (size > 0);
  return OkStatus();
}

Result<std::uint64_t> ControlCalls::Register(const Image& image, Deadline deadline) {
  KEEL_ASSIGN(const Turn turn, Turn::Take(*this, deadline));
  KEEL_TRY(Settle(deadline));
  Request request{.kind = RequestKind::kRegister};
  if (peer_.data() == nullptr) {
    request.place = reinterpret_cast<std::uintptr_t>(&image);
  } else {
    const std::span<const std::byte> parts[] = {image.bytes()};
    KEEL_TRY(SendParts(parts, deadline));
  }
  KEEL_ASSIGN(const Reply reply, Exchange(request, deadline));
  return reply.value;
}

Status ControlCalls::SendParts(std::span<const std::span<const std::byte>> parts,
                               Deadline deadline) {
  peer_.data()->UseWindow();
  Status status;
  std::size_t sent = 0;
  for (std::span<const std::byte> rest : parts) {
    while (status.ok() && !rest.empty()) {
      const auto part = rest.first(std::min<std::size_t>(rest.size(), Region::kWindowSize));
      std::memcpy(peer_.region().at(Region::kWindow), part.data(), part.size());
      status = Exchange({.kind = RequestKind::kImagePart,
                         .address = sent,
                         .place = Region::kWindow,
                         .size = part.size()},
                        deadline)
                   .status();
      sent += part.size();
      rest = rest.subspan(part.size());
    }
  }
  if (!left_behind_) peer_.data()->LeaveWindow();
  return status;
}

Result<std::uint64_t> ControlCalls::RegisterReference(const HostCode& code, Deadline deadline) {
  KEEL_ASSIGN(const Turn turn, Turn::Take(*this, deadline));
  KEEL_TRY(Settle(deadline));
  const std::span<const std::byte> parts[] = {*code.reference, code.kernels.bytes()};
  KEEL_TRY(SendParts(parts, deadline));
  KEEL_ASSIGN(const Reply reply,
              Exchange({.kind = RequestKind::kRegisterReference, .address = code.reference->size()},
                       deadline));
  return reply.value;
}

Result<std::uint64_t> ControlCalls::RegisterFunction(const HostCode& code, Deadline deadline) {
  KEEL_ASSIGN(const Reply reply, Call({.kind = RequestKind::kRegisterFunction,
                                       .place = reinterpret_cast<std::uintptr_t>(&code)},
                                      deadline));
  return reply.value;
}

void ControlCalls::SendStop(Deadline deadline) {
  const Result<Turn> turn = Turn::Take(*this, deadline);
  if (!turn.ok()) return;
  const Status sent =
      requests_.Write(Encode(Request{.kind = RequestKind::kStop, .number = ++last_number_}));
  if (!sent.ok()) peer_.Kill();
}

}  // namespace keel::task
