#include "task/mpi/bridge.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "keel/base/log.h"
#include "task/mpi/life.h"
#include "task/mpi/pause.h"

namespace keel::task::mpi {
namespace {

using Clock = std::chrono::steady_clock;

// How long the ranks may take to say good-bye before they are ended.
constexpr auto kByeTime = std::chrono::seconds(10);
constexpr int kLostExit = 1;
// How often pages that are no longer used are looked for.
constexpr auto kEmpty = std::chrono::seconds(1);

constexpr const char* kHow =
    "run it as 'mpirun -n 4 keel worker -- PROGRAM' or 'mpirun -n 1 PROGRAM : -n 3 keel worker'";

// Sent by another thread to that of the bridge.
struct Order {
  LifeKind kind = LifeKind::kStart;
  std::shared_ptr<Session> session;
  Life life;
};

// What the bridge's thread knows of a rank.
struct Rank {
  Rank(Port& port, int which)
      : number(which),
        task_replies(port, which, kTaskReplyTag, kLargestReply),
        control_replies(port, which, kControlReplyTag, kLargestReply),
        life(port, which, kLifeTag, kLifeSize) {}

  const int number;
  FrameReader task_replies;
  FrameReader control_replies;
  FrameReader life;
  UniqueFd process;
  Clock::time_point heard = Clock::now();
  std::shared_ptr<Session> session;
  std::optional<Life> ended;  // the session's, until all of its answers are there
  bool lost = false;
  bool bye = false;
};

bool Readable(const UniqueFd& descriptor) {
  if (!descriptor.valid()) return false;
  pollfd wait{.fd = descriptor.get(), .events = POLLIN, .revents = 0};
  return poll(&wait, 1, 0) > 0;
}

}  // namespace

class Bridge::Impl {
 public:
  static Result<std::unique_ptr<Impl>> Create(const KeelMpiTable& table);
  // Of the start of MPI.
  Status WaitOpen(Deadline deadline) KEEL_EXCLUDES(mutex_);
  int ranks() const {
    const MutexLock lock(mutex_);
    return static_cast<int>(shared_.size());
  }
  Result<std::string> NameOf(int rank, Deadline deadline) KEEL_EXCLUDES(mutex_);
  Result<std::shared_ptr<Session>> Start(int rank, const WorkerStart& start, Deadline deadline)
      KEEL_EXCLUDES(mutex_);
  void Kill(const std::shared_ptr<Session>& session) KEEL_EXCLUDES(mutex_);
  // Ends MPI, and the thread.
  void Finish() KEEL_EXCLUDES(mutex_);

 private:
  // What other threads see of a rank.
  struct Shared {
    std::string name;  // empty: it has not said hello
    Status unusable;
    std::shared_ptr<Session> session;
    bool killed = false;  // the session
  };

  explicit Impl(UniqueFd wake) : wake_(std::move(wake)) {}
  Status CheckLocked(int rank) const KEEL_REQUIRES(mutex_);
  // Until it has said hello.
  Status WaitForLocked(int rank, Deadline deadline) KEEL_REQUIRES(mutex_);
  bool WaitLocked(Deadline deadline) KEEL_REQUIRES(mutex_);

  // All of these: the bridge's thread.
  void Main(const KeelMpiTable& table);
  // Until Finish: an error of MPI.
  Status Serve(Port& port, Outbox& outbox, std::vector<Rank>& ranks);
  Result<bool> Obey(Outbox& outbox, std::vector<Rank>& ranks);
  Result<bool> Hear(Rank& rank, Outbox& outbox);
  Result<bool> HearReplies(Rank& rank, Outbox& outbox, FrameReader& reader, bool task);
  Status HearLife(Rank& rank, const Life& life);
  Status Nonsense(Rank& rank, Outbox& outbox, const Status& what);
  void SettleEnd(Rank& rank);
  void EndSession(Rank& rank, const Status& why);
  void Lose(Rank& rank, const std::string& what);
  void LookAfter(Rank& rank, Clock::time_point now);
  // Tells all ranks to end, and waits until they do. False: one does not.
  Result<bool> SayBye(Port& port, Outbox& outbox, std::vector<Rank>& ranks);

  const UniqueFd wake_;
  Pause pause_;
  Clock::time_point abort_at_ = Clock::time_point::max();

  mutable Mutex mutex_;
  CondVar changed_;
  bool open_ KEEL_GUARDED_BY(mutex_) = false;
  Status failed_ KEEL_GUARDED_BY(mutex_);
  std::vector<Shared> shared_ KEEL_GUARDED_BY(mutex_);  // by rank; [0] is this process
  std::vector<Order> orders_ KEEL_GUARDED_BY(mutex_);
  std::uint64_t last_session_ KEEL_GUARDED_BY(mutex_) = 0;
  std::atomic<bool> ordered_{false};
  std::atomic<bool> finishing_{false};
  std::thread thread_;
};

// --- Other threads -------------------------------------------------------------------------------

Result<std::unique_ptr<Bridge::Impl>> Bridge::Impl::Create(const KeelMpiTable& table) {
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return SystemError("eventfd for MPI", errno);
  std::unique_ptr<Impl> impl(new Impl(std::move(wake)));
  try {
    impl->thread_ = std::thread([self = impl.get(), &table] { self->Main(table); });
  } catch (const std::system_error& error) {
    return SystemError("the thread for MPI", error.code().value());
  }
  return impl;
}

bool Bridge::Impl::WaitLocked(Deadline deadline) {
  if (deadline.never()) {
    changed_.Wait(mutex_);
    return true;
  }
  return !deadline.Passed() && changed_.WaitUntil(mutex_, deadline.when());
}

Status Bridge::Impl::WaitOpen(Deadline deadline) {
  const MutexLock lock(mutex_);
  while (!open_ && failed_.ok()) {
    if (!WaitLocked(deadline) && !open_ && failed_.ok()) {
      return DeadlineExceeded("MPI has not started: are all other ranks 'keel worker'?");
    }
  }
  return failed_;
}

Status Bridge::Impl::CheckLocked(int rank) const {
  KEEL_TRY(failed_);
  const int ranks = static_cast<int>(shared_.size());
  if (rank > 0 && rank < ranks) return shared_[static_cast<std::size_t>(rank)].unusable;
  return OutOfRange(
      fmt::format("worker {} needs rank {}, and there are {} ranks, of which 0 is this program: "
                  "start more with mpirun -n",
                  rank - 1, rank, ranks));
}

Status Bridge::Impl::WaitForLocked(int rank, Deadline deadline) {
  for (;;) {
    KEEL_TRY(CheckLocked(rank));
    if (!shared_[static_cast<std::size_t>(rank)].name.empty()) return OkStatus();
    if (!WaitLocked(deadline) && deadline.Passed()) {
      return DeadlineExceeded(fmt::format("rank {} has said nothing: is it 'keel worker'?", rank));
    }
  }
}

Result<std::string> Bridge::Impl::NameOf(int rank, Deadline deadline) {
  const MutexLock lock(mutex_);
  KEEL_TRY(WaitForLocked(rank, deadline));
  return shared_[static_cast<std::size_t>(rank)].name;
}

Result<std::shared_ptr<Session>> Bridge::Impl::Start(int rank, const WorkerStart& start,
                                                     Deadline deadline) {
  KEEL_ASSIGN(std::shared_ptr<Region> region, Region::CreateShared(start.shared_memory));
  const MutexLock lock(mutex_);
  KEEL_TRY(WaitForLocked(rank, deadline));
  Shared& shared = shared_[static_cast<std::size_t>(rank)];
  while (shared.session != nullptr) {
    if (!shared.killed) {
      return FailedPrecondition(
          fmt::format("{} has a worker already, of another orchestrator", shared.name));
    }
    if (!WaitLocked(deadline) && shared.session != nullptr && deadline.Passed()) {
      return DeadlineExceeded(fmt::format("{} has not ended its former worker", shared.name));
    }
    KEEL_TRY(CheckLocked(rank));
  }
  shared.session =
      std::make_shared<Session>(rank, ++last_session_, std::move(region), start.doorbell);
  shared.killed = false;
  orders_.push_back({.kind = LifeKind::kStart,
                     .session = shared.session,
                     .life = {.kind = LifeKind::kStart,
                              .orchestration = static_cast<std::uint32_t>(start.orchestration),
                              .shared_memory = start.shared_memory.count(),
                              .text = start.options.device}});
  ordered_.store(true, std::memory_order_release);
  eventfd_write(wake_.get(), 1);
  return shared.session;
}

void Bridge::Impl::Kill(const std::shared_ptr<Session>& session) {
  const MutexLock lock(mutex_);
  Shared& shared = shared_[static_cast<std::size_t>(session->rank())];
  if (shared.session != session || std::exchange(shared.killed, true)) return;
  orders_.push_back(
      {.kind = LifeKind::kKill, .session = session, .life = {.kind = LifeKind::kKill}});
  ordered_.store(true, std::memory_order_release);
  eventfd_write(wake_.get(), 1);
}

void Bridge::Impl::Finish() {
  if (std::this_thread::get_id() == thread_.get_id()) return;  // it has ended the process
  {
    const MutexLock lock(mutex_);
    if (!open_) return;  // nothing can be said to a thread that waits in MPI
  }
  finishing_.store(true, std::memory_order_release);
  eventfd_write(wake_.get(), 1);
  if (thread_.joinable()) thread_.join();
}

// --- The thread ----------------------------------------------------------------------------------

void Bridge::Impl::Main(const KeelMpiTable& table) {
  Result<std::unique_ptr<Port>> opened = Port::Open(table);
  Status status = opened.status();
  if (status.ok() && (*opened)->rank() != kOrchestratorRank) {
    status = FailedPrecondition(
        fmt::format("an orchestrator of workers under MPI is rank 0, and this is rank {}: {}",
                    (*opened)->rank(), kHow));
  }
  if (status.ok() && (*opened)->ranks() < 2) {
    status = FailedPrecondition(fmt::format("MPI has no rank but this one: {}", kHow));
  }
  {
    const MutexLock lock(mutex_);
    failed_ = status;
    if (opened.ok()) shared_.resize(static_cast<std::size_t>((*opened)->ranks()));
    open_ = status.ok();
    changed_.NotifyAll();
  }
  if (!status.ok()) return;

  Port& port = **opened;
  Outbox outbox(port);
  std::vector<Rank> ranks;
  ranks.reserve(static_cast<std::size_t>(port.ranks() - 1));
  for (int r = 1; r < port.ranks(); ++r) ranks.emplace_back(port, r);
  pause_.Add(wake_.get());
  Status served = Serve(port, outbox, ranks);
  if (served.ok() && abort_at_ == Clock::time_point::max()) {
    const Result<bool> bye = SayBye(port, outbox, ranks);
    if (bye.ok() && *bye) return port.Close();
    served = bye.ok() ? DeadlineExceeded("a rank does not end") : bye.status();
  }
  if (!served.ok()) {
    Log(LogLevel::kError, fmt::format("the run ends: {}", served.ToString()));
    {
      const MutexLock lock(mutex_);
      failed_ = Unavailable(served.ToString());
      changed_.NotifyAll();
    }
    for (Rank& rank : ranks) EndSession(rank, Unavailable(std::string(served.message())));
    // Those who wait hear of it first.
    for (const auto until = Clock::now() + kGrace;
         Clock::now() < until && !finishing_.load(std::memory_order_acquire);) {
      pause_.Wait(false);
    }
  }
  port.Abort(kLostExit);
}

Status Bridge::Impl::Serve(Port& port, Outbox& outbox, std::vector<Rank>& ranks) {
  for (const Rank& rank : ranks) KEEL_TRY(outbox.Send(rank.number, kLifeTag, {}, Encode(Hello())));
  Clock::time_point next_beat = Clock::now();
  Clock::time_point next_empty = Clock::now();
  while (!finishing_.load(std::memory_order_acquire)) {
    bool busy = false;
    bool awaiting = false;
    KEEL_ASSIGN(const bool obeyed, Obey(outbox, ranks));
    busy |= obeyed;
    for (Rank& rank : ranks) {
      if (rank.session == nullptr || rank.lost) continue;
      Result<bool> forwarded = rank.session->Forward(outbox);
      if (forwarded.status().code() == StatusCode::kUnavailable) return forwarded.status();
      if (!forwarded.ok()) KEEL_TRY(Nonsense(rank, outbox, forwarded.status()));
      busy |= forwarded.ok() && *forwarded;
      awaiting |= rank.session->awaiting();
    }
    KEEL_ASSIGN(const bool there, port.Peek());
    for (Rank& rank : ranks) {
      // Pieces that are awaited are not seen by Peek.
      if (rank.lost ||
          (!there && rank.task_replies.idle() && rank.control_replies.idle() && rank.life.idle())) {
        continue;
      }
      KEEL_ASSIGN(const bool heard, Hear(rank, outbox));
      busy |= heard;
    }
    KEEL_ASSIGN(const bool sent, outbox.Progress());
    busy |= sent;

    const Clock::time_point now = Clock::now();
    if (now >= next_beat) {
      next_beat = now + kBeatPeriod;
      for (Rank& rank : ranks) {
        LookAfter(rank, now);
        if (rank.lost) continue;
        KEEL_TRY(outbox.Send(rank.number, kLifeTag, {}, Encode(Life{.kind = LifeKind::kBeat})));
      }
      if (now >= abort_at_) return OkStatus();
    }
    if (now >= next_empty) {
      next_empty = now + kEmpty;
      for (Rank& rank : ranks) {
        if (rank.session != nullptr) rank.session->data().EmptyIfIdle();
      }
    }
    if (busy) {
      pause_.Reset();
    } else if (pause_.Wait(awaiting || !outbox.empty())) {
      eventfd_t count = 0;
      eventfd_read(wake_.get(), &count);
      for (Rank& rank : ranks) LookAfter(rank, Clock::now());
    }
  }
  return OkStatus();
}

Result<bool> Bridge::Impl::Obey(Outbox& outbox, std::vector<Rank>& ranks) {
  if (!ordered_.exchange(false, std::memory_order_acquire)) return false;
  std::vector<Order> orders;
  {
    const MutexLock lock(mutex_);
    orders = std::exchange(orders_, {});
  }
  for (Order& order : orders) {
    Rank& rank = ranks[static_cast<std::size_t>(order.session->rank() - 1)];
    if (order.kind == LifeKind::kStart) {
      rank.session = order.session;
      rank.ended.reset();
      if (rank.lost) {
        EndSession(rank, Unavailable("is on a rank that is lost"));
        continue;
      }
    }
    if (rank.session != order.session) continue;
    KEEL_TRY(
        outbox.Send(rank.number, kLifeTag, {.session = order.session->id()}, Encode(order.life)));
  }
  return true;
}

Result<bool> Bridge::Impl::Hear(Rank& rank, Outbox& outbox) {
  // A frame that cannot be read leaves nothing to wait for.
  const auto lost = [&](const Status& status) -> Result<bool> {
    if (status.code() == StatusCode::kUnavailable) return status;
    Lose(rank, std::string(status.message()));
    return true;
  };
  bool any = false;
  const Result<bool> tasks = HearReplies(rank, outbox, rank.task_replies, true);
  if (!tasks.ok()) return lost(tasks.status());
  const Result<bool> control = HearReplies(rank, outbox, rank.control_replies, false);
  if (!control.ok()) return lost(control.status());
  any |= *tasks || *control;
  for (;;) {
    const Result<FrameReader::Event> event = rank.life.Poll();
    if (!event.ok()) return lost(event.status());
    if (*event == FrameReader::Event::kNothing) break;
    any = true;
    if (*event == FrameReader::Event::kWhole) continue;
    Result<Life> life = DecodeLife(rank.life.message());
    if (!life.ok()) return lost(life.status());
    life->session = rank.life.head().session;
    rank.life.Drop();
    KEEL_TRY(HearLife(rank, *life));
  }
  if (any) rank.heard = Clock::now();
  SettleEnd(rank);
  return any;
}

Result<bool> Bridge::Impl::HearReplies(Rank& rank, Outbox& outbox, FrameReader& reader, bool task) {
  bool any = false;
  for (;;) {
    KEEL_ASSIGN(const FrameReader::Event event, reader.Poll());
    if (event == FrameReader::Event::kNothing) return any;
    any = true;
    Session* const session = rank.session.get();
    const bool current = session != nullptr && reader.head().session == session->id();
    if (event == FrameReader::Event::kWhole) {
      if (!current) continue;
      const Status delivered = task ? session->DeliverTaskReply(reader.message())
                                    : session->DeliverControlReply(reader.message());
      if (!delivered.ok()) KEEL_TRY(Nonsense(rank, outbox, delivered));
      continue;
    }
    if (!current || !session->Ended().ok()) {
      reader.Drop();
      continue;
    }
    Result<std::vector<Piece>> pieces = task ? session->ExpectTaskReply(reader.message())
                                             : session->ExpectControlReply(reader.message());
    if (pieces.ok() && pieces->size() != reader.head().pieces) {
      pieces = Internal(fmt::format("an answer comes with {} pieces of bytes: {} are due",
                                    reader.head().pieces, pieces->size()));
    }
    if (!pieces.ok()) {
      reader.Drop();
      KEEL_TRY(Nonsense(rank, outbox, pieces.status()));
      continue;
    }
    KEEL_TRY(reader.Take(*std::move(pieces), session->hold()));
  }
}

Status Bridge::Impl::Nonsense(Rank& rank, Outbox& outbox, const Status& what) {
  rank.session->Lose(Unavailable(fmt::format("does not make sense: {}", what.message())));
  {
    const MutexLock lock(mutex_);
    shared_[static_cast<std::size_t>(rank.number)].killed = true;
  }
  return outbox.Send(rank.number, kLifeTag, {.session = rank.session->id()},
                     Encode(Life{.kind = LifeKind::kKill}));
}

Status Bridge::Impl::HearLife(Rank& rank, const Life& life) {
  switch (life.kind) {
    case LifeKind::kHello: {
      rank.process = Watch(life);
      if (rank.process.valid()) pause_.Add(rank.process.get());
      const MutexLock lock(mutex_);
      Shared& shared = shared_[static_cast<std::size_t>(rank.number)];
      shared.name = fmt::format("rank {} on {}", rank.number, life.text);
      if (life.version != kProtocolVersion) {
        shared.unusable = FailedPrecondition(
            fmt::format("{} speaks version {}, and this library {}: install the same Keel there",
                        shared.name, life.version, kProtocolVersion));
      }
      changed_.NotifyAll();
      break;
    }
    case LifeKind::kEnded:
      if (rank.session != nullptr && rank.session->id() == life.session) rank.ended = life;
      break;
    case LifeKind::kBye:
      rank.bye = true;
      break;
    default:
      break;
  }
  return OkStatus();
}

void Bridge::Impl::SettleEnd(Rank& rank) {
  if (!rank.ended || rank.session == nullptr) return;
  const Session& session = *rank.session;
  // What a worker answered before it ended counts; what was dropped does not come.
  if (session.Ended().ok() && (session.task_replies() < rank.ended->task_replies ||
                               session.control_replies() < rank.ended->control_replies)) {
    return;
  }
  EndSession(rank, Unavailable(rank.ended->text));
}

void Bridge::Impl::EndSession(Rank& rank, const Status& why) {
  const std::shared_ptr<Session> session = std::exchange(rank.session, nullptr);
  rank.ended.reset();
  if (session == nullptr) return;
  session->End(why);
  const MutexLock lock(mutex_);
  Shared& shared = shared_[static_cast<std::size_t>(rank.number)];
  if (shared.session == session) shared.session = nullptr;
  changed_.NotifyAll();
}

void Bridge::Impl::LookAfter(Rank& rank, Clock::time_point now) {
  if (rank.lost) return;
  if (Readable(rank.process)) {
    Lose(rank, "has ended");
  } else if (now - rank.heard > kSilence) {
    Lose(rank, fmt::format("has been silent for {} seconds", kSilence.count()));
  }
}

void Bridge::Impl::Lose(Rank& rank, const std::string& what) {
  rank.lost = true;
  if (rank.process.valid()) pause_.Remove(rank.process.get());
  std::string name;
  {
    const MutexLock lock(mutex_);
    Shared& shared = shared_[static_cast<std::size_t>(rank.number)];
    if (shared.name.empty()) shared.name = fmt::format("rank {}", rank.number);
    name = shared.name;
    shared.unusable = Unavailable(fmt::format("{} {}; a lost rank ends the run", name, what));
    changed_.NotifyAll();
  }
  Log(LogLevel::kError, fmt::format("{} {}: the run ends", name, what));
  EndSession(rank, Unavailable(fmt::format("{}: a lost rank ends the run", what)));
  abort_at_ = std::min(abort_at_, Clock::now() + kGrace);
}

Result<bool> Bridge::Impl::SayBye(Port& port, Outbox& outbox, std::vector<Rank>& ranks) {
  for (const Rank& rank : ranks) {
    KEEL_TRY(outbox.Send(rank.number, kLifeTag, {}, Encode(Life{.kind = LifeKind::kBye})));
  }
  const auto until = Clock::now() + kByeTime;
  for (;;) {
    bool all = true;
    bool busy = false;
    for (Rank& rank : ranks) {
      if (rank.bye) continue;
      KEEL_ASSIGN(const bool heard, Hear(rank, outbox));
      busy |= heard;
      if (rank.lost) return false;
      all &= rank.bye;
    }
    KEEL_ASSIGN(const bool sent, outbox.Progress());
    if (all && outbox.empty()) return true;
    if (Clock::now() > until) return false;
    if (busy || sent) {
      pause_.Reset();
    } else {
      static_cast<void>(port);
      pause_.Wait(true);
    }
  }
}

// --- Bridge --------------------------------------------------------------------------------------

Bridge::Bridge(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

namespace {

Bridge* g_bridge = nullptr;

}  // namespace

Result<Bridge*> Bridge::Get(Deadline deadline) {
  static auto& mutex = *new Mutex;
  static const Home home;
  if (!home.here()) {
    return FailedPrecondition("MPI belongs to the process that forked this one");
  }
  {
    const MutexLock lock(mutex);
    if (g_bridge == nullptr) {
      if (!LaunchedRank().has_value()) {
        return FailedPrecondition(fmt::format("this program was not started by mpirun: {}", kHow));
      }
      KEEL_ASSIGN(const KeelMpiTable* const table, LoadTable());
      NoteStart();
      KEEL_ASSIGN(std::unique_ptr<Impl> impl, Impl::Create(*table));
      g_bridge = new Bridge(std::move(impl));
      std::atexit([] {
        if (home.here()) g_bridge->impl_->Finish();
      });
    }
  }
  KEEL_TRY(g_bridge->impl_->WaitOpen(deadline));
  return g_bridge;
}

int Bridge::ranks() const { return impl_->ranks(); }

Result<std::string> Bridge::NameOf(int rank, Deadline deadline) {
  return impl_->NameOf(rank, deadline);
}

Result<std::shared_ptr<Session>> Bridge::Start(int rank, const WorkerStart& start,
                                               Deadline deadline) {
  return impl_->Start(rank, start, deadline);
}

void Bridge::Kill(const std::shared_ptr<Session>& session) { impl_->Kill(session); }

}  // namespace keel::task::mpi
