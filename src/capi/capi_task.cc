// Orchestrators, memory on workers and tasks of the C interface; keel/c_task.h has the contracts.
#include <fmt/format.h>

#include <bit>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "capi/handles.h"
#include "capi/last_error.h"
#include "capi/sized_struct.h"
#include "capi/task_objects.h"
#include "keel/c.h"

namespace keel::capi {
namespace {

static_assert(KEEL_ANY_WORKER == task::kAnyWorker);

using task::DataType;
using task::Tag;
using task::Tensor;

static_assert(KEEL_TRANSPORT_THREAD == static_cast<int>(task::Transport::kThread));
static_assert(KEEL_TRANSPORT_PROCESS == static_cast<int>(task::Transport::kProcess));
static_assert(KEEL_TRANSPORT_MPI == static_cast<int>(task::Transport::kMpi));
static_assert(KEEL_ORCHESTRATION_AUTO == static_cast<int>(task::Orchestration::kAuto));
static_assert(KEEL_ORCHESTRATION_DEVICE == static_cast<int>(task::Orchestration::kDevice));
static_assert(KEEL_ORCHESTRATION_HOST == static_cast<int>(task::Orchestration::kHost));
static_assert(KEEL_TYPE_UINT8 == static_cast<int>(DataType::kUInt8));
static_assert(KEEL_TYPE_INT64 == static_cast<int>(DataType::kInt64));
static_assert(KEEL_TYPE_FLOAT16 == static_cast<int>(DataType::kFloat16));
static_assert(KEEL_TYPE_BFLOAT16 == static_cast<int>(DataType::kBFloat16));
static_assert(KEEL_TYPE_FLOAT32 == static_cast<int>(DataType::kFloat32));
static_assert(KEEL_TYPE_FLOAT64 == static_cast<int>(DataType::kFloat64));
static_assert(KEEL_TYPE_BOOL == static_cast<int>(DataType::kBool));
static_assert(KEEL_TYPE_COMPLEX128 == static_cast<int>(DataType::kComplex128));
static_assert(KEEL_TYPE_COMPLEX128 + 1 == task::kDataTypes);
static_assert(KEEL_TENSOR_RESIDENT == Tensor::kResident);
static_assert(KEEL_TAG_IN == static_cast<int>(Tag::kIn));
static_assert(KEEL_TAG_OUT == static_cast<int>(Tag::kOut));
static_assert(KEEL_TAG_IN_OUT == static_cast<int>(Tag::kInOut));
// The same bytes on both sides.
static_assert(sizeof(keel_tensor) == sizeof(Tensor));
static_assert(offsetof(keel_tensor, shape) == offsetof(Tensor, shape));
static_assert(offsetof(keel_tensor, rank) == offsetof(Tensor, rank));
static_assert(offsetof(keel_tensor, type) == offsetof(Tensor, type));
static_assert(offsetof(keel_tensor, flags) == offsetof(Tensor, flags));
static_assert(offsetof(keel_tensor, reserved) == offsetof(Tensor, reserved));

// An error names the field.
Status PutTimeout(std::int64_t given, const char* name, std::chrono::nanoseconds& timeout) {
  if (given < 0) return InvalidArgument(fmt::format("options->{} is negative", name));
  if (given > 0) timeout = std::chrono::nanoseconds(given);
  return OkStatus();
}

Result<task::OrchestratorOptions> OptionsOf(const keel_orchestrator_options& from) {
  task::OrchestratorOptions options;
  if (from.device_count != 0) KEEL_TRY(NotNull(from.devices, "options->devices"));
  for (std::size_t i = 0; i < from.device_count; ++i) {
    const char* const device = from.devices[i];
    options.workers.push_back({.device = device == nullptr ? "" : device, .memory = nullptr});
  }
  if (from.transport < KEEL_TRANSPORT_THREAD || from.transport > KEEL_TRANSPORT_MPI) {
    return InvalidArgument(fmt::format("there is no transport {}", from.transport));
  }
  options.transport = static_cast<task::Transport>(from.transport);
  if (from.orchestration < KEEL_ORCHESTRATION_AUTO ||
      from.orchestration > KEEL_ORCHESTRATION_HOST) {
    return InvalidArgument(fmt::format("there is no orchestration {}", from.orchestration));
  }
  options.orchestration = static_cast<task::Orchestration>(from.orchestration);
  KEEL_TRY(PutTimeout(from.task_timeout_ns, "task_timeout_ns", options.task_timeout));
  KEEL_TRY(PutTimeout(from.control_timeout_ns, "control_timeout_ns", options.control_timeout));
  KEEL_TRY(PutTimeout(from.start_timeout_ns, "start_timeout_ns", options.start_timeout));
  KEEL_TRY(PutTimeout(from.stop_timeout_ns, "stop_timeout_ns", options.stop_timeout));
  if (from.shared_memory != 0) options.shared_memory = Bytes(from.shared_memory);
  if (from.worker_program != nullptr) options.worker_program = from.worker_program;
  return options;
}

// They are checked by Submit.
Result<task::Arguments> ArgumentsOf(const keel_task_arguments* from) {
  task::Arguments arguments;
  if (from == nullptr) return arguments;
  keel_task_arguments given{};
  KEEL_TRY(Read(from, "arguments", given));
  if (given.tensor_count > task::Arguments::kMaxTensors ||
      given.scalar_count > task::Arguments::kMaxScalars) {
    return InvalidArgument(fmt::format("{} tensors and {} scalars; at most {} and {}",
                                       given.tensor_count, given.scalar_count,
                                       task::Arguments::kMaxTensors, task::Arguments::kMaxScalars));
  }
  if (given.tensor_count != 0) {
    KEEL_TRY(NotNull(given.tensors, "arguments->tensors"));
    KEEL_TRY(NotNull(given.tags, "arguments->tags"));
  }
  if (given.scalar_count != 0) KEEL_TRY(NotNull(given.scalars, "arguments->scalars"));
  for (std::size_t i = 0; i < given.tensor_count; ++i) {
    arguments.Add(static_cast<Tag>(given.tags[i]), std::bit_cast<Tensor>(given.tensors[i]));
  }
  for (std::size_t i = 0; i < given.scalar_count; ++i) arguments.AddScalar(given.scalars[i]);
  return arguments;
}

Result<task::SubmitOptions> OptionsOf(const keel_submit_options* from) {
  task::SubmitOptions options;
  if (from == nullptr) return options;
  keel_submit_options given{};
  KEEL_TRY(Read(from, "options", given));
  if (given.worker != nullptr) options.worker = *given.worker;
  if (given.timeout_ns != 0) {
    options.timeout = std::chrono::nanoseconds(given.timeout_ns < 0 ? 0 : given.timeout_ns);
  }
  if (given.block_count != 0) {
    KEEL_TRY(NotNull(given.blocks, "options->blocks"));
    options.blocks = {given.blocks, given.block_count};
  }
  return options;
}

// The handle first: what was submitted cannot be taken back.
template <class Submit>
Status AddTask(Submit submit, keel_task* task) {
  const auto object = std::make_shared<TaskObject>();
  KEEL_ASSIGN(keel_task handle, Add<keel_task>(object));
  Result<task::TaskHandle> submitted = submit();
  if (!submitted.ok()) {
    KEEL_TRY(Remove(handle).status());
    return std::move(submitted).status();
  }
  object->task = *std::move(submitted);
  *task = handle;
  return OkStatus();
}

template <class Body>
keel_status On(const char* function, keel_orchestrator orchestrator, Body body) {
  return Guard(function, [&]() -> Status {
    KEEL_ASSIGN(const auto object, Find(orchestrator));
    return body(*object->orchestrator);
  });
}

template <class Body>
keel_status OnTask(const char* function, keel_task task, Body body) {
  return Guard(function, [&]() -> Status {
    KEEL_ASSIGN(const auto object, Find(task));
    return body(object->task);
  });
}

// `block` may be null.
Status Malloc(task::Orchestrator& orchestrator, std::uint32_t worker, std::uint64_t size,
              std::uint64_t* address, task::BlockId* block) {
  KEEL_TRY(NotNull(address, "address"));
  KEEL_ASSIGN(const DeviceAddress made, orchestrator.Malloc(worker, Bytes(size), block));
  *address = made.value();
  return OkStatus();
}

Status CopyTo(task::Orchestrator& orchestrator, std::uint32_t worker, std::uint64_t destination,
              const void* source, std::uint64_t size, task::BlockId block) {
  if (size != 0) KEEL_TRY(NotNull(source, "source"));
  return orchestrator.CopyTo(worker, DeviceAddress(destination), source, Bytes(size), block);
}

Status CopyFrom(task::Orchestrator& orchestrator, std::uint32_t worker, void* destination,
                std::uint64_t source, std::uint64_t size, task::BlockId block) {
  if (size != 0) KEEL_TRY(NotNull(destination, "destination"));
  return orchestrator.CopyFrom(worker, destination, DeviceAddress(source), Bytes(size), block);
}

}  // namespace
}  // namespace keel::capi

namespace capi = keel::capi;
using keel::Bytes;
using keel::DeviceAddress;
using keel::OkStatus;
using keel::Status;
using keel::task::Orchestrator;
using keel::task::TaskHandle;

extern "C" {

// --- Orchestrators -------------------------------------------------------------------------------

keel_status keel_orchestrator_create(const keel_orchestrator_options* options,
                                     keel_orchestrator* orchestrator) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(orchestrator, "orchestrator"));
    keel_orchestrator_options given{};
    KEEL_TRY(capi::Read(options, "options", given));
    KEEL_ASSIGN(auto wanted, capi::OptionsOf(given));
    auto made = std::make_shared<capi::OrchestratorObject>();
    KEEL_ASSIGN(made->orchestrator, Orchestrator::Create(std::move(wanted)));
    KEEL_ASSIGN(*orchestrator, capi::Add<keel_orchestrator>(std::move(made)));
    return OkStatus();
  });
}

keel_status keel_orchestrator_close(keel_orchestrator orchestrator) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_ASSIGN(const auto object, capi::Remove(orchestrator));
    // Now, also if another thread is in a call of it.
    object->orchestrator->Close();
    return OkStatus();
  });
}

keel_status keel_orchestrator_get_worker_count(keel_orchestrator orchestrator, uint32_t* count) {
  return capi::On(__func__, orchestrator, [&](Orchestrator& its) -> Status {
    KEEL_TRY(capi::NotNull(count, "count"));
    *count = its.worker_count();
    return OkStatus();
  });
}

keel_status keel_orchestrator_wait_all(keel_orchestrator orchestrator, int64_t timeout_ns) {
  return capi::On(__func__, orchestrator,
                  [&](Orchestrator& its) { return its.WaitAll(capi::DeadlineOf(timeout_ns)); });
}

// --- Memory on a worker --------------------------------------------------------------------------

keel_status keel_worker_malloc(keel_orchestrator orchestrator, uint32_t worker, uint64_t size,
                               uint64_t* address) {
  return capi::On(__func__, orchestrator, [&](Orchestrator& its) {
    return capi::Malloc(its, worker, size, address, nullptr);
  });
}

keel_status keel_worker_malloc_block(keel_orchestrator orchestrator, uint32_t worker, uint64_t size,
                                     uint64_t* address, uint64_t* block) {
  return capi::On(__func__, orchestrator, [&](Orchestrator& its) -> Status {
    KEEL_TRY(capi::NotNull(block, "block"));
    return capi::Malloc(its, worker, size, address, block);
  });
}

keel_status keel_worker_free(keel_orchestrator orchestrator, uint32_t worker, uint64_t address) {
  return capi::On(__func__, orchestrator,
                  [&](Orchestrator& its) { return its.Free(worker, DeviceAddress(address)); });
}

keel_status keel_worker_free_block(keel_orchestrator orchestrator, uint32_t worker,
                                   uint64_t address, uint64_t block) {
  return capi::On(__func__, orchestrator, [&](Orchestrator& its) {
    return its.Free(worker, DeviceAddress(address), block);
  });
}

keel_status keel_worker_copy_to(keel_orchestrator orchestrator, uint32_t worker,
                                uint64_t destination, const void* source, uint64_t size) {
  return capi::On(__func__, orchestrator, [&](Orchestrator& its) {
    return capi::CopyTo(its, worker, destination, source, size, 0);
  });
}

keel_status keel_worker_copy_to_block(keel_orchestrator orchestrator, uint32_t worker,
                                      uint64_t destination, const void* source, uint64_t size,
                                      uint64_t block) {
  return capi::On(__func__, orchestrator, [&](Orchestrator& its) {
    return capi::CopyTo(its, worker, destination, source, size, block);
  });
}

keel_status keel_worker_copy_from(keel_orchestrator orchestrator, uint32_t worker,
                                  void* destination, uint64_t source, uint64_t size) {
  return capi::On(__func__, orchestrator, [&](Orchestrator& its) {
    return capi::CopyFrom(its, worker, destination, source, size, 0);
  });
}

keel_status keel_worker_copy_from_block(keel_orchestrator orchestrator, uint32_t worker,
                                        void* destination, uint64_t source, uint64_t size,
                                        uint64_t block) {
  return capi::On(__func__, orchestrator, [&](Orchestrator& its) {
    return capi::CopyFrom(its, worker, destination, source, size, block);
  });
}

keel_status keel_worker_register_memory(keel_orchestrator orchestrator, uint32_t worker,
                                        uint64_t address, uint64_t size) {
  return capi::On(__func__, orchestrator, [&](Orchestrator& its) {
    return its.RegisterMemory(worker, DeviceAddress(address), Bytes(size));
  });
}

keel_status keel_worker_register_block(keel_orchestrator orchestrator, uint32_t worker,
                                       uint64_t address, uint64_t size, uint64_t* block) {
  return capi::On(__func__, orchestrator, [&](Orchestrator& its) -> Status {
    KEEL_TRY(capi::NotNull(block, "block"));
    return its.RegisterMemory(worker, DeviceAddress(address), Bytes(size), block);
  });
}

keel_status keel_worker_unregister_memory(keel_orchestrator orchestrator, uint32_t worker,
                                          uint64_t address) {
  return capi::On(__func__, orchestrator, [&](Orchestrator& its) {
    return its.UnregisterMemory(worker, DeviceAddress(address));
  });
}

keel_status keel_worker_unregister_block(keel_orchestrator orchestrator, uint32_t worker,
                                         uint64_t address, uint64_t block) {
  return capi::On(__func__, orchestrator, [&](Orchestrator& its) {
    return its.UnregisterMemory(worker, DeviceAddress(address), block);
  });
}

keel_status keel_worker_get_report(keel_orchestrator orchestrator, uint32_t worker,
                                   keel_worker_report* report) {
  return capi::On(__func__, orchestrator, [&](Orchestrator& its) -> Status {
    KEEL_TRY(capi::CheckSize(report, "report"));
    KEEL_ASSIGN(const keel::task::WorkerReport from, its.Report(worker));
    keel_worker_report to{};
    capi::Put(from.device, to.device);
    to.up = from.up ? 1 : 0;
    to.lost = static_cast<keel_status>(from.lost.code());
    capi::Put(from.lost.message(), to.lost_message);
    to.restarts = from.restarts;
    to.tasks = from.tasks;
    to.bytes_to_device = from.bytes_to_device;
    to.bytes_from_device = from.bytes_from_device;
    to.uploads = from.uploads;
    to.callables = from.callables;
    capi::Give(to, report);
    return OkStatus();
  });
}

// --- Tasks ---------------------------------------------------------------------------------------

keel_status keel_task_submit(keel_orchestrator orchestrator, uint64_t callable,
                             const keel_task_arguments* arguments,
                             const keel_submit_options* options, keel_task* task) {
  return capi::On(__func__, orchestrator, [&](Orchestrator& its) -> Status {
    KEEL_TRY(capi::NotNull(task, "task"));
    KEEL_ASSIGN(const auto given, capi::ArgumentsOf(arguments));
    KEEL_ASSIGN(const auto how, capi::OptionsOf(options));
    return capi::AddTask([&] { return its.Submit({callable}, given, how); }, task);
  });
}

keel_status keel_task_submit_group(keel_orchestrator orchestrator, uint64_t callable,
                                   const keel_task_arguments* const* members, size_t member_count,
                                   const uint32_t* workers, const keel_submit_options* options,
                                   keel_task* task) {
  return capi::On(__func__, orchestrator, [&](Orchestrator& its) -> Status {
    KEEL_TRY(capi::NotNull(task, "task"));
    if (member_count != 0) KEEL_TRY(capi::NotNull(members, "members"));
    // As Submit says it, before anything is read.
    if (member_count > its.worker_count()) {
      return keel::InvalidArgument(
          fmt::format("a group of {} members needs as many workers; there are {}", member_count,
                      its.worker_count()));
    }
    std::vector<keel::task::Arguments> given;
    for (std::size_t i = 0; i < member_count; ++i) {
      auto member = capi::ArgumentsOf(members[i]);
      if (!member.ok()) return std::move(member).status().Annotate(fmt::format("member {}", i));
      given.push_back(*std::move(member));
    }
    KEEL_ASSIGN(const auto how, capi::OptionsOf(options));
    const std::span<const uint32_t> named(workers, workers == nullptr ? 0 : member_count);
    return capi::AddTask([&] { return its.SubmitGroup({callable}, given, named, how); }, task);
  });
}

keel_status keel_task_wait(keel_task task, int64_t timeout_ns) {
  return capi::OnTask(__func__, task, [&](const TaskHandle& its) {
    return its.Wait(capi::DeadlineOf(timeout_ns));
  });
}

keel_status keel_task_get_done(keel_task task, int32_t* done) {
  return capi::OnTask(__func__, task, [&](const TaskHandle& its) -> Status {
    KEEL_TRY(capi::NotNull(done, "done"));
    *done = its.done() ? 1 : 0;
    return OkStatus();
  });
}

keel_status keel_task_get_error(keel_task task) {
  return capi::OnTask(__func__, task, [&](const TaskHandle& its) { return its.error(); });
}

keel_status keel_task_get_worker(keel_task task, uint32_t* worker) {
  return capi::OnTask(__func__, task, [&](const TaskHandle& its) -> Status {
    KEEL_TRY(capi::NotNull(worker, "worker"));
    const auto where = its.worker();
    if (!where.has_value()) {
      return keel::FailedPrecondition(fmt::format("task {} has not started", its.id()));
    }
    *worker = *where;
    return OkStatus();
  });
}

keel_status keel_task_get_id(keel_task task, uint64_t* id) {
  return capi::OnTask(__func__, task, [&](const TaskHandle& its) -> Status {
    KEEL_TRY(capi::NotNull(id, "id"));
    *id = its.id();
    return OkStatus();
  });
}

keel_status keel_task_close(keel_task task) {
  return capi::Guard(__func__, [&] { return capi::Remove(task).status(); });
}

}  // extern "C"
