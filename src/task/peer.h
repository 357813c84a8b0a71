// Peer: what serves a worker's lanes: threads of this process, a process, or a rank of MPI. Owns
// the region, and whatever runs in it.
//
// Ended, Kill and WaitEnded may be called by any thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "keel/base/deadline.h"
#include "keel/base/result.h"
#include "task/data_area.h"
#include "task/region.h"
#include "task/worker.h"

namespace keel::task {

class Peer {
 public:
  // `ended` becomes true, for good, together with Ended(). Lives as long as the peer.
  explicit Peer(const std::atomic<bool>& ended) : ended_(ended) {}
  // Ends it at once. A thread that hangs in code that was given to it is left behind, with what it
  // uses.
  virtual ~Peer() = default;

  virtual Region& region() = 0;
  // Null: bytes on the host are used where they are.
  virtual DataArea* data() = 0;
  // Of a thread that has greeted: the memory that it has opened, to be compared only. Else null.
  virtual const memory::DeviceMemory* memory() const { return nullptr; }
  // "process 123", "a thread"
  virtual std::string name() const = 0;
  // False: Ended() is OK. Costs a load.
  bool has_ended() const { return ended_.load(std::memory_order_acquire); }
  // OK while it runs; then kUnavailable with what came of it: "was killed by signal 9 (SIGKILL)".
  virtual Status Ended() const = 0;
  // At once, without waiting for it.
  virtual void Kill() = 0;
  // False: the deadline.
  virtual bool WaitEnded(Deadline deadline) = 0;
  // Of a process; else 0.
  virtual int process() const = 0;

 private:
  const std::atomic<bool>& ended_;
};

// Both ring the start's doorbell when the peer has ended.
Result<std::unique_ptr<Peer>> StartThreadPeer(const WorkerStart& start);
Result<std::unique_ptr<Peer>> StartProcessPeer(const WorkerStart& start);

}  // namespace keel::task
