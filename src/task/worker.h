// Worker: one worker, as the orchestrator sees it; a thread, a process or a rank of MPI behind one
// interface.
//
// Two ways lead to it, which never share anything: tasks, posted without waiting and answered in
// order; and control, each call with its answer. A control call may be made while tasks run, from
// any thread.
//
// Loss. A worker that dies, answers nonsense, or does not answer a task by its deadline is lost:
// every task that was posted and not answered ends with kUnavailable (or kDeadlineExceeded for the
// one that was too slow) in Collect, every control call fails with kUnavailable that says why,
// until Restart. A control call that is not answered by its deadline is kDeadlineExceeded and harms
// nobody; but if the worker was at it by then and still is after `call_grace`, the next call finds
// the worker lost, unless it is a thread.
//
// Whose host memory: addresses of host tensors are the orchestrator's. A thread uses them as they
// are. A process gets the bytes through shared memory, and what it wrote comes back from there.
// What is small Post and Collect copy themselves. What is large a thread copies that rings the
// doorbell: meanwhile the task, and those posted behind it, are not with the worker yet, or it has
// ended and is not in Collect yet; others are. The caller keeps the memory in place until Collect.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "keel/base/bytes.h"
#include "keel/base/deadline.h"
#include "keel/base/result.h"
#include "keel/task/arguments.h"
#include "keel/task/image.h"
#include "keel/task/orchestrator.h"
#include "task/engine.h"
#include "task/lane.h"

namespace keel::task {

// What workers ring when there is something to collect and somebody sleeps, or one of them is lost.
// One for all workers of an orchestrator, so that one thread can wait for all of them. Lives in
// shared memory, because processes ring it too.
class Doorbell {
 public:
  static Result<std::shared_ptr<Doorbell>> Create();
  virtual ~Doorbell() = default;
  // Counts rings. Read it, look for work, and if there was none wait for another value, or for the
  // next answers of the workers that have tasks.
  virtual std::uint32_t value() const = 0;
  // As WaitWhile, but for less than a microsecond, and without a look at the clock.
  virtual bool SpinWhile(std::uint32_t seen, std::span<const Sign> answers) = 0;
  // Spins briefly, then sleeps in the kernel, until value() != seen, one of the answers is there,
  // or the deadline. Any number of threads. False: the deadline.
  virtual bool WaitWhile(std::uint32_t seen, std::span<const Sign> answers, Deadline deadline) = 0;
  virtual void Ring() = 0;
  // The same if somebody sleeps. For who has answered.
  virtual void RingSleepers() = 0;
  // For the worker process; stays the doorbell's.
  virtual int descriptor() const = 0;
};

struct TaskResult {
  std::uint64_t task = 0;
  Status status;
  bool sent = true;   // false: the worker never had it
  bool late = false;  // it was answered before others that came sooner
};

class Worker {
 public:
  // The most tasks that may be posted and not collected.
  static constexpr std::size_t kCapacity = 256;

  virtual ~Worker() = default;  // Stop

  // --- Tasks: one thread at a time (the caller has a lock) -------------------------------------

  // Never waits. `task` comes back in Collect, once. kResourceExhausted: kCapacity, or the bytes do
  // not fit into the shared memory now; nothing was posted, and it may fit after a Collect.
  // kOutOfRange: they never will. kUnavailable: lost. Precondition: arguments.Check() is OK.
  virtual Status Post(std::uint64_t task, std::uint64_t callable, const Arguments& arguments,
                      Deadline deadline) = 0;
  // The short way for what is most: a task without arguments and deadline. False: nothing was
  // posted, and Post tells why.
  virtual bool TryPost(std::uint64_t /*task*/, std::uint64_t /*callable*/) { return false; }
  // After one or several posts: a worker that sleeps has not noticed them before.
  virtual void Wake() {}
  // Whether Post could take these at all, some time: OK, or kOutOfRange as Post would say it.
  virtual Status Fits(const Arguments& arguments) const = 0;
  // Appends what has ended since, in the order in which it ended, but for results that are still
  // being copied. Waits for nothing but, after a loss, a copy of a piece. Also finds out that a
  // deadline has passed or the worker is lost.
  virtual void Collect(std::vector<TaskResult>& results) = 0;
  // The short way for what is most: takes those of the first tasks that are answered and went well,
  // and says how many. 0: there are none, or there is something to say of one, for Collect.
  virtual std::size_t TakeDone() { return 0; }
  // What tells that there is something to collect, until the next Collect or Restart. Any thread
  // may look at it meanwhile. Without a word: only the doorbell does.
  virtual Sign NextAnswer() const { return {}; }
  // When Collect should be called even if nobody rings: the nearest deadline of a posted task, or
  // sooner.
  virtual Deadline NextDeadline() const = 0;

  // --- Control: any thread --------------------------------------------------------------------

  virtual Result<DeviceAddress> Allocate(Bytes size, Deadline deadline) = 0;
  // kDeadlineExceeded: it happens yet. kResourceExhausted: the worker was busy for a while, and
  // never begins this call. So is Unregister.
  virtual Status Free(DeviceAddress address, Deadline deadline) = 0;
  virtual Status CopyTo(DeviceAddress destination, const void* source, Bytes size,
                        Deadline deadline) = 0;
  virtual Status CopyFrom(void* destination, DeviceAddress source, Bytes size,
                          Deadline deadline) = 0;
  virtual Result<std::uint64_t> Register(const Image& image, Deadline deadline) = 0;
  // A function of this process. kUnimplemented: the worker is not a thread of it.
  virtual Result<std::uint64_t> RegisterFunction(const HostCode& /*code*/, Deadline /*deadline*/) {
    return Unimplemented("only a worker that is a thread of this process can run its functions");
  }
  // A function that the worker's program finds by its reference. kUnimplemented: it finds none.
  virtual Result<std::uint64_t> RegisterReference(const HostCode& /*code*/, Deadline /*deadline*/) {
    return Unimplemented("only a worker's own program finds functions by a reference");
  }
  virtual Status Unregister(std::uint64_t callable, Deadline deadline) = 0;
  virtual Result<EngineStats> Stats(Deadline deadline) = 0;

  // --- Life -----------------------------------------------------------------------------------

  // The device that it has opened, as in "sim:0"; empty: it does not say. Not while it is started.
  virtual std::string device() const { return {}; }
  // Which memory of this process it uses, to be compared only; null: none, it has its own. Not
  // while it is started.
  virtual const memory::DeviceMemory* memory() const { return nullptr; }
  // OK, or why it is lost.
  virtual Status Health() const = 0;
  // After a loss, when Collect has returned everything: a new, empty worker. May take as long as
  // the start of a process. Not while another call of this object runs. A thread that hangs in code
  // that was given to it cannot be ended; it is left behind, with what it holds, until the code
  // returns.
  virtual Status Restart(Deadline deadline) = 0;
  // Lets the current task end until the deadline, then ends the worker whatever it does.
  virtual void Stop(Deadline deadline) = 0;
};

struct WorkerStart {
  WorkerId index = 0;  // in the orchestrator
  WorkerOptions options;
  Orchestration orchestration = Orchestration::kAuto;
  Bytes shared_memory = 16_GiB;
  std::chrono::nanoseconds call_grace = std::chrono::seconds(60);
  std::string program;                 // of a process
  std::vector<std::string> arguments;  // its own, before those of a worker
  std::shared_ptr<Doorbell> doorbell;
};

Result<std::unique_ptr<Worker>> StartThreadWorker(const WorkerStart& start, Deadline deadline);
Result<std::unique_ptr<Worker>> StartProcessWorker(const WorkerStart& start, Deadline deadline);
Result<std::unique_ptr<Worker>> StartMpiWorker(const WorkerStart& start, Deadline deadline);

}  // namespace keel::task
