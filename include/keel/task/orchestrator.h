// Orchestrator: devices as workers. Memory on any of them, callables, and tasks whose order follows
// from what they read and write.
//
//   OrchestratorOptions options;
//   options.workers = {{"sim:0"}, {"sim:1"}};
//   KEEL_ASSIGN(auto orchestrator, Orchestrator::Create(options));
//   KEEL_ASSIGN(const Callable scale, orchestrator->Register(image));
//   KEEL_ASSIGN(const DeviceAddress w, orchestrator->Malloc(1, 1_GiB));
//   KEEL_TRY(orchestrator->CopyTo(1, w, weights.data(), 1_GiB));
//   KEEL_ASSIGN(const TaskHandle task, orchestrator->Submit(scale, arguments));  // to worker 1
//   KEEL_TRY(task.Wait(Deadline::After(1s)));
//
// A worker owns a device and runs one task at a time. It is a thread of this process, a process of
// its own, or a rank of an MPI run (Transport); what follows holds for all.
//
// Tensors. A tensor on the host is copied to the worker before the task and, if it is written, back
// after it; it must stay where it is until then. A resident tensor is on a worker already: the task
// goes to that worker, and nothing is copied, whoever allocated the memory (Malloc, or
// RegisterMemory for somebody else's).
//
// Dependencies. A task runs after every earlier task that touches a byte that it touches, if one of
// the two writes it. Bytes are those of (host, address) or (worker, address): views at other
// offsets are seen, equal addresses of two workers are not the same, unless they are threads that
// share one memory.
//
// Where. A task that names a worker, or has resident tensors, runs there, before tasks that may run
// anywhere; a busy worker delays only its own tasks. Tasks of equal standing run in the order of
// Submit.
//
// Failure. A task that fails, or whose worker dies or hangs, ends with an error, and so do the
// tasks that depend on it (kAborted, naming it); all others complete. A worker that was lost is
// started again, and what was on it is gone: using an address from before is kUnavailable and says
// so, until Malloc returns the address again. A task that is submitted after a failure is not ended
// by it, but comes after everything that touches its bytes all the same. Code that crashes takes
// the process of its worker with it: that is what processes are for. A rank that is itself lost
// ends the run (docs/tasks.md). With a thread that hangs, what was handed to it for later may end
// with kUnavailable too: nobody can tell that it was not begun.
//
// Any thread, any time, for every function. Destruction cancels what has not started (kCancelled),
// waits for what runs, within `stop_timeout`, and ends the workers. A worker that is being started
// again just then is not waited for longer: it is ended when its start returns.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "keel/base/bytes.h"
#include "keel/base/deadline.h"
#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/hal/device_name.h"
#include "keel/task/arguments.h"
#include "keel/task/host_function.h"
#include "keel/task/image.h"

namespace keel::memory {
class DeviceMemory;
}  // namespace keel::memory

namespace keel::task {

enum class Transport : std::uint8_t {
  kThread,   // a thread of this process; shares its allocators
  kProcess,  // a process of its own, over shared memory
  kMpi,      // a rank of an MPI run, on this or another machine: worker i is rank i + 1
};

// The number of a worker: its place in OrchestratorOptions::workers.
using WorkerId = std::uint32_t;
// In the list of SubmitGroup: this member names no worker.
inline constexpr WorkerId kAnyWorker = ~WorkerId{0};

// One block of a worker: an address may be that of another block after the worker was lost. 0: that
// which has the address now.
using BlockId = std::uint64_t;

struct WorkerOptions {
  // "sim:0"; empty: the default device, or for a rank the one that it has chosen itself
  std::string device;
  // For threads: this memory instead of the process's for `device`. Several workers may share one.
  std::shared_ptr<memory::DeviceMemory> memory;
};

// Who runs orchestration code.
enum class Orchestration : std::uint8_t {
  kAuto,    // the device if it can, else the host
  kDevice,  // kUnimplemented where it cannot
  kHost,    // uploads only the kernels
};

struct OrchestratorOptions {
  std::vector<WorkerOptions> workers;
  Transport transport = Transport::kThread;
  Orchestration orchestration = Orchestration::kAuto;
  // How long a task may run, unless Submit says otherwise; zero: for ever.
  std::chrono::nanoseconds task_timeout{0};
  // How long a copy, an allocation or a registration may take. A worker that is not a thread, and
  // is still at one after twice that time, is lost.
  std::chrono::nanoseconds control_timeout = std::chrono::seconds(60);
  std::chrono::nanoseconds start_timeout = std::chrono::seconds(30);
  std::chrono::nanoseconds stop_timeout = std::chrono::seconds(5);
  // Of a process or a rank: how much of the tensors on the host can be under way at a time. Costs
  // nothing until it is used.
  Bytes shared_memory = 16_GiB;
  // Of a process: the program; empty: `keel-worker` beside the library or the program, or on PATH.
  std::string worker_program;
  // What that program gets first, before what a worker needs (worker_main.h).
  std::vector<std::string> worker_arguments;
};

// A registered callable. A plain value; Unregister ends it, and later use is kNotFound.
struct Callable {
  std::uint64_t id = 0;
  friend auto operator<=>(const Callable&, const Callable&) = default;
};

struct SubmitOptions {
  std::optional<WorkerId> worker;
  std::optional<std::chrono::nanoseconds> timeout;  // zero: for ever
  // Of the resident tensors with elements, in their order; or empty, and their addresses decide.
  // kUnavailable: a block is no longer there.
  std::span<const BlockId> blocks = {};
};

// What one submitted task, or group, is doing. Cheap to copy; keeps what it needs alive. The last
// one of a task that is under way takes a lock when it goes, as Submit does.
class KEEL_EXPORT TaskHandle {
 public:
  TaskHandle() = default;  // of no task: kFailedPrecondition
  TaskHandle(const TaskHandle& other);
  TaskHandle(TaskHandle&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  TaskHandle& operator=(TaskHandle other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~TaskHandle() {
    if (state_ != nullptr) Release();
  }
  std::uint64_t id() const;
  // Never waits.
  bool done() const;
  // The outcome; kDeadlineExceeded if the task is not done by then (it goes on).
  Status Wait(Deadline deadline) const;
  // The outcome of a task that is done; OK before.
  Status error() const;
  // Whether it is done and nothing else waits with it: then no copy of it takes a lock when it
  // goes.
  bool forgotten() const;
  // Where it ran; of a group, its first member's. Nothing before it started.
  std::optional<WorkerId> worker() const;

 private:
  friend class Orchestrator;
  friend class OrchestratorCore;
  friend class TaskPool;
  struct State;
  // Takes over what one holder had.
  explicit TaskHandle(State* held) : state_(held) {}
  void Release();
  State* state_ = nullptr;
};

struct WorkerReport {
  WorkerId worker = 0;
  std::string device;  // that it has opened: "sim:0", also if it chose it itself
  bool up = false;
  Status lost;  // why it is not, or was not last
  std::uint64_t restarts = 0;
  std::uint64_t tasks = 0;            // that ended there
  std::uint64_t bytes_to_device = 0;  // tensors and copies
  std::uint64_t bytes_from_device = 0;
  std::uint64_t uploads = 0;    // of callables; of several threads on one memory, by the first
  std::uint64_t callables = 0;  // contents that it has there now
};

class KEEL_EXPORT Orchestrator {
 public:
  // Starts every worker, all at a time, within `start_timeout`; kInvalidArgument, kNotFound name
  // the one that is wrong. What is lost later is started again one after the other: a worker waits
  // for those before it, as long as each of them may take.
  static Result<std::unique_ptr<Orchestrator>> Create(OrchestratorOptions options);
  ~Orchestrator();
  Orchestrator(const Orchestrator&) = delete;
  Orchestrator& operator=(const Orchestrator&) = delete;

  // What the destructor does; again: nothing. Later calls are kCancelled, or find nothing. Whoever
  // is in a call in another thread comes back.
  void Close();

  WorkerId worker_count() const;

  // --- Memory --------------------------------------------------------------------------------
  // Does not wait for tasks, and is not ordered with them, but where it says so.

  // Where a `block` is given, calls with it are kUnavailable once it was lost, whoever has the
  // address then. kInvalidArgument: of 0 bytes.
  Result<DeviceAddress> Malloc(WorkerId worker, Bytes size, BlockId* block = nullptr);
  // The address as Malloc returned it (kInvalidArgument). The memory goes when the tasks that were
  // submitted with it are done; the call does not wait for them. What the worker finds then, that
  // somebody wrote beyond the end of the block (debug:guards), say, is the error of the call, or is
  // logged; the block is gone all the same.
  Status Free(WorkerId worker, DeviceAddress address, BlockId block = 0);
  // Wait for the tasks, submitted before, that write the bytes that are read, or touch those that
  // are written, on the worker and on the host. The range must lie in one block of Malloc or
  // RegisterMemory.
  Status CopyTo(WorkerId worker, DeviceAddress destination, const void* source, Bytes size,
                BlockId block = 0);
  Status CopyFrom(WorkerId worker, void* destination, DeviceAddress source, Bytes size,
                  BlockId block = 0);
  // Memory of the worker's device that somebody else allocated: resident tensors may be in it, and
  // it is never freed here. kAlreadyExists if it overlaps a block.
  Status RegisterMemory(WorkerId worker, DeviceAddress address, Bytes size,
                        BlockId* block = nullptr);
  // kFailedPrecondition while tasks use it.
  Status UnregisterMemory(WorkerId worker, DeviceAddress address, BlockId block = 0);

  // --- Callables -----------------------------------------------------------------------------

  // On every worker; equal images are stored once for each device, and counted: by threads that
  // share its memory together, by every process for itself.
  Result<Callable> Register(const Image& image);
  // A function of this process instead of orchestration code, and the kernels of an image, whose
  // own orchestration code does not matter. Threads only (kUnimplemented): for other transports it
  // must be an image. Nothing is uploaded but the kernels.
  Result<Callable> Register(HostFunction function, const std::optional<Image>& kernels = {});
  // A function of the workers' program instead, which finds it by the reference (worker_main.h).
  // Processes only (kUnimplemented); what the program says if it finds none.
  Result<Callable> RegisterReference(std::span<const std::byte> reference,
                                     const std::optional<Image>& kernels = {});
  // Tasks that were submitted with it still run. A worker that is busy forgets it later.
  Status Unregister(Callable callable);

  // --- Tasks ---------------------------------------------------------------------------------

  // Errors that name the argument, and then nothing was submitted: arguments that do not Check(), a
  // worker that does not exist, resident tensors of several workers or of another than the named
  // one, a resident tensor in no block.
  Result<TaskHandle> Submit(Callable callable, const Arguments& arguments,
                            const SubmitOptions& options = {});
  // One task for each element, all started together or none (but if a worker dies in that very
  // moment: that is a member that fails); done when all are, with the first error. `workers` names
  // one for each, or kAnyWorker, or is empty: who names none runs where its resident tensors are,
  // or on any worker that no other member has. kInvalidArgument: none, more members than workers, a
  // worker twice, members that depend on each other.
  Result<TaskHandle> SubmitGroup(Callable callable, std::span<const Arguments> members,
                                 std::span<const WorkerId> workers = {},
                                 const SubmitOptions& options = {});
  // Until everything that was submitted before is done, whatever came of it.
  Status WaitAll(Deadline deadline);
  // As WaitAll, for the tasks up to that one: TaskHandle::id, or last_task().
  Status WaitUpTo(std::uint64_t task, Deadline deadline);
  // The id of the newest task; 0: there was none.
  std::uint64_t last_task() const;

  // Frees what was allocated through it, as Free does, when it goes; not what has the address of a
  // block that was lost.
  class KEEL_EXPORT Scope {
   public:
    explicit Scope(Orchestrator& orchestrator);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    Result<DeviceAddress> Malloc(WorkerId worker, Bytes size, BlockId* block = nullptr);
    // What ~Scope does, with the first error.
    Status Close();

   private:
    struct Owned {
      WorkerId worker = 0;
      DeviceAddress address;
      BlockId block = 0;
    };
    Orchestrator& orchestrator_;
    std::vector<Owned> blocks_;
  };

  // What a worker last said of itself, if it is busy for more than a second.
  std::vector<WorkerReport> Report() const;
  // Of one, without asking the others. kInvalidArgument: there is no such worker.
  Result<WorkerReport> Report(WorkerId worker) const;
  // Tasks that the bookkeeping still knows: those under way, and none for long after.
  std::size_t live_tasks() const;

 private:
  friend std::unique_ptr<Orchestrator> OrchestratorOf(std::shared_ptr<class OrchestratorCore> core);
  explicit Orchestrator(std::shared_ptr<OrchestratorCore> core);
  std::shared_ptr<OrchestratorCore> core_;
  std::atomic<bool> closed_{false};
};

}  // namespace keel::task
