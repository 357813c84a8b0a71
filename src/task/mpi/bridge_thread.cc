#include <fmt/format.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "keel/base/log.h"
#include "task/mpi/bridge_impl.h"
#include "task/mpi/watchdog.h"

namespace keel::task::mpi {
namespace {

using Clock = std::chrono::steady_clock;

// How long nothing may arrive, when the ranks are to end, before they are ended.
constexpr auto kByeTime = std::chrono::seconds(10);
// How long MPI's own end may take, when all ranks have said good-bye.
constexpr auto kFinishTime = std::chrono::seconds(20);
constexpr int kLostExit = 1;
// How often pages that are no longer used are looked for.
constexpr auto kEmpty = std::chrono::seconds(1);

}  // namespace

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
  if (!status.ok()) {
    // Others would wait for one that leaves.
    if (opened.ok() && (*opened)->ranks() < 2) (*opened)->Close();
    return;
  }

  Port& port = **opened;
  Outbox outbox(port);
  std::vector<Rank> ranks;
  ranks.reserve(static_cast<std::size_t>(port.ranks() - 1));
  for (int r = 1; r < port.ranks(); ++r) ranks.emplace_back(port, r);
  pause_.Add(wake_.get());
  Status served = Serve(port, outbox, ranks);
  if (served.ok() && abort_at_ == Clock::time_point::max()) {
    EndAllSessions(ranks, Unavailable("the program exits"));
    const Result<bool> bye = SayBye(outbox, ranks);
    if (bye.ok() && *bye) {
      const Watchdog watchdog("the end of MPI", Deadline::After(kFinishTime));
      return port.Close();
    }
    served = bye.ok() ? DeadlineExceeded("a rank does not end") : bye.status();
  }
  if (!served.ok()) {
    Log(LogLevel::kError, fmt::format("the run ends: {}", served.ToString()));
    EndAllSessions(ranks, Unavailable(std::string(served.message())));
    // Those who wait hear of it first.
    for (const auto until = Clock::now() + kGrace;
         Clock::now() < until && !finishing_.load(std::memory_order_acquire);) {
      Rest(ranks, false);
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
      awaiting |= rank.trips_left > 0;
      if (rank.session == nullptr || rank.lost || rank.session->lost()) continue;
      Result<bool> forwarded = rank.session->Forward(outbox);
      if (forwarded.status().code() == StatusCode::kUnavailable) return forwarded.status();
      if (!forwarded.ok()) KEEL_TRY(Nonsense(rank, outbox, forwarded.status()));
      busy |= forwarded.ok() && *forwarded;
      awaiting |= rank.session->awaiting();
    }
    KEEL_ASSIGN(const bool there, port.Peek());
    for (Rank& rank : ranks) {
      // Pieces that are awaited are not seen by Peek.
      if (rank.lost || (!there && rank.idle())) continue;
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
    } else {
      Rest(ranks, awaiting || !outbox.empty());
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
    Rank& rank = ranks[static_cast<std::size_t>(order.rank - 1)];
    if (order.kind == LifeKind::kEcho) {
      // One is under way at a time.
      if (std::exchange(rank.trips_left, rank.trips_left + order.round_trips) == 0) {
        KEEL_TRY(outbox.Send(rank.number, kLifeTag, {}, Encode(order.life)));
      }
      continue;
    }
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
    KEEL_TRY(HearLife(rank, outbox, *life));
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
    ++reply_events_;
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

Status Bridge::Impl::HearEcho(Rank& rank, Outbox& outbox) {
  if (rank.trips_left == 0) return OkStatus();
  ++rank.trips_made;
  if (--rank.trips_left > 0) {
    return outbox.Send(rank.number, kLifeTag, {}, Encode(Life{.kind = LifeKind::kEcho}));
  }
  const MutexLock lock(mutex_);
  shared_[static_cast<std::size_t>(rank.number)].trips_made = rank.trips_made;
  changed_.NotifyAll();
  return OkStatus();
}

Status Bridge::Impl::HearLife(Rank& rank, Outbox& outbox, const Life& life) {
  switch (life.kind) {
    case LifeKind::kHello: {
      if (std::exchange(rank.greeted, true)) break;
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
      if (rank.session == nullptr || rank.session->id() != life.session) break;
      rank.ended = life;
      if (!rank.session->CanHaveGiven(life.task_replies, life.control_replies)) {
        EndSession(rank, Unavailable(fmt::format(
                             "does not make sense: it ended after {} answers to tasks and {} to "
                             "requests, of which there were not so many",
                             life.task_replies, life.control_replies)));
      }
      break;
    case LifeKind::kEcho:
      return HearEcho(rank, outbox);
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

void Bridge::Impl::EndAllSessions(std::vector<Rank>& ranks, const Status& why) {
  std::vector<std::shared_ptr<Session>> sessions;
  {
    const MutexLock lock(mutex_);
    failed_ = why;
    orders_.clear();
    for (Shared& shared : shared_) {
      if (shared.session != nullptr) sessions.push_back(std::exchange(shared.session, nullptr));
    }
    changed_.NotifyAll();
  }
  for (Rank& rank : ranks) {
    rank.trips_left = 0;
    EndSession(rank, why);
  }
  for (const std::shared_ptr<Session>& session : sessions) session->End(why);
}

void Bridge::Impl::LookAfter(Rank& rank, Clock::time_point now) {
  if (rank.lost) return;
  if (HasEnded(rank.process)) {
    Lose(rank, "has ended");
  } else if (!rank.bye && now - rank.heard > kSilence) {
    Lose(rank, fmt::format("has been silent for {} seconds", kSilence.count()));
  } else if (Overdue(rank.task_replies, now) || Overdue(rank.control_replies, now) ||
             Overdue(rank.life, now)) {
    Lose(rank, "has begun a message that it does not end");
  }
}

void Bridge::Impl::Rest(std::vector<Rank>& ranks, bool awaiting) {
  if (!pause_.Wait(awaiting)) return;
  eventfd_t count = 0;
  eventfd_read(wake_.get(), &count);
  for (Rank& rank : ranks) LookAfter(rank, Clock::now());
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

Result<bool> Bridge::Impl::SayBye(Outbox& outbox, std::vector<Rank>& ranks) {
  const auto tell = [&](LifeKind kind) -> Status {
    for (const Rank& rank : ranks) {
      if (!rank.bye) KEEL_TRY(outbox.Send(rank.number, kLifeTag, {}, Encode(Life{.kind = kind})));
    }
    return OkStatus();
  };
  bool said = false;
  Clock::time_point until = Clock::now() + kByeTime;
  Clock::time_point next_beat = Clock::now() + kBeatPeriod;
  for (;;) {
    const std::uint64_t before = reply_events_;
    bool busy = false;
    bool all = said;
    for (Rank& rank : ranks) {
      KEEL_ASSIGN(const bool heard, Hear(rank, outbox));
      if (rank.lost) return false;
      busy |= heard;
      // Its good-bye overtakes what it sent before.
      all &= rank.bye && rank.idle();
    }
    KEEL_ASSIGN(const bool sent, outbox.Progress());
    busy |= sent;
    if (outbox.empty() && !said) {
      // Nothing of weight is under way to a rank, which may stop to listen.
      KEEL_TRY(tell(LifeKind::kBye));
      said = busy = true;
    } else if (outbox.empty() && all && !busy) {
      return true;
    }
    const Clock::time_point now = Clock::now();
    // That ranks are there is not enough: something must arrive.
    if (sent || reply_events_ != before) until = now + kByeTime;
    if (now > until) return false;
    if (now >= next_beat) {
      next_beat = now + kBeatPeriod;
      for (Rank& rank : ranks) LookAfter(rank, now);
      KEEL_TRY(tell(LifeKind::kBeat));
    }
    if (busy) {
      pause_.Reset();
    } else {
      Rest(ranks, true);
    }
  }
}

}  // namespace keel::task::mpi
