#include "task/mpi/bridge.h"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "base/fork.h"
#include "keel/task/mpi_worker.h"
#include "task/mpi/bridge_impl.h"

namespace keel::task {
namespace mpi {

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
  OrderLocked({.rank = rank,
               .kind = LifeKind::kStart,
               .session = shared.session,
               .life = {.kind = LifeKind::kStart,
                        .orchestration = static_cast<std::uint32_t>(start.orchestration),
                        .shared_memory = start.shared_memory.count(),
                        .text = start.options.device}});
  return shared.session;
}

Status Bridge::Impl::RoundTrips(int rank, std::uint64_t count, Deadline deadline) {
  const MutexLock lock(mutex_);
  KEEL_TRY(WaitForLocked(rank, deadline));
  Shared& shared = shared_[static_cast<std::size_t>(rank)];
  const std::uint64_t due = shared.trips_asked += count;
  if (count > 0) {
    OrderLocked({.rank = rank,
                 .kind = LifeKind::kEcho,
                 .life = {.kind = LifeKind::kEcho},
                 .round_trips = count});
  }
  while (shared.trips_made < due) {
    if (!WaitLocked(deadline) && shared.trips_made < due && deadline.Passed()) {
      return DeadlineExceeded(fmt::format("{} has not answered in time", shared.name));
    }
    KEEL_TRY(CheckLocked(rank));
  }
  return OkStatus();
}

void Bridge::Impl::OrderLocked(Order order) {
  orders_.push_back(std::move(order));
  ordered_.store(true, std::memory_order_release);
  eventfd_write(wake_.get(), 1);
}

void Bridge::Impl::Kill(const std::shared_ptr<Session>& session) {
  const MutexLock lock(mutex_);
  Shared& shared = shared_[static_cast<std::size_t>(session->rank())];
  if (shared.session != session || std::exchange(shared.killed, true)) return;
  OrderLocked({.rank = session->rank(),
               .kind = LifeKind::kKill,
               .session = session,
               .life = {.kind = LifeKind::kKill}});
}

void Bridge::Impl::Finish() {
  if (std::this_thread::get_id() == thread_.get_id()) return;  // it has ended the process
  {
    const MutexLock lock(mutex_);
    // Nothing can be said to a thread that waits in MPI.
    if (!open_ && failed_.ok()) return;
  }
  finishing_.store(true, std::memory_order_release);
  eventfd_write(wake_.get(), 1);
  if (thread_.joinable()) thread_.join();
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

Status Bridge::RoundTrips(int rank, std::uint64_t count, Deadline deadline) {
  return impl_->RoundTrips(rank, count, deadline);
}

void Bridge::Kill(const std::shared_ptr<Session>& session) { impl_->Kill(session); }

}  // namespace mpi

Status MpiRoundTrips(int rank, std::uint64_t count, Deadline deadline) {
  KEEL_ASSIGN(mpi::Bridge* const bridge, mpi::Bridge::Get(deadline));
  return bridge->RoundTrips(rank, count, deadline);
}

}  // namespace keel::task
