// A rank that serves: frames from rank 0 into the lanes of a worker process of its own, and what
// that answers back. It runs no code of others itself, so that it always answers, and what crashes
// or hangs is a process that it can end.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
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
#include "task/answers.h"
#include "task/lane.h"
#include "task/mpi/frames.h"
#include "task/mpi/life.h"
#include "task/mpi/pause.h"
#include "task/mpi/port.h"
#include "task/mpi/watchdog.h"
#include "task/peer.h"

namespace keel::task {
namespace mpi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kIdle = std::chrono::seconds(1);
// MPI's own end waits for rank 0, which waits for the slowest of the others, and ends all if it
// comes to nothing: this is for when that does not work, either.
constexpr auto kFinishTime = std::chrono::seconds(60);

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
        answers(peer->region()),
        control_replies(peer->region().lane(LaneName::kControlReplies)) {}

  const std::uint64_t id;
  const std::shared_ptr<Peer> peer;  // the region is held by what is under way, too
  LaneWriter tasks;
  LaneWriter control;
  AnswerReader answers;
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

constexpr std::array kLocalRanks{"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"};

// With the number of the rank on its machine in it, which not every launcher says.
Result<std::string> WithLocalRank(const std::string& device) {
  constexpr std::string_view kLocal = "{local}";
  if (device.find(kLocal) == std::string::npos) return device;
  for (const char* const name : kLocalRanks) {
    if (const char* const text = std::getenv(name); text != nullptr) {
      return Replaced(device, kLocal, text);
    }
  }
  return FailedPrecondition(
      fmt::format("the device '{}' needs the number of the rank on its machine, and what launched "
                  "it has set none of {}",
                  device, fmt::join(kLocalRanks, ", ")));
}

class RankServer {
 public:
  // `parent`: of the process that launched this one.
  RankServer(Port& port, std::string device, std::shared_ptr<Doorbell> doorbell, UniqueFd parent)
      : port_(port),
        device_(std::move(device)),
        doorbell_(std::move(doorbell)),
        outbox_(port),
        tasks_(port, kOrchestratorRank, kTaskTag, LargestTaskMessage()),
        control_(port, kOrchestratorRank, kControlTag, kLargestReply),
        life_(port, kOrchestratorRank, kLifeTag, kLifeSize),
        parent_(std::move(parent)) {}

  // Until rank 0 says good-bye, and all that was under way has arrived. An error: it is gone, or
  // MPI failed; MPI may still write into what this has.
  Status Serve();
  const UniqueFd& parent() const { return parent_; }

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
  // Whether nothing is being received.
  bool Idle() const { return tasks_.idle() && control_.idle() && life_.idle(); }
  Status Say(const Life& life, std::uint64_t session = 0) {
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
  bool greeted_ = false;
  bool bye_ = false;
};

Status RankServer::Serve() {
  KEEL_TRY(Say(Hello()));
  if (parent_.valid()) pause_.Add(parent_.get());
  Clock::time_point next_beat = Clock::now() + kBeatPeriod;
  for (;;) {
    bool busy = false;
    KEEL_ASSIGN(const bool there, port_.Peek());
    if (there || !Idle()) {
      KEEL_ASSIGN(const bool life, HearLife());
      KEEL_ASSIGN(const bool control, HearControl());
      KEEL_ASSIGN(const bool tasks, HearTasks());
      busy |= tasks || control || life;
      if (busy) heard_ = Clock::now();
    }
    KEEL_ASSIGN(const bool answered, Answer());
    KEEL_ASSIGN(const bool sent, outbox_.Progress());
    busy |= answered || sent;
    if (bye_ && !busy && Idle() && outbox_.empty()) break;
    const Clock::time_point now = Clock::now();
    if (now >= next_beat) {
      next_beat = now + kBeatPeriod;
      KEEL_TRY(Say({.kind = LifeKind::kBeat}));
      KEEL_TRY(LookAfter());
    }
    const bool awaiting = active_ != nullptr && (!active_->due.empty() || active_->control_due);
    if (busy) {
      pause_.Reset();
    } else if (pause_.Wait(awaiting || bye_ || !outbox_.empty())) {
      KEEL_TRY(LookAfter());
    }
  }
  KEEL_TRY(Say({.kind = LifeKind::kBye}));
  while (!outbox_.empty()) {
    KEEL_ASSIGN(const bool sent, outbox_.Progress());
    if (!sent) pause_.Wait(true);
    KEEL_TRY(LookAfter());
  }
  return OkStatus();
}

Status RankServer::LookAfter() {
  if (HasEnded(orchestrator_)) return Unavailable("the orchestrator, rank 0, has ended");
  if (HasEnded(parent_)) return Unavailable("what launched this rank has ended");
  const Clock::time_point now = Clock::now();
  if (now - heard_ > kSilence) {
    return Unavailable(
        fmt::format("the orchestrator, rank 0, has been silent for {} seconds", kSilence.count()));
  }
  if (Overdue(tasks_, now) || Overdue(control_, now) || Overdue(life_, now)) {
    return Unavailable("the orchestrator, rank 0, has begun a message that it does not end");
  }
  if (active_ == nullptr) return OkStatus();
  Active& active = *active_;
  const bool idle = active.due.empty() && !active.control_due && Idle() && outbox_.empty();
  if (!idle) {
    active.last_use = now;
  } else if (active.used && now - active.last_use > kIdle) {
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
        if (std::exchange(greeted_, true)) break;
        orchestrator_ = Watch(life);
        if (orchestrator_.valid()) pause_.Add(orchestrator_.get());
        break;
      case LifeKind::kStart:
        if (!bye_) KEEL_TRY(Start(life));
        break;
      case LifeKind::kKill:
        if (active_ != nullptr && active_->id == life.session) active_->peer->Kill();
        break;
      case LifeKind::kEcho:
        KEEL_TRY(Say({.kind = LifeKind::kEcho}));
        break;
      case LifeKind::kBye:
        bye_ = true;
        // What is under way holds it.
        if (active_ != nullptr) active_->peer->Kill();
        active_.reset();
        gave_up_.reset();
        break;
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
  KEEL_ASSIGN(const std::size_t count, active.answers.Look(active.due.size()));
  if (count == 0) return false;
  Reply reply{.number = active.due.front().number};
  KEEL_TRY(active.answers.Take(reply.status));
  std::vector<Piece> pieces;
  if (reply.status.ok()) {
    KEEL_ASSIGN(pieces, DataPieces(active.peer->region(), active.due.front().bytes));
  }
  active.due.pop_front();
  ++active.tasks_answered;
  KEEL_TRY(outbox_.Send(kOrchestratorRank, kTaskReplyTag, {.session = active.id},
                        task::Encode(reply), pieces, active.peer));
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
  KEEL_ASSIGN(std::string device, mpi::WithLocalRank(options.device));
  KEEL_ASSIGN(const KeelMpiTable* const table, mpi::LoadTable());
  KEEL_ASSIGN(const std::shared_ptr<Doorbell> doorbell, Doorbell::Create());
  // What launches ranks is there for as long as the run. PR_SET_PDEATHSIG would not do: that is of
  // the thread, and a launcher may have had one for this alone.
  UniqueFd parent(static_cast<int>(syscall(SYS_pidfd_open, getppid(), 0)));
  std::unique_ptr<mpi::Port> port;
  {
    // Ranks may have to wait long for rank 0, whose program starts MPI when it needs workers.
    const bool bounded = options.start_timeout > std::chrono::nanoseconds(0);
    const mpi::Watchdog watchdog(
        "the start of MPI, which waits for rank 0's program to make an orchestrator (has it exited "
        "without one? if it only takes longer, raise keel worker --start-timeout),",
        bounded ? Deadline::After(options.start_timeout) : Deadline::Never(), parent.get());
    KEEL_ASSIGN(port, mpi::Port::Open(*table));
  }
  if (port->rank() == mpi::kOrchestratorRank) {
    return FailedPrecondition(
        "rank 0 is the orchestrator: start its program, as in 'mpirun -n 1 PROGRAM : -n 3 keel "
        "worker'");
  }
  device = mpi::Replaced(std::move(device), "{worker}", std::to_string(port->rank() - 1));
  auto server =
      std::make_unique<mpi::RankServer>(*port, std::move(device), doorbell, std::move(parent));
  if (Status served = server->Serve(); !served.ok()) {
    // MPI is not finalised, and may have memory of these until the process exits.
    static_cast<void>(server.release());  // NOLINT(bugprone-unused-return-value)
    static_cast<void>(port.release());    // NOLINT(bugprone-unused-return-value)
    return served;
  }
  const mpi::Watchdog watchdog("the end of MPI", Deadline::After(mpi::kFinishTime),
                               server->parent().get());
  port->Close();
  return OkStatus();
}

}  // namespace keel::task
