#include "task/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "base/owner_lock.h"
#include "keel/base/log.h"
#include "keel/base/mutex.h"
#include "task/callable_store.h"
#include "task/host_run.h"
#include "task/own_stream.h"
#include "task/stored_callable.h"

namespace keel::task {
namespace {

// Where a tensor may begin within the temporary memory of a task.
constexpr Bytes kTensorAlignment = 256_B;
// The largest block of arguments, and behind it the outcome.
constexpr Bytes kArgumentsRoom = 16_KiB;
constexpr Bytes kExchangeSize = kArgumentsRoom + Bytes(sizeof(hal::OrchestrationOutcome));
static_assert(kArgumentsRoom.count() >= sizeof(ArgumentsHeader) +
                                            Arguments::kMaxTensors * (sizeof(Tensor) + 1) +
                                            Arguments::kMaxScalars * 8 + 8);

Status NoSuchCallable(std::uint64_t callable) {
  return NotFound(fmt::format("callable {} is not registered", callable));
}

std::string_view Text(const char* message, std::size_t size) {
  return {message, static_cast<std::size_t>(std::find(message, message + size, '\0') - message)};
}

}  // namespace

struct Engine::State {
  struct Callable {
    std::shared_ptr<StoredCallable> stored;
    std::shared_ptr<const HostFunction> function;  // null: the image's own code
  };
  // What a task has while it runs, or longer.
  struct Task {
    const Callable* callable = nullptr;
    std::shared_ptr<const Callable> kept;  // of a task that was abandoned
    DeviceAddress temporary{};
    bool launched = false;  // and not known to be done
    const std::atomic<bool>* killed = nullptr;

    // Before every use of a tensor of the host: its owner may have been told that the task is over.
    Status MayGoOn() const {
      if (killed == nullptr || !killed->load(std::memory_order_acquire)) return OkStatus();
      return {StatusCode::kCancelled, "the worker was ended"};
    }
  };

  ~State();

  std::uint64_t Add(Callable callable);
  // A callable that a task begins to run with: it stays until the task has left it. Null: there is
  // none. One task at a time.
  const Callable* Enter(std::uint64_t callable);
  void Leave();
  // Leave, with what the task has kept.
  void Abandon(Task task);
  Status EndAbandoned(Deadline deadline);
  Status Run(Task& task, std::span<const std::byte> arguments, Deadline deadline) {
    const ArgumentsView view(arguments.data());
    bool resident = true;
    for (std::size_t i = 0; i < view.tensor_count(); ++i) resident &= view.tensor(i).resident();
    return resident ? Execute(task, arguments, deadline) : RunWithCopies(task, arguments, deadline);
  }
  Status RunWithCopies(Task& task, std::span<const std::byte> arguments, Deadline deadline);
  Status CopyIn(Task& task, Arguments& arguments, Deadline deadline);
  Status CopyOut(const Task& task, const Arguments& arguments, const Arguments& placed,
                 Deadline deadline);
  // With arguments that are all on the device.
  Status Execute(Task& task, std::span<const std::byte> placed, Deadline deadline) {
    const bool on_host =
        task.callable->function != nullptr || task.callable->stored->function() != nullptr;
    return on_host ? ExecuteOnHost(task, placed, deadline)
                   : ExecuteOnDevice(task, placed, deadline);
  }
  Status ExecuteOnDevice(Task& task, std::span<const std::byte> placed, Deadline deadline);
  Status ExecuteOnHost(Task& task, std::span<const std::byte> placed, Deadline deadline);
  // Queues the code; what it returned is in the exchange when the stream is past it.
  Status LaunchOnDevice(const Task& task, std::span<const std::byte> placed);
  const hal::OrchestrationOutcome& outcome() const {
    return *reinterpret_cast<const hal::OrchestrationOutcome*>(exchange + kArgumentsRoom.count());
  }

  std::shared_ptr<memory::DeviceMemory> memory;
  std::shared_ptr<OwnStream> control;
  std::shared_ptr<OwnStream> tasks;
  std::unique_ptr<CallableStore> store;
  // Pinned memory for the arguments and the outcome of orchestration on the device; null on the
  // host. Only the thread that runs tasks touches it.
  std::byte* exchange = nullptr;
  std::vector<Task> abandoned;     // the device may still work on them
  std::vector<std::byte> encoded;  // the arguments of the task that runs, once they are placed

  // Tasks and control count in passing.
  std::atomic<std::uint64_t> tasks_run{0};
  std::atomic<std::uint64_t> bytes_to_device{0};
  std::atomic<std::uint64_t> bytes_from_device{0};

  Mutex mutex;
  std::set<DeviceAddress> blocks KEEL_GUARDED_BY(mutex);

  // The thread that runs tasks owns it, and takes it twice for each; others seldom do.
  OwnerLock callables_lock;
  std::map<std::uint64_t, std::shared_ptr<const Callable>> callables
      KEEL_GUARDED_BY(callables_lock);
  std::uint64_t last_callable KEEL_GUARDED_BY(callables_lock) = 0;
  // The callable of the last task that found one: most tasks have that of the one before.
  std::uint64_t recent_number KEEL_GUARDED_BY(callables_lock) = 0;
  const std::shared_ptr<const Callable>* recent KEEL_GUARDED_BY(callables_lock) = nullptr;
  // What a task runs with, and, if it was unregistered meanwhile, who keeps it.
  const std::shared_ptr<const Callable>* running KEEL_GUARDED_BY(callables_lock) = nullptr;
  std::shared_ptr<const Callable> leaving KEEL_GUARDED_BY(callables_lock);
};

Result<std::unique_ptr<Engine>> Engine::Create(const std::shared_ptr<memory::DeviceMemory>& memory,
                                               Orchestration orchestration) {
  if (memory == nullptr) return InvalidArgument("no device memory");
  if (orchestration == Orchestration::kAuto) {
    orchestration = memory->device()->capabilities().orchestration ? Orchestration::kDevice
                                                                   : Orchestration::kHost;
  }
  auto state = MakeSharedHere<State>();
  state->memory = memory;
  KEEL_ASSIGN(state->store, CallableStore::Share(state->memory, orchestration));
  KEEL_ASSIGN(state->control, OwnStream::Create(state->memory));
  KEEL_ASSIGN(state->tasks, OwnStream::Create(state->memory));
  if (orchestration == Orchestration::kDevice) {
    KEEL_ASSIGN(void* const pinned, state->memory->host().Allocate(kExchangeSize));
    state->exchange = static_cast<std::byte*>(pinned);
  }
  return std::unique_ptr<Engine>(new Engine(std::move(state)));
}

Engine::Engine(std::shared_ptr<State> state) : state_(std::move(state)) {}
Engine::~Engine() = default;

Engine::State::~State() {
  // Modules and memory of a task that was given up must not go while the device works with them.
  if (!abandoned.empty()) {
    const Status status = tasks->device().SynchronizeStream(tasks->get(), Deadline::Never());
    if (!status.ok() && tasks->device().Health().ok()) {
      Log(LogLevel::kWarn, "waiting for a task that took too long: " + status.ToString());
    }
  }
  for (const Task& task : abandoned) {
    if (task.temporary) tasks->Free(task.temporary);
  }
  // The store may be others', too.
  for (const auto& [number, callable] : callables) {
    static_cast<void>(store->Unregister(callable->stored));
  }
  const MutexLock lock(mutex);
  for (const DeviceAddress block : blocks) control->Free(block);
  if (exchange == nullptr) return;
  const Status status = memory->host().Free(exchange);
  if (!status.ok() && memory->device()->Health().ok()) {
    Log(LogLevel::kWarn, "a worker's pinned memory could not be freed: " + status.ToString());
  }
}

// --- Control -----------------------------------------------------------------------------------

Result<DeviceAddress> Engine::Allocate(Bytes size) {
  KEEL_ASSIGN(const DeviceAddress address, state_->control->Allocate(size));
  const MutexLock lock(state_->mutex);
  if (address) state_->blocks.insert(address);
  return address;
}

Status Engine::Free(DeviceAddress address) {
  if (!address) return OkStatus();  // of no bytes
  {
    const MutexLock lock(state_->mutex);
    if (state_->blocks.erase(address) == 0) {
      return InvalidArgument(fmt::format(
          "{} is not the address of a block that was allocated here, or it was freed before",
          ToString(address)));
    }
  }
  Status status = state_->memory->allocator().Free(address);
  if (status.ok()) return status;
  // kResourceExhausted of a worker's Free is one that was not begun.
  if (status.code() == StatusCode::kResourceExhausted) {
    status = Internal(std::string(status.message()));
  }
  return std::move(status).Annotate(fmt::format("{} was freed, with an error", ToString(address)));
}

Status Engine::CopyTo(DeviceAddress destination, const void* source, Bytes size,
                      Deadline deadline) {
  const hal::StreamHandle stream = state_->control->get();
  KEEL_TRY(state_->memory->CopyToDevice(stream, destination, source, size, deadline));
  // Tasks are on another stream: for them it must have arrived.
  KEEL_TRY(state_->memory->device()->SynchronizeStream(stream, deadline));
  state_->bytes_to_device.fetch_add(size.count(), std::memory_order_relaxed);
  return OkStatus();
}

Status Engine::CopyFrom(void* destination, DeviceAddress source, Bytes size, Deadline deadline) {
  KEEL_TRY(state_->memory->CopyToHost(state_->control->get(), destination, source, size, deadline));
  state_->bytes_from_device.fetch_add(size.count(), std::memory_order_relaxed);
  return OkStatus();
}

Result<std::uint64_t> Engine::Register(const Image& image, Deadline deadline) {
  if (image.orchestration().empty()) {
    return InvalidArgument(
        "the image has kernels and no orchestration code: register it with a function");
  }
  KEEL_ASSIGN(std::shared_ptr<StoredCallable> stored, state_->store->Register(image, deadline));
  return state_->Add({std::move(stored), nullptr});
}

Result<std::uint64_t> Engine::RegisterFunction(const HostCode& code, Deadline deadline) {
  if (code.function == nullptr || *code.function == nullptr) {
    return InvalidArgument("there is no function");
  }
  if (!code.kernels.orchestration().empty()) {
    return InvalidArgument("the image of a function has orchestration code, which nobody runs");
  }
  KEEL_ASSIGN(std::shared_ptr<StoredCallable> stored,
              state_->store->Register(code.kernels, deadline));
  return state_->Add({std::move(stored), code.function});
}

std::uint64_t Engine::State::Add(Callable callable) {
  auto added = std::make_shared<const Callable>(std::move(callable));
  const OtherGuard lock(callables_lock);
  callables.emplace(++last_callable, std::move(added));
  return last_callable;
}

Status Engine::Unregister(std::uint64_t callable) {
  std::shared_ptr<const State::Callable> gone;  // outside of the lock
  {
    const OtherGuard lock(state_->callables_lock);
    const auto found = state_->callables.find(callable);
    if (found == state_->callables.end()) return NoSuchCallable(callable);
    if (state_->recent == &found->second) state_->recent = nullptr;
    if (state_->running == &found->second) {
      state_->leaving = found->second;
      state_->running = &state_->leaving;
    }
    gone = std::move(found->second);
    state_->callables.erase(found);
  }
  return state_->store->Unregister(gone->stored);
}

EngineStats Engine::Stats() const {
  EngineStats stats;
  stats.tasks = state_->tasks_run.load(std::memory_order_relaxed);
  stats.bytes_to_device = state_->bytes_to_device.load(std::memory_order_relaxed);
  stats.bytes_from_device = state_->bytes_from_device.load(std::memory_order_relaxed);
  stats.uploads = state_->store->uploads();
  std::set<const StoredCallable*> distinct;
  {
    const OtherGuard lock(state_->callables_lock);
    for (const auto& [number, callable] : state_->callables)
      distinct.insert(callable->stored.get());
  }
  stats.callables = distinct.size();
  return stats;
}

// --- Tasks -------------------------------------------------------------------------------------

Status Engine::Run(std::uint64_t callable, std::span<const std::byte> arguments, Deadline deadline,
                   const std::atomic<bool>* killed) {
  if (!state_->abandoned.empty()) KEEL_TRY(state_->EndAbandoned(deadline));
  State::Task task;
  task.killed = killed;
  task.callable = state_->Enter(callable);
  if (task.callable == nullptr) return NoSuchCallable(callable);
  Status status;
  try {
    status = state_->Run(task, arguments, deadline);
  } catch (...) {
    // A function ended the thread; see Server::ServeTasks.
    state_->Abandon(std::move(task));
    throw;
  }
  if (task.temporary || task.launched || !status.ok()) {
    const bool lost = status.code() == StatusCode::kDeviceLost;
    if ((task.launched && !lost) || status.code() == StatusCode::kDeadlineExceeded) {
      state_->Abandon(std::move(task));
    } else {
      state_->Leave();
      if (task.temporary) {
        const Status freed = state_->memory->allocator().Free(task.temporary);
        if (status.ok()) status = freed;
      }
    }
  } else {
    state_->Leave();
  }
  // Nobody else counts them.
  state_->tasks_run.store(state_->tasks_run.load(std::memory_order_relaxed) + 1,
                          std::memory_order_relaxed);
  return status;
}

// Of a task whose end could not be waited for: it has the pinned memory that the next one needs.
Status Engine::State::EndAbandoned(Deadline deadline) {
  KEEL_TRY(tasks->device().SynchronizeStream(tasks->get(), deadline));
  for (const Task& task : abandoned) {
    if (task.temporary) tasks->Free(task.temporary);
  }
  abandoned.clear();
  return OkStatus();
}

inline const Engine::State::Callable* Engine::State::Enter(std::uint64_t callable) {
  const OwnerGuard lock(callables_lock);
  if (recent == nullptr || recent_number != callable) {
    const auto found = callables.find(callable);
    if (found == callables.end()) return nullptr;
    recent_number = callable;
    recent = &found->second;
  }
  running = recent;
  return recent->get();
}

inline void Engine::State::Leave() {
  std::shared_ptr<const Callable> gone;  // outside of the lock
  const OwnerGuard lock(callables_lock);
  running = nullptr;
  if (leaving != nullptr) gone = std::move(leaving);
}

void Engine::State::Abandon(Task task) {
  {
    const OwnerGuard lock(callables_lock);
    task.kept = *running;
  }
  Leave();
  abandoned.push_back(std::move(task));
}

Status Engine::State::RunWithCopies(Task& task, std::span<const std::byte> arguments,
                                    Deadline deadline) {
  KEEL_ASSIGN(const Arguments given, Arguments::Decode(arguments));
  Arguments placed = given;
  KEEL_TRY(CopyIn(task, placed, deadline));
  encoded.resize(placed.encoded_size());
  placed.EncodeTo(encoded);
  KEEL_TRY(Execute(task, encoded, deadline));
  return CopyOut(task, given, placed, deadline);
}

// Gives every tensor of the host a place on the device, all in one block, and its bytes.
Status Engine::State::CopyIn(Task& task, Arguments& arguments, Deadline deadline) {
  std::vector<Bytes> offsets;
  Bytes total;
  for (const Tensor& tensor : arguments.tensors()) {
    offsets.push_back(total);
    if (tensor.resident()) continue;
    const std::optional<Bytes> sum = CheckedAdd(total, tensor.size());
    const std::optional<Bytes> aligned = sum ? AlignUp(*sum, kTensorAlignment) : std::nullopt;
    if (!aligned) return ResourceExhausted("the tensors on the host have more than 2^64 bytes");
    total = *aligned;
  }
  if (!total.empty()) {
    Result<DeviceAddress> temporary = tasks->Allocate(total);
    if (!temporary.ok()) {
      return std::move(temporary).status().Annotate("memory for the tensors on the host");
    }
    task.temporary = *temporary;
  }
  Bytes copied;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    Tensor& tensor = arguments.tensors()[i];
    if (tensor.resident()) continue;
    const DeviceAddress place = task.temporary + offsets[i];
    const Bytes size = tensor.size();
    if (Reads(arguments.tags()[i]) && !size.empty()) {
      KEEL_TRY(task.MayGoOn());
      Status status = memory->CopyToDevice(
          tasks->get(), place, reinterpret_cast<const void*>(tensor.address), size, deadline);
      if (!status.ok()) {
        return std::move(status).Annotate(fmt::format("copying tensor {} to the device", i));
      }
      copied += size;
    }
    tensor.address = place.value();
    tensor.flags |= Tensor::kResident;
  }
  bytes_to_device.fetch_add(copied.count(), std::memory_order_relaxed);
  return OkStatus();
}

Status Engine::State::CopyOut(const Task& task, const Arguments& arguments, const Arguments& placed,
                              Deadline deadline) {
  Bytes copied;
  for (std::size_t i = 0; i < arguments.tensors().size(); ++i) {
    const Tensor& tensor = arguments.tensors()[i];
    if (tensor.resident() || !Writes(arguments.tags()[i]) || tensor.size().empty()) continue;
    KEEL_TRY(task.MayGoOn());
    Status status =
        memory->CopyToHost(tasks->get(), reinterpret_cast<void*>(tensor.address),
                           DeviceAddress(placed.tensors()[i].address), tensor.size(), deadline);
    if (!status.ok()) {
      return std::move(status).Annotate(fmt::format("copying tensor {} from the device", i));
    }
    copied += tensor.size();
  }
  bytes_from_device.fetch_add(copied.count(), std::memory_order_relaxed);
  return OkStatus();
}

Status Engine::State::ExecuteOnDevice(Task& task, std::span<const std::byte> placed,
                                      Deadline deadline) {
  task.launched = true;
  const Status status = LaunchOnDevice(task, placed);
  KEEL_TRY(tasks->device().SynchronizeStream(tasks->get(), deadline));
  task.launched = false;
  KEEL_TRY(status);
  return OutcomeOf(outcome().code, Text(outcome().message, sizeof(outcome().message)));
}

inline Status Engine::State::ExecuteOnHost(Task& task, std::span<const std::byte> placed,
                                           Deadline deadline) {
  task.launched = true;
  bool queued = false;
  Status status = RunOnHost({memory, tasks, *task.callable->stored, task.callable->function.get(),
                             deadline, queued, task.killed},
                            placed);
  // Kernels that were launched run also if a later launch was refused, and use the memory; copies
  // use the host's. Of a task with neither the device knows nothing.
  if (queued || task.temporary) {
    KEEL_TRY(tasks->device().SynchronizeStream(tasks->get(), deadline));
  }
  task.launched = false;
  return status;
}

Status Engine::State::LaunchOnDevice(const Task& task, std::span<const std::byte> placed) {
  const Bytes size(placed.size());
  std::ranges::copy(placed, exchange);
  KEEL_ASSIGN(const DeviceAddress address, tasks->device().GetHostAddress(exchange));
  const StoredCallable& callable = *task.callable->stored;
  const hal::KernelArg args[] = {
      hal::KernelArg::In(address, size),
      hal::KernelArg::In(callable.table(), callable.table_size()),
      hal::KernelArg::Out(address + kArgumentsRoom, Bytes(sizeof(hal::OrchestrationOutcome))),
  };
  return tasks->device().LaunchKernel(tasks->get(), {callable.entry(), {}, args});
}

}  // namespace keel::task
