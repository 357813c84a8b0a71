// The bridge's inside: what other threads do is in bridge.cc, what its own does in
// bridge_thread.cc.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "keel/base/mutex.h"
#include "keel/base/unique_fd.h"
#include "task/mpi/bridge.h"
#include "task/mpi/frames.h"
#include "task/mpi/life.h"
#include "task/mpi/pause.h"
#include "task/mpi/port.h"
#include "task/mpi/session.h"

namespace keel::task::mpi {

inline constexpr const char* kHow =
    "run it as 'mpirun -n 4 keel worker -- PROGRAM' or 'mpirun -n 1 PROGRAM : -n 3 keel worker'";

// Sent by another thread to that of the bridge.
struct Order {
  int rank = 0;
  LifeKind kind = LifeKind::kStart;
  std::shared_ptr<Session> session;  // kEcho: none
  Life life;
  std::uint64_t round_trips = 0;  // kEcho
};

// What the bridge's thread knows of a rank.
struct Rank {
  using Clock = std::chrono::steady_clock;

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
  std::uint64_t trips_left = 0;
  std::uint64_t trips_made = 0;
  bool greeted = false;
  bool lost = false;
  bool bye = false;

  bool idle() const { return task_replies.idle() && control_replies.idle() && life.idle(); }
};

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
  Status RoundTrips(int rank, std::uint64_t count, Deadline deadline) KEEL_EXCLUDES(mutex_);
  void Kill(const std::shared_ptr<Session>& session) KEEL_EXCLUDES(mutex_);
  // Ends MPI, and the thread.
  void Finish() KEEL_EXCLUDES(mutex_);

 private:
  using Clock = std::chrono::steady_clock;
  // What other threads see of a rank.
  struct Shared {
    std::string name;  // empty: it has not said hello
    Status unusable;
    std::shared_ptr<Session> session;
    bool killed = false;  // the session
    std::uint64_t trips_asked = 0;
    std::uint64_t trips_made = 0;  // when none is left
  };

  explicit Impl(UniqueFd wake) : wake_(std::move(wake)) {}
  Status CheckLocked(int rank) const KEEL_REQUIRES(mutex_);
  // Until it has said hello.
  Status WaitForLocked(int rank, Deadline deadline) KEEL_REQUIRES(mutex_);
  bool WaitLocked(Deadline deadline) KEEL_REQUIRES(mutex_);
  void OrderLocked(Order order) KEEL_REQUIRES(mutex_);

  // All of these: the bridge's thread.
  void Main(const KeelMpiTable& table);
  // Until Finish, or until a lost rank has ended the run. An error: of MPI.
  Status Serve(Port& port, Outbox& outbox, std::vector<Rank>& ranks);
  Result<bool> Obey(Outbox& outbox, std::vector<Rank>& ranks);
  Result<bool> Hear(Rank& rank, Outbox& outbox);
  Result<bool> HearReplies(Rank& rank, Outbox& outbox, FrameReader& reader, bool task);
  Status HearLife(Rank& rank, Outbox& outbox, const Life& life);
  Status HearEcho(Rank& rank, Outbox& outbox);
  Status Nonsense(Rank& rank, Outbox& outbox, const Status& what);
  void SettleEnd(Rank& rank);
  void EndSession(Rank& rank, const Status& why);
  void Lose(Rank& rank, const std::string& what);
  void LookAfter(Rank& rank, Clock::time_point now);
  // While there is nothing to do.
  void Rest(std::vector<Rank>& ranks, bool awaiting);
  // Also those that have not been begun.
  void EndAllSessions(std::vector<Rank>& ranks, const Status& why) KEEL_EXCLUDES(mutex_);
  // Tells all ranks to end, and waits until they do. False: one does not. What is under way arrives
  // before: MPI's end would write into memory that is gone.
  Result<bool> SayBye(Outbox& outbox, std::vector<Rank>& ranks);

  const UniqueFd wake_;
  Pause pause_;
  Clock::time_point abort_at_ = Clock::time_point::max();
  std::uint64_t reply_events_ = 0;  // parts of answers that have arrived

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

}  // namespace keel::task::mpi
