// SimStream: a thread that runs commands in order.
//
// Work is pushed under a lock and taken in batches. Between streams there is no order but what
// tickets ask for; a seed adds random delays before commands, so that a missing wait shows. A
// stream that is held starts no further command. When the device is lost, or the stream stopped,
// what is queued is dropped and its tickets abandoned, so that nobody waits for it.
//
// Thread-safe. The thread ends when the stream was finished and has run dry, or was stopped; the
// destructor stops and joins.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <thread>
#include <variant>
#include <vector>

#include "drivers/sim/graph.h"
#include "drivers/sim/program.h"
#include "drivers/sim/ticket.h"
#include "keel/base/deadline.h"
#include "keel/base/mutex.h"
#include "keel/base/result.h"
#include "keel/hal/types.h"

namespace keel::sim {

class Capture;
class SimDevice;

class SimStream {
 public:
  enum class Role { kOwned, kLegacy, kPerThread };

  struct Reach {
    std::shared_ptr<Ticket> ticket;
  };
  struct Await {
    std::shared_ptr<Ticket> ticket;
  };
  using Work = std::variant<StoredCommand, Reach, Await, SimExec::Launch>;

  static Result<std::shared_ptr<SimStream>> Create(SimDevice& device, Role role,
                                                   std::uint64_t seed);
  ~SimStream();
  SimStream(const SimStream&) = delete;
  SimStream& operator=(const SimStream&) = delete;

  SimDevice& device() const { return device_; }
  Role role() const { return role_; }

  void Push(Work work) KEEL_EXCLUDES(mutex_);
  // The number of commands pushed so far.
  std::uint64_t position() const { return pushed_.load(std::memory_order_acquire); }
  bool Reached(std::uint64_t position) const {
    return completed_.load(std::memory_order_acquire) >= position;
  }
  // Whether everything that was pushed is done. After an event that was pushed last was seen to be
  // done, it is true.
  bool Idle() KEEL_EXCLUDES(mutex_);
  // False when the deadline passed first. True also when the work was dropped: look at the
  // device's health.
  bool WaitFor(std::uint64_t position, Deadline deadline) KEEL_EXCLUDES(mutex_);

  void Hold() KEEL_EXCLUDES(mutex_);
  bool Release() KEEL_EXCLUDES(mutex_);  // false: it was not held

  // No more work will be pushed: the thread ends when it has run what is there.
  void Finish() KEEL_EXCLUDES(mutex_);
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  // Drops what is queued and waits for the command that is running.
  void Stop() KEEL_EXCLUDES(mutex_);
  // The device was lost: look.
  void Wake() KEEL_EXCLUDES(mutex_);
  // Whether what this stream does is pointless by now.
  bool Cancelled() const;

  std::mt19937_64& random() { return random_; }  // the stream's own thread only

  // The capture that the stream takes part in, and the nodes that its next command depends on.
  // Guarded by the machine's capture lock (capture.h); `capturing` is a hint without it.
  std::shared_ptr<Capture> capture;
  std::vector<hal::NodeHandle> frontier;
  std::atomic<bool> capturing{false};

 private:
  SimStream(SimDevice& device, Role role, std::uint64_t seed);

  void Main();
  bool AwaitTurn() KEEL_EXCLUDES(mutex_);
  void Run(Work& work);
  static void Drop(Work& work);

  SimDevice& device_;
  const Role role_;
  std::mt19937_64 random_;

  mutable Mutex mutex_;
  CondVar work_arrived_;  // work, a release, the end
  CondVar progress_;      // completed_ moved while somebody waits
  std::deque<Work> queue_ KEEL_GUARDED_BY(mutex_);
  bool sleeping_ KEEL_GUARDED_BY(mutex_) = false;
  bool finishing_ KEEL_GUARDED_BY(mutex_) = false;
  std::atomic<int> holds_{0};
  std::atomic<int> waiters_{0};
  std::atomic<bool> stopped_{false};
  std::atomic<bool> ended_{false};
  std::atomic<std::uint64_t> pushed_{0};
  std::atomic<std::uint64_t> completed_{0};
  std::thread thread_;
};

}  // namespace keel::sim
