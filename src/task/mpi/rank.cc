// A rank that serves: frames from rank 0 into the lanes of a worker process of its own, and what
// that answers back. It runs no code of others itself, so that it always answers, and what crashes
// or hangs is a process that it can end.
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "keel/task/mpi_worker.h"
#include "task/lane.h"
#include "task/mpi/frames.h"
#include "task/mpi/life.h"
#include "task/mpi/pause.h"
#include "task/mpi/port.h"
#include "task/peer.h"

namespace keel::task {
namespace mpi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kIdle = std::chrono::seconds(1);

// The worker of the session, and what it owes.
struct Active {
  struct Due {
    std::uint64_t number = 0;
    std::vector<Extent> bytes;
  };
  Active(std::uint64_t session, std::shared_ptr<Peer> started)
      : id(session),
        peer(std::move(started)),
        tasks(peer->region().lane(LaneName::kTasks)),
        control(peer->region().lane(LaneName::kControl)),
        task_replies(peer->region().lane(LaneName::kTaskReplies)),
        control_replies(peer->region().lane(LaneName::kControlReplies)) {}

  const std::uint64_t id;
  const std::shared_ptr<Peer> peer;  // the region is held by what is under way, too
  LaneWriter tasks;
  LaneWriter control;
  LaneReader task_replies;
  LaneReader control_replies;
  std::deque<Due> due;
  std::optional<Due> control_due = Due{};  // the greeting
  std::uint64_t tasks_answered = 0;
  std::uint64_t control_answered = 0;
  bool used = false;  // pages of the region
  Clock::time_point last_use = Clock::now();
};

std::string Replaced(std::string text, std::string_view what, const std::string& with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at)) {
    text.replace(at, what.size(), with);
    at += with.size();
  }
  return text;
}

std::string LocalRank() {
  for (const char* const name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"}) {
    if (const char* const text = std::getenv(name); text != nullptr) return text;
  }
  return "0";
}

bool Readable(const UniqueFd& descriptor) {
  if (!descriptor.valid()) return false;
  pollfd wait{.fd = descriptor.get(), .events = POLLIN, .revents = 0};
  return poll(&wait, 1, 0) > 0;
}

class RankServer {
 public:
  RankServer(Port& port, std::string device, std::shared_ptr<Doorbell> doorbell)
      : port_(port),
        device_(std::move(device)),
        doorbell_(std::move(doorbell)),
        outbox_(port),
        tasks_(port, kOrchestratorRank, kTaskTag, LargestTaskMessage()),
        control_(port, kOrchestratorRank, kControlTag, kLargestReply),
        life_(port, kOrchestratorRank, kLifeTag, kLifeSize),
        // What launches ranks is there for as long as the run.
        parent_(static_cast<int>(syscall(SYS_pidfd_open, getppid(), 0))) {}

  // Until rank 0 says good-bye. An error: it is gone, or MPI failed.
  Status Serve();

 private:
  Result<bool> HearTasks();
  Result<bool> HearControl();
  Result<bool> HearLife();
  // Whether the frame is for the worker that is here; if not it is dropped.
  bool Mine(FrameReader& reader);
  Status Start(const Life& life);
  // Sends what the worker has answered.
  Result<bool> Answer();
  Result<bool> AnswerTask(Active& active);
  Result<bool> AnswerControl(Active& active);
  // Ends the worker, with a reason that it does not know itself.
  void GiveUp(const Status& why);
  Status Ended(std::uint64_t session, const std::string& why);
  Status LookAfter();
  Status Say(Life life, std::uint64_t session = 0) {
    return outbox_.Send(kOrchestratorRank, kLifeTag, {.session = session}, Encode(life));
  }

  Port& port_;
  const std::string device_;
  const std::shared_ptr<Doorbell> doorbell_;
  Outbox outbox_;
  FrameReader tasks_;
  FrameReader control_;
  FrameReader life_;
  Pause pause_;
  const UniqueFd parent_;
  UniqueFd orchestrator_;
  std::unique_ptr<Active> active_;
  std::optional<Status> gave_up_;  // why active_ is being ended
  std::optional<TaskMessage> task_;
  std::optional<Request> request_;
  Clock::time_point heard_ = Clock::now();
  bool bye_ = false;
};

Status RankServer::Serve() {
  KEEL_TRY(Say(Hello()));
  if (parent_.valid()) pause_.Add(parent_.get());
  Clock::time_point next_beat = Clock::now() + kBeatPeriod;
  while (!bye_) {
    bool busy = false;
    KEEL_ASSIGN(const bool there, port_.Peek());
    if (there || !tasks_.idle() || !control_.idle() || !life_.idle()) {
      KEEL_ASSIGN(const bool life, HearLife());
      KEEL_ASSIGN(const bool control, HearControl());
      KEEL_ASSIGN(const bool tasks, HearTasks());
      busy |= tasks || control || life;
      if (busy) heard_ = Clock::now();
    }
    KEEL_ASSIGN(const bool answered, Answer());
    KEEL_ASSIGN(const bool sent, outbox_.Progress());
    busy |= answered || sent;
    const Clock::time_point now = Clock::now();
    if (now >= next_beat) {
      next_beat = now + kBeatPeriod;
      KEEL_TRY(Say({.kind = LifeKind::kBeat}));
      KEEL_TRY(LookAfter());
    }
    const bool awaiting = active_ != nullptr && (!active_->due.empty() || active_->control_due);
    if (busy) {
      pause_.Reset();
    } else if (pause_.Wait(awaiting || !outbox_.empty())) {
      KEEL_TRY(LookAfter());
    }
  }
  active_.reset();
  KEEL_TRY(Say({.kind = LifeKind::kBye}));
  while (!outbox_.empty()) {
    KEEL_ASSIGN(const bool sent, outbox_.Progress());
    if (!sent) pause_.Wait(true);
    KEEL_TRY(LookAfter());
  }
  return OkStatus();
}

Status RankServer::LookAfter() {
  if (Readable(orchestrator_)) return Unavailable("the orchestrator, rank 0, has ended");
  if (Readable(parent_)) return Unavailable("what launched this rank has ended");
  if (Clock::now() - heard_ > kSilence) {
    return Unavailable(
        fmt::format("the orchestrator, rank 0, has been silent for {} seconds", kSilence.count()));
  }
  if (active_ == nullptr) return OkStatus();
  Active& active = *active_;
  const bool idle = active.due.empty() && !active.control_due && tasks_.idle() && control_.idle() &&
                    outbox_.empty();
  if (!idle) {
    active.last_use = Clock::now();
  } else if (active.used && Clock::now() - active.last_use > kIdle) {
    active.peer->region().Empty();
    active.used = false;
  }
  return OkStatus();
}

// --- From rank 0 ---------------------------------------------------------------------------------

bool RankServer::Mine(FrameReader& reader) {
  if (active_ != nullptr && !gave_up_ && reader.head().session == active_->id) return true;
  reader.Drop();
  return false;
}

Result<bool> RankServer::HearTasks() {
  bool any = false;
  for (;;) {
    KEEL_ASSIGN(const FrameReader::Event event, tasks_.Poll());
    if (event == FrameReader::Event::kNothing) return any;
    any = true;
    if (event == FrameReader::Event::kHead) {
      if (!Mine(tasks_)) continue;
      Result<TaskMessage> task = DecodeTask(tasks_.message());
      Result<std::vector<Piece>> pieces =
          task.ok() ? DataPieces(active_->peer->region(), BytesTo(*task)) : task.status();
      // The answer's bytes must have a place, too.
      if (pieces.ok()) {
        const auto results = DataPieces(active_->peer->region(), BytesFrom(*task));
        if (!results.ok()) pieces = results.status();
      }
      if (pieces.ok() && pieces->size() != tasks_.head().pieces) {
        pieces = InvalidArgument("a task comes with the wrong bytes");
      }
      if (!pieces.ok()) {
        tasks_.Drop();
        GiveUp(pieces.status());
        continue;
      }
      active_->used = true;
      task_ = *std::move(task);
      KEEL_TRY(tasks_.Take(*std::move(pieces), active_->peer));
      continue;
    }
    std::optional<TaskMessage> task = std::exchange(task_, std::nullopt);
    if (active_ == nullptr || gave_up_ || tasks_.head().session != active_->id) continue;
    task->deadline = AfterLeft(tasks_.head().left);
    active_->due.push_back({task->number, BytesFrom(*task)});
    if (const Status sent = active_->tasks.Write(task::Encode(*task)); !sent.ok()) GiveUp(sent);
  }
}

Result<bool> RankServer::HearControl() {
  bool any = false;
  for (;;) {
    KEEL_ASSIGN(const FrameReader::Event event, control_.Poll());
    if (event == FrameReader::Event::kNothing) return any;
    any = true;
    if (event == FrameReader::Event::kHead) {
      if (!Mine(control_)) continue;
      const Result<Request> request = DecodeRequest(control_.message());
      Result<std::vector<Piece>> pieces =
          request.ok() ? WindowPieces(active_->peer->region(), BytesTo(*request))
                       : request.status();
      if (pieces.ok()) {
        const auto results = WindowPieces(active_->peer->region(), BytesFrom(*request));
        if (!results.ok()) pieces = results.status();
      }
      if (pieces.ok() && pieces->size() != control_.head().pieces) {
        pieces = InvalidArgument("a request comes with the wrong bytes");
      }
      if (!pieces.ok()) {
        control_.Drop();
        GiveUp(pieces.status());
        continue;
      }
      active_->used = true;
      request_ = *request;
      KEEL_TRY(control_.Take(*std::move(pieces), active_->peer));
      continue;
    }
    std::optional<Request> request = std::exchange(request_, std::nullopt);
    if (active_ == nullptr || gave_up_ || control_.head().session != active_->id) continue;
    request->deadline = AfterLeft(control_.head().left);
    if (request->kind != RequestKind::kStop) {
      active_->control_due = Active::Due{request->number, BytesFrom(*request)};
      active_->peer->region().header().ticket.store(request->number, std::memory_order_release);
    }
    if (const Status sent = active_->control.Write(task::Encode(*request)); !sent.ok()) {
      GiveUp(sent);
    }
  }
}

Result<bool> RankServer::HearLife() {
  bool any = false;
  for (;;) {
    KEEL_ASSIGN(const FrameReader::Event event, life_.Poll());
    if (event == FrameReader::Event::kNothing) return any;
    any = true;
    if (event != FrameReader::Event::kHead) continue;
    KEEL_ASSIGN(Life life, DecodeLife(life_.message()));
    life.session = life_.head().session;
    life_.Drop();
    switch (life.kind) {
      case LifeKind::kHello:
        orchestrator_ = Watch(life);
        if (orchestrator_.valid()) pause_.Add(orchestrator_.get());
        break;
      case LifeKind::kStart:
        KEEL_TRY(Start(life));
        break;
      case LifeKind::kKill:
        if (active_ != nullptr && active_->id == life.session) active_->peer->Kill();
        break;
      case LifeKind::kBye:
        bye_ = true;
        return any;
      default:
        break;
    }
  }
}

Status RankServer::Start(const Life& life) {
  active_.reset();
  gave_up_.reset();
  WorkerStart start;
  start.options.device = life.text.empty() ? device_ : life.text;
  start.orchestration = static_cast<Orchestration>(life.orchestration);
  start.shared_memory = Bytes(life.shared_memory);
  start.doorbell = doorbell_;
  Result<std::unique_ptr<Peer>> peer = StartProcessPeer(start);
  if (!peer.ok()) {
    return Ended(life.session, fmt::format("could not be started: {}", peer.status().message()));
  }
  active_ = std::make_unique<Active>(life.session, *std::move(peer));
  return OkStatus();
}

void RankServer::GiveUp(const Status& why) {
  gave_up_ = why;
  active_->peer->Kill();
}

Status RankServer::Ended(std::uint64_t session, const std::string& why) {
  Life life{.kind = LifeKind::kEnded, .text = why};
  if (active_ != nullptr) {
    life.task_replies = active_->tasks_answered;
    life.control_replies = active_->control_answered;
  }
  active_.reset();
  gave_up_.reset();
  return Say(life, session);
}

// --- From the worker -----------------------------------------------------------------------------

Result<bool> RankServer::Answer() {
  if (active_ == nullptr) return false;
  // Looked at before the answers: what a worker answered before it ended counts.
  const Status ended = active_->peer->Ended();
  bool any = false;
  while (active_ != nullptr && !gave_up_) {
    const Result<bool> task = AnswerTask(*active_);
    const Result<bool> control = task.ok() ? AnswerControl(*active_) : task;
    if (!control.ok()) {
      if (control.status().code() == StatusCode::kUnavailable) return control.status();
      GiveUp(control.status());
      break;
    }
    if (!*task && !*control) break;
    any = true;
  }
  if (ended.ok()) return any;
  std::string why(ended.message());
  if (gave_up_) why = fmt::format("does not make sense: {}", gave_up_->message());
  KEEL_TRY(Ended(active_->id, why));
  return true;
}

Result<bool> RankServer::AnswerTask(Active& active) {
  std::vector<std::byte> message;
  KEEL_ASSIGN(const bool found, active.task_replies.Read(message));
  if (!found) return false;
  KEEL_ASSIGN(const Reply reply, DecodeReply(message));
  if (active.due.empty() || active.due.front().number != reply.number) {
    return Internal(fmt::format("it answered task number {}, which is not the next", reply.number));
  }
  std::vector<Piece> pieces;
  if (reply.status.ok()) {
    KEEL_ASSIGN(pieces, DataPieces(active.peer->region(), active.due.front().bytes));
  }
  active.due.pop_front();
  ++active.tasks_answered;
  KEEL_TRY(outbox_.Send(kOrchestratorRank, kTaskReplyTag, {.session = active.id}, message, pieces,
                        active.peer));
  return true;
}

Result<bool> RankServer::AnswerControl(Active& active) {
  std::vector<std::byte> message;
  KEEL_ASSIGN(const bool found, active.control_replies.Read(message));
  if (!found) return false;
  KEEL_ASSIGN(const Reply reply, DecodeReply(message));
  if (!active.control_due || active.control_due->number != reply.number) {
    return Internal(fmt::format("it answered request {}, which nobody waits for", reply.number));
  }
  std::vector<Piece> pieces;
  if (reply.status.ok()) {
    KEEL_ASSIGN(pieces, WindowPieces(active.peer->region(), active.control_due->bytes));
  }
  active.control_due.reset();
  ++active.control_answered;
  KEEL_TRY(outbox_.Send(kOrchestratorRank, kControlReplyTag, {.session = active.id}, message,
                        pieces, active.peer));
  return true;
}

}  // namespace
}  // namespace mpi

std::optional<int> MpiRank() { return mpi::LaunchedRank(); }

Status ServeMpi(const MpiWorkerOptions& options) {
  const std::optional<int> launched = MpiRank();
  if (!launched) {
    return FailedPrecondition(
        "nobody has launched this as a rank: use mpirun, as in 'mpirun -n 4 keel worker -- "
        "PROGRAM'");
  }
  KEEL_ASSIGN(const KeelMpiTable* const table, mpi::LoadTable());
  KEEL_ASSIGN(const std::shared_ptr<Doorbell> doorbell, Doorbell::Create());
  KEEL_ASSIGN(const std::unique_ptr<mpi::Port> port, mpi::Port::Open(*table));
  if (port->rank() == mpi::kOrchestratorRank) {
    return FailedPrecondition(
        "rank 0 is the orchestrator: start its program, as in 'mpirun -n 1 PROGRAM : -n 3 keel "
        "worker'");
  }
  std::string device = mpi::Replaced(options.device, "{worker}", std::to_string(port->rank() - 1));
  device = mpi::Replaced(std::move(device), "{local}", mpi::LocalRank());
  {
    mpi::RankServer server(*port, std::move(device), doorbell);
    KEEL_TRY(server.Serve());
  }
  port->Close();
  return OkStatus();
}

}  // namespace keel::task
