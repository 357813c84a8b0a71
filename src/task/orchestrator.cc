#include "keel/task/orchestrator.h"

#include <utility>

#include "keel/base/log.h"
#include "task/orchestrator_core.h"
#include "task/task_state.h"
#include "task/worker.h"

namespace keel::task {
namespace {

// What a function launches.
Result<Image> KernelsOf(const std::optional<Image>& kernels) {
  return kernels.has_value() ? Result<Image>(kernels->WithoutOrchestration())
                             : ImageBuilder().BuildKernels();
}

}  // namespace

// --- TaskHandle ------------------------------------------------------------------------------

TaskHandle::TaskHandle(const TaskHandle& other) : state_(other.state_) {
  if (state_ != nullptr) state_->Hold();
}

void TaskHandle::Release() { state_->Release(); }

std::uint64_t TaskHandle::id() const { return state_ == nullptr ? 0 : state_->id; }

bool TaskHandle::done() const {
  return state_ != nullptr && state_->done.load(std::memory_order_acquire);
}

bool TaskHandle::forgotten() const { return state_ == nullptr || state_->gone(); }

Status TaskHandle::Wait(Deadline deadline) const {
  if (state_ == nullptr) return FailedPrecondition("this handle is of no task");
  return state_->core->Wait(*state_, deadline);
}

Status TaskHandle::error() const {
  if (state_ == nullptr) return FailedPrecondition("this handle is of no task");
  return done() ? state_->outcome : OkStatus();
}

std::optional<WorkerId> TaskHandle::worker() const {
  if (state_ == nullptr) return std::nullopt;
  const std::int32_t worker = state_->worker.load(std::memory_order_relaxed);
  return worker < 0 ? std::nullopt : std::optional(static_cast<WorkerId>(worker));
}

// --- Orchestrator ----------------------------------------------------------------------------

Orchestrator::Orchestrator(std::shared_ptr<OrchestratorCore> core) : core_(std::move(core)) {}

Orchestrator::~Orchestrator() { Close(); }

void Orchestrator::Close() {
  if (!closed_.exchange(true)) core_->Stop();
}

Result<std::unique_ptr<Orchestrator>> Orchestrator::Create(OrchestratorOptions options) {
  const auto start = [transport = options.transport] {
    switch (transport) {
      case Transport::kThread:
        return StartThreadWorker;
      case Transport::kMpi:
        return StartMpiWorker;
      case Transport::kProcess:
        break;
    }
    return StartProcessWorker;
  }();
  KEEL_ASSIGN(auto core, OrchestratorCore::Create(std::move(options), start));
  return OrchestratorOf(std::move(core));
}

std::unique_ptr<Orchestrator> OrchestratorOf(std::shared_ptr<OrchestratorCore> core) {
  return std::unique_ptr<Orchestrator>(new Orchestrator(std::move(core)));
}

WorkerId Orchestrator::worker_count() const { return core_->worker_count(); }

Result<DeviceAddress> Orchestrator::Malloc(WorkerId worker, Bytes size, BlockId* block) {
  return core_->Malloc(worker, size, block);
}

Status Orchestrator::Free(WorkerId worker, DeviceAddress address, BlockId block) {
  return core_->Free(worker, address, block);
}

Status Orchestrator::CopyTo(WorkerId worker, DeviceAddress destination, const void* source,
                            Bytes size, BlockId block) {
  return core_->CopyTo(worker, destination, source, size, block);
}

Status Orchestrator::CopyFrom(WorkerId worker, void* destination, DeviceAddress source, Bytes size,
                              BlockId block) {
  return core_->CopyFrom(worker, destination, source, size, block);
}

Status Orchestrator::RegisterMemory(WorkerId worker, DeviceAddress address, Bytes size,
                                    BlockId* block) {
  return core_->RegisterMemory(worker, address, size, block);
}

Status Orchestrator::UnregisterMemory(WorkerId worker, DeviceAddress address, BlockId block) {
  return core_->UnregisterMemory(worker, address, block);
}

Result<Callable> Orchestrator::Register(const Image& image) { return core_->Register(image); }

Result<Callable> Orchestrator::Register(HostFunction function,
                                        const std::optional<Image>& kernels) {
  if (function == nullptr) return InvalidArgument("there is no function");
  KEEL_ASSIGN(Image image, KernelsOf(kernels));
  return core_->Register(HostCode{std::make_shared<const HostFunction>(std::move(function)),
                                  std::move(image), nullptr});
}

Result<Callable> Orchestrator::RegisterReference(std::span<const std::byte> reference,
                                                 const std::optional<Image>& kernels) {
  if (reference.empty()) return InvalidArgument("the reference of a function has no bytes");
  KEEL_ASSIGN(Image image, KernelsOf(kernels));
  return core_->Register(
      HostCode{nullptr, std::move(image),
               std::make_shared<const std::vector<std::byte>>(reference.begin(), reference.end())});
}

Status Orchestrator::Unregister(Callable callable) { return core_->Unregister(callable); }

Result<TaskHandle> Orchestrator::Submit(Callable callable, const Arguments& arguments,
                                        const SubmitOptions& options) {
  return core_->Submit(callable, arguments, options);
}

Result<TaskHandle> Orchestrator::SubmitGroup(Callable callable, std::span<const Arguments> members,
                                             std::span<const WorkerId> workers,
                                             const SubmitOptions& options) {
  return core_->SubmitGroup(callable, members, workers, options);
}

Status Orchestrator::WaitAll(Deadline deadline) { return core_->WaitAll(deadline); }

Status Orchestrator::WaitUpTo(std::uint64_t task, Deadline deadline) {
  return core_->WaitAll(deadline, task);
}

std::uint64_t Orchestrator::last_task() const { return core_->last_task(); }

std::vector<WorkerReport> Orchestrator::Report() const { return core_->Report(); }

Result<WorkerReport> Orchestrator::Report(WorkerId worker) const { return core_->Report(worker); }

std::size_t Orchestrator::live_tasks() const { return core_->live_tasks(); }

// --- Scope -----------------------------------------------------------------------------------

Orchestrator::Scope::Scope(Orchestrator& orchestrator) : orchestrator_(orchestrator) {}

Orchestrator::Scope::~Scope() {
  const Status status = Close();
  if (!status.ok()) Log(LogLevel::kWarn, "the memory of a scope: " + status.ToString());
}

Result<DeviceAddress> Orchestrator::Scope::Malloc(WorkerId worker, Bytes size, BlockId* block) {
  BlockId id = 0;
  KEEL_ASSIGN(const DeviceAddress address, orchestrator_.Malloc(worker, size, &id));
  blocks_.push_back({worker, address, id});
  if (block != nullptr) *block = id;
  return address;
}

Status Orchestrator::Scope::Close() {
  Status first;
  for (const Owned& owned : std::exchange(blocks_, {})) {
    Status status = orchestrator_.Free(owned.worker, owned.address, owned.block);
    if (first.ok()) first = std::move(status);
  }
  return first;
}

}  // namespace keel::task
