#include "task/mpi/session.h"

#include <fmt/format.h>

#include <utility>

#include "task/serve.h"

namespace keel::task::mpi {

Session::Session(int rank, std::uint64_t id, std::shared_ptr<Region> region,
                 std::shared_ptr<Doorbell> doorbell)
    : rank_(rank),
      id_(id),
      region_(std::move(region)),
      doorbell_(std::move(doorbell)),
      // The bridge looks by itself.
      data_(*region_, [] {}),
      task_lane_(region_->lane(LaneName::kTasks)),
      control_lane_(region_->lane(LaneName::kControl)),
      answers_(*region_),
      control_reply_lane_(region_->lane(LaneName::kControlReplies)) {}

// --- State ---------------------------------------------------------------------------------------

Status Session::Ended() const {
  const MutexLock lock(mutex_);
  return why_;
}

bool Session::over() const {
  const MutexLock lock(mutex_);
  return over_;
}

bool Session::WaitOver(Deadline deadline) {
  const MutexLock lock(mutex_);
  while (!over_) {
    if (deadline.never()) {
      changed_.Wait(mutex_);
    } else if (deadline.Passed() || !changed_.WaitUntil(mutex_, deadline.when())) {
      return over_;
    }
  }
  return true;
}

void Session::Lose(const Status& why) {
  {
    const MutexLock lock(mutex_);
    if (why_.ok()) why_ = why;
    lost_.store(true, std::memory_order_release);
  }
  Tell();
}

void Session::End(const Status& why) {
  {
    const MutexLock lock(mutex_);
    if (why_.ok()) why_ = why;
    lost_.store(true, std::memory_order_release);
    over_ = true;
    changed_.NotifyAll();
  }
  Tell();
}

void Session::Tell() {
  doorbell_->Ring();
  Ring(region_->lane(LaneName::kControlReplies).state->bell);
}

// --- To the rank ---------------------------------------------------------------------------------

Result<bool> Session::Forward(Outbox& outbox) {
  bool any = false;
  for (bool more = true; more; any |= more) {
    KEEL_ASSIGN(more, ForwardTask(outbox));
  }
  // One is under way at a time.
  KEEL_ASSIGN(const bool request, ForwardControl(outbox));
  return any || request;
}

Result<bool> Session::ForwardTask(Outbox& outbox) {
  KEEL_ASSIGN(const bool found, task_lane_.Read(message_));
  if (!found) return false;
  KEEL_ASSIGN(const TaskMessage task, DecodeTask(message_));
  KEEL_ASSIGN(const std::vector<Piece> pieces, DataPieces(*region_, BytesTo(task)));
  tasks_.push_back({task.number, BytesFrom(task)});
  KEEL_TRY(outbox.Send(rank_, kTaskTag, {.session = id_, .left = LeftUntil(task.deadline)},
                       message_, pieces, region_));
  return true;
}

Result<bool> Session::ForwardControl(Outbox& outbox) {
  KEEL_ASSIGN(const bool found, control_lane_.Read(message_));
  if (!found) return false;
  KEEL_ASSIGN(const Request request, DecodeRequest(message_));
  if (request.kind != RequestKind::kStop) {
    std::uint64_t ticket = request.number;
    // Otherwise nobody waits for it any more.
    if (!region_->header().ticket.compare_exchange_strong(ticket, ticket | kBegun)) return true;
    control_ = Due{request.number, BytesFrom(request)};
  }
  KEEL_ASSIGN(const std::vector<Piece> pieces, WindowPieces(*region_, BytesTo(request)));
  KEEL_TRY(outbox.Send(rank_, kControlTag, {.session = id_, .left = LeftUntil(request.deadline)},
                       message_, pieces, region_));
  return true;
}

// --- From the rank -------------------------------------------------------------------------------

Result<std::vector<Piece>> Session::ExpectTaskReply(std::span<const std::byte> message) {
  KEEL_ASSIGN(const Reply reply, DecodeReply(message));
  if (tasks_.empty() || tasks_.front().number != reply.number) {
    return Internal(fmt::format("it answered task number {}, which is not the next", reply.number));
  }
  if (!reply.status.ok()) return std::vector<Piece>();
  return DataPieces(*region_, tasks_.front().bytes);
}

Result<std::vector<Piece>> Session::ExpectControlReply(std::span<const std::byte> message) {
  KEEL_ASSIGN(const Reply reply, DecodeReply(message));
  if (!control_ || control_->number != reply.number) {
    return Internal(fmt::format("it answered request {}, which nobody waits for", reply.number));
  }
  if (!reply.status.ok()) return std::vector<Piece>();
  return WindowPieces(*region_, control_->bytes);
}

Status Session::DeliverTaskReply(std::span<const std::byte> message) {
  tasks_.pop_front();
  ++task_replies_;
  KEEL_ASSIGN(const Reply reply, DecodeReply(message));
  KEEL_TRY(answers_.Answer(reply.status));
  doorbell_->Ring();
  return OkStatus();
}

Status Session::DeliverControlReply(std::span<const std::byte> message) {
  control_.reset();
  ++control_replies_;
  return control_reply_lane_.Write(message);
}

}  // namespace keel::task::mpi
