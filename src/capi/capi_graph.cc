// Executables, steps and outputs of the C interface; keel/c_graph.h has the contracts.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "capi/graph_objects.h"
#include "capi/handles.h"
#include "capi/last_error.h"
#include "capi/sized_struct.h"
#include "keel/c.h"

namespace keel::capi {
namespace {

using graph::ActionKind;
using graph::Reason;

static_assert(KEEL_EXECUTABLE_GRAPH == static_cast<int>(graph::Mode::kGraph));
static_assert(KEEL_EXECUTABLE_EAGER == static_cast<int>(graph::Mode::kEager));
static_assert(KEEL_ACTION_WAITED == static_cast<int>(ActionKind::kWaited));
static_assert(KEEL_ACTION_REBOUND == static_cast<int>(ActionKind::kRebound));
static_assert(KEEL_ACTION_PATCHED == static_cast<int>(ActionKind::kPatched));
static_assert(KEEL_ACTION_REMAPPED == static_cast<int>(ActionKind::kRemapped));
static_assert(KEEL_ACTION_RECORDED == static_cast<int>(ActionKind::kRecorded));
static_assert(KEEL_ACTION_TRACED == static_cast<int>(ActionKind::kTraced));
static_assert(KEEL_ACTION_TRACE_REUSED == static_cast<int>(ActionKind::kTraceReused));
static_assert(KEEL_ACTION_RAN_EAGERLY == static_cast<int>(ActionKind::kRanEagerly));
static_assert(KEEL_ACTION_CHOSE == static_cast<int>(ActionKind::kChose));
static_assert(KEEL_REASON_FIRST_STEP == static_cast<int>(Reason::kFirstStep));
static_assert(KEEL_REASON_WARM_UP == static_cast<int>(Reason::kWarmUp));
static_assert(KEEL_REASON_EAGER_MODE == static_cast<int>(Reason::kEagerMode));
static_assert(KEEL_REASON_MOVED == static_cast<int>(Reason::kMoved));
static_assert(KEEL_REASON_REALLOCATED == static_cast<int>(Reason::kReallocated));
static_assert(KEEL_REASON_TOPOLOGY == static_cast<int>(Reason::kTopology));
static_assert(KEEL_REASON_SLOT_BUSY == static_cast<int>(Reason::kSlotBusy));
static_assert(KEEL_REASON_TABLE_IN_USE == static_cast<int>(Reason::kTableInUse));
static_assert(KEEL_REASON_CHURNS == static_cast<int>(Reason::kChurns));
static_assert(KEEL_REASON_SETTLED == static_cast<int>(Reason::kSettled));
static_assert(KEEL_REASON_EVICTED == static_cast<int>(Reason::kEvicted));
static_assert(KEEL_REASON_LAST_STEP_FAILED == static_cast<int>(Reason::kLastStepFailed));
static_assert(KEEL_REASON_AHEAD == static_cast<int>(Reason::kAhead));
static_assert(KEEL_REASON_MAPPABLE == static_cast<int>(Reason::kMappable));
static_assert(KEEL_REASON_MAPPING_DEAR == static_cast<int>(Reason::kMappingDear));
static_assert(KEEL_REASON_NO_MEMORY == static_cast<int>(Reason::kNoMemory));
static_assert(KEEL_REASON_COMMANDS_BUSY == static_cast<int>(Reason::kCommandsBusy));
static_assert(KEEL_REASON_SCRATCH_BUSY == static_cast<int>(Reason::kScratchBusy));
static_assert(KEEL_REASON_MAPPING_FAILED == static_cast<int>(Reason::kMappingFailed));
static_assert(KEEL_REASON_SLOT_LEASED == static_cast<int>(Reason::kSlotLeased));
static_assert(KEEL_REASON_SLOT_HELD == static_cast<int>(Reason::kSlotHeld));
static_assert(KEEL_NO_BINDING == graph::Action::kNoBinding);

Result<graph::ExecutableOptions> OptionsOf(const keel_executable_options& from) {
  graph::ExecutableOptions options;
  if (from.slots != 0) options.slots = from.slots;
  if (from.mode != KEEL_EXECUTABLE_GRAPH && from.mode != KEEL_EXECUTABLE_EAGER) {
    return InvalidArgument(fmt::format("there is no mode {} of executables", from.mode));
  }
  options.mode = static_cast<graph::Mode>(from.mode);
  if (from.patience_ns != 0) {
    options.patience = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::nanoseconds(std::max<std::int64_t>(from.patience_ns, 0)));
  }
  if (from.kept_traces != 0) options.kept_traces = from.kept_traces;
  if (from.warm_up < -1) {
    return InvalidArgument(fmt::format("warm_up is {}: -1, or a number of steps", from.warm_up));
  }
  if (from.warm_up != 0) options.warm_up = from.warm_up == -1 ? 0 : from.warm_up;
  if (from.scratch != nullptr) {
    KEEL_ASSIGN(const auto arena, Find(from.scratch));
    options.scratch = arena->arena;
  }
  if (from.budget != nullptr) {
    KEEL_ASSIGN(const auto budget, Find(from.budget));
    options.budget = budget->budget;
  }
  options.alias_outputs = from.alias_outputs != 0;
  if (from.reserved_0 != 0) return InvalidArgument("reserved_0 of the options must be 0");
  return options;
}

// For an executable of this device.
Result<graph::Buffer> BufferOf(const keel_buffer* from, const DeviceMemory& device) {
  keel_buffer given{};
  KEEL_TRY(Read(from, "buffer", given));
  graph::Buffer buffer{.address = DeviceAddress(given.address),
                       .size = Bytes(given.size),
                       .generation = given.generation,
                       .memory = nullptr};
  if (given.memory == nullptr) return buffer;
  KEEL_ASSIGN(const auto object, Find(given.memory));
  if (object->memory->device() != device.device()) {
    return InvalidArgument(
        fmt::format("the physical memory is of device {}, the executable of device {}",
                    object->memory->name().ToString(), device.name().ToString()));
  }
  const MutexLock lock(object->mutex);
  buffer.memory = object->block.memory();
  if (!buffer.address) {
    buffer.address = object->block.address();
    buffer.size = object->block.size();
  }
  return buffer;
}

template <class Body>
keel_status OnExecutable(const char* function, keel_executable executable, Body body) {
  return Guard(function, [&]() -> Status {
    KEEL_ASSIGN(const auto object, Find(executable));
    return body(*object);
  });
}

template <class Body>
keel_status OnLease(const char* function, keel_lease lease, Body body) {
  return Guard(function, [&]() -> Status {
    KEEL_ASSIGN(const auto object, Find(lease));
    return object->calls.Do("lease", [&]() -> Status { return body(*object); });
  });
}

template <class Body>
keel_status OnOutput(const char* function, keel_output output, Body body) {
  return Guard(function, [&]() -> Status {
    KEEL_ASSIGN(const auto object, Find(output));
    return object->calls.Do("output", [&]() -> Status { return body(*object); });
  });
}

keel_step_report ReportOf(const graph::ReplayReport& from) {
  keel_step_report to{};
  to.step = from.step;
  to.slot = from.slot;
  to.graphs = from.graphs;
  to.copied_in_bytes = from.copied_in.count();
  to.copied_out_bytes = from.copied_out.count();
  to.rebound = from.rebound;
  to.patched = from.patched;
  to.remapped = from.remapped;
  to.recorded = from.recorded;
  to.traced = from.traced;
  to.traces_reused = from.traces_reused;
  to.chosen = from.chosen;
  to.eager = from.eager ? 1 : 0;
  to.waited_ns = from.waited_ns;
  to.actions = static_cast<std::uint32_t>(from.actions().size());
  to.actions_left_out = from.actions_left_out;
  return to;
}

keel_action ActionOf(const graph::Action& from) {
  keel_action to{};
  to.struct_size = sizeof to;
  to.kind = static_cast<keel_action_kind>(from.kind);
  to.reason = static_cast<keel_action_reason>(from.reason);
  to.binding = from.binding;
  to.count = from.count;
  to.host_ns = from.host_ns;
  // Literals, which end in a zero.
  to.kind_name = graph::ActionName(from.kind).data();
  to.reason_text = graph::ReasonText(from.reason).data();
  return to;
}

keel_executable_stats StatsOf(const graph::ExecutableStats& from) {
  keel_executable_stats to{};
  to.steps = from.steps;
  to.graphs_launched = from.graphs_launched;
  to.eager_steps = from.eager_steps;
  to.rows_rebound = from.rows_rebound;
  to.commands_patched = from.commands_patched;
  to.bindings_remapped = from.bindings_remapped;
  to.graphs_recorded = from.graphs_recorded;
  to.commands_traced = from.commands_traced;
  to.traces_reused = from.traces_reused;
  to.waits = from.waits;
  to.waited_ns = from.waited_ns;
  to.policy_changes = from.policy_changes;
  to.evictions = from.evictions;
  to.failed_steps = from.failed_steps;
  to.copied_in_bytes = from.copied_in.count();
  to.copied_out_bytes = from.copied_out.count();
  to.slot_bytes = from.slot_bytes.count();
  static_assert(KEEL_ACTION_KINDS == graph::kActionKinds);
  std::ranges::copy(from.host_ns, to.host_ns);
  return to;
}

}  // namespace
}  // namespace keel::capi

namespace capi = keel::capi;
using keel::Bytes;
using keel::InvalidArgument;
using keel::OkStatus;
using keel::Status;
using keel::graph::BindingId;

extern "C" {

// --- Memory that executables share ---------------------------------------------------------------

keel_status keel_scratch_arena_create(keel_device device, uint64_t size,
                                      keel_scratch_arena* arena) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(arena, "arena"));
    KEEL_ASSIGN(auto memory, capi::Find(device));
    KEEL_ASSIGN(auto made, keel::graph::ScratchArena::Create(std::move(memory), Bytes(size)));
    KEEL_ASSIGN(*arena, capi::Add<keel_scratch_arena>(
                            std::make_shared<capi::ArenaObject>(std::move(made))));
    return OkStatus();
  });
}

keel_status keel_scratch_arena_close(keel_scratch_arena arena) {
  return capi::Guard(__func__, [&] { return capi::Remove(arena).status(); });
}

keel_status keel_memory_budget_create(uint64_t limit, keel_memory_budget* budget) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(budget, "budget"));
    KEEL_ASSIGN(*budget, capi::Add<keel_memory_budget>(std::make_shared<capi::BudgetObject>(
                             std::make_shared<keel::graph::MemoryBudget>(Bytes(limit)))));
    return OkStatus();
  });
}

keel_status keel_memory_budget_get_used(keel_memory_budget budget, uint64_t* bytes) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(bytes, "bytes"));
    KEEL_ASSIGN(const auto object, capi::Find(budget));
    *bytes = object->budget->used().count();
    return OkStatus();
  });
}

keel_status keel_memory_budget_close(keel_memory_budget budget) {
  return capi::Guard(__func__, [&] { return capi::Remove(budget).status(); });
}

// --- Executables ---------------------------------------------------------------------------------

keel_status keel_executable_create(keel_program program, const keel_executable_options* options,
                                   keel_executable* executable) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(executable, "executable"));
    KEEL_ASSIGN(const auto object, capi::Find(program));
    keel_executable_options given{};
    if (options != nullptr) KEEL_TRY(capi::Read(options, "options", given));
    KEEL_ASSIGN(auto wanted, capi::OptionsOf(given));
    auto made = std::make_shared<capi::ExecutableObject>();
    made->memory = object->memory;
    made->aliased = wanted.alias_outputs;
    KEEL_ASSIGN(made->executable, keel::graph::Executable::Create(object->program, object->memory,
                                                                  std::move(wanted)));
    KEEL_ASSIGN(*executable, capi::Add<keel_executable>(std::move(made)));
    return OkStatus();
  });
}

keel_status keel_executable_close(keel_executable executable) {
  return capi::Guard(__func__, [&] { return capi::Remove(executable).status(); });
}

keel_status keel_executable_bind(keel_executable executable, uint32_t binding,
                                 const keel_buffer* buffer) {
  return capi::OnExecutable(__func__, executable, [&](capi::ExecutableObject& object) -> Status {
    KEEL_ASSIGN(auto given, capi::BufferOf(buffer, *object.memory));
    return object.executable->Bind(BindingId{binding}, std::move(given));
  });
}

keel_status keel_executable_acquire(keel_executable executable, keel_stream stream,
                                    int64_t timeout_ns, keel_lease* lease) {
  return capi::OnExecutable(__func__, executable, [&](capi::ExecutableObject& object) -> Status {
    KEEL_TRY(capi::NotNull(lease, "lease"));
    auto made = std::make_shared<capi::LeaseObject>();
    made->memory = object.memory;
    made->aliased = object.aliased;
    KEEL_ASSIGN(made->stream, capi::Find(object.memory, stream));
    KEEL_ASSIGN(made->lease, object.executable->Acquire(made->stream->stream.get(),
                                                        capi::DeadlineOf(timeout_ns)));
    KEEL_ASSIGN(*lease, capi::Add<keel_lease>(std::move(made)));
    return OkStatus();
  });
}

keel_status keel_executable_get_policy(keel_executable executable, uint32_t binding,
                                       keel_policy* policy) {
  return capi::OnExecutable(__func__, executable, [&](capi::ExecutableObject& object) -> Status {
    KEEL_TRY(capi::NotNull(policy, "policy"));
    const keel::graph::Program& program = object.executable->program();
    if (binding >= program.bindings().size()) {
      return InvalidArgument(fmt::format("program '{}' has no binding {}: it has {}",
                                         program.name(), binding, program.bindings().size()));
    }
    *policy = static_cast<keel_policy>(object.executable->policy(BindingId{binding}));
    return OkStatus();
  });
}

keel_status keel_executable_synchronize(keel_executable executable, int64_t timeout_ns) {
  return capi::OnExecutable(__func__, executable, [&](capi::ExecutableObject& object) {
    return object.executable->Synchronize(capi::DeadlineOf(timeout_ns));
  });
}

keel_status keel_executable_give_back(keel_executable executable, int64_t timeout_ns) {
  return capi::OnExecutable(__func__, executable, [&](capi::ExecutableObject& object) {
    return object.executable->Close(capi::DeadlineOf(timeout_ns));
  });
}

keel_status keel_executable_get_stats(keel_executable executable, keel_executable_stats* stats) {
  return capi::OnExecutable(__func__, executable, [&](capi::ExecutableObject& object) -> Status {
    KEEL_TRY(capi::CheckSize(stats, "stats"));
    capi::Give(capi::StatsOf(object.executable->stats()), stats);
    return OkStatus();
  });
}

// --- Steps ---------------------------------------------------------------------------------------

keel_status keel_lease_bind(keel_lease lease, uint32_t binding, const keel_buffer* buffer) {
  return capi::OnLease(__func__, lease, [&](capi::LeaseObject& object) -> Status {
    KEEL_ASSIGN(const auto given, capi::BufferOf(buffer, *object.memory));
    return object.lease.Bind(BindingId{binding}, given);
  });
}

keel_status keel_lease_get_address(keel_lease lease, uint32_t binding, uint64_t* address) {
  return capi::OnLease(__func__, lease, [&](capi::LeaseObject& object) -> Status {
    KEEL_TRY(capi::NotNull(address, "address"));
    KEEL_ASSIGN(const auto found, object.lease.address(BindingId{binding}));
    *address = found.value();
    return OkStatus();
  });
}

keel_status keel_lease_launch(keel_lease lease, int64_t timeout_ns) {
  return capi::OnLease(__func__, lease, [&](capi::LeaseObject& object) {
    return object.lease.Launch(capi::DeadlineOf(timeout_ns));
  });
}

keel_status keel_lease_hold(keel_lease lease, uint32_t binding, keel_output* output) {
  return capi::OnLease(__func__, lease, [&](capi::LeaseObject& object) -> Status {
    KEEL_TRY(capi::NotNull(output, "output"));
    auto made = std::make_shared<capi::OutputObject>();
    made->memory = object.memory;
    made->streams.push_back(object.stream);
    KEEL_ASSIGN(made->output, object.lease.Hold(BindingId{binding}));
    if (object.aliased) {
      made->range =
          capi::KnownRange(object.memory->device(), {made->output.address(), made->output.size()});
    }
    KEEL_ASSIGN(*output, capi::Add<keel_output>(std::move(made)));
    return OkStatus();
  });
}

keel_status keel_lease_get_done(keel_lease lease, int32_t* done) {
  return capi::OnLease(__func__, lease, [&](capi::LeaseObject& object) -> Status {
    KEEL_TRY(capi::NotNull(done, "done"));
    *done = object.lease.done() ? 1 : 0;
    // Done, or how it ended otherwise.
    return *done != 0 ? object.lease.Wait(keel::Deadline::Now()) : OkStatus();
  });
}

keel_status keel_lease_wait(keel_lease lease, int64_t timeout_ns) {
  return capi::OnLease(__func__, lease, [&](capi::LeaseObject& object) {
    return object.lease.Wait(capi::DeadlineOf(timeout_ns));
  });
}

keel_status keel_lease_close(keel_lease lease) {
  return capi::Guard(__func__, [&] { return capi::Remove(lease).status(); });
}

keel_status keel_lease_get_report(keel_lease lease, keel_step_report* report) {
  return capi::OnLease(__func__, lease, [&](capi::LeaseObject& object) -> Status {
    KEEL_TRY(capi::CheckSize(report, "report"));
    capi::Give(capi::ReportOf(object.lease.report()), report);
    return OkStatus();
  });
}

keel_status keel_lease_for_each_action(keel_lease lease, keel_action_visitor visit, void* data) {
  return capi::OnLease(__func__, lease, [&](capi::LeaseObject& object) -> Status {
    KEEL_TRY(capi::NotNull(visit, "visit"));
    for (const keel::graph::Action& each : object.lease.report().actions()) {
      const keel_action action = capi::ActionOf(each);
      visit(&action, data);
    }
    return OkStatus();
  });
}

// --- Held outputs --------------------------------------------------------------------------------

keel_status keel_output_get(keel_output output, uint64_t* address, uint64_t* size) {
  return capi::OnOutput(__func__, output, [&](capi::OutputObject& object) -> Status {
    KEEL_TRY(capi::NotNull(address, "address"));
    KEEL_TRY(capi::NotNull(size, "size"));
    *address = object.output.address().value();
    *size = object.output.size().count();
    return OkStatus();
  });
}

keel_status keel_output_record_use(keel_output output, keel_stream stream) {
  return capi::OnOutput(__func__, output, [&](capi::OutputObject& object) -> Status {
    KEEL_ASSIGN(auto reader, capi::Find(object.memory, stream));
    const auto handle = reader->stream.get();
    object.streams.push_back(std::move(reader));
    return object.output.RecordUse(handle);
  });
}

keel_status keel_output_close(keel_output output) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_ASSIGN(const auto object, capi::Remove(output));
    return object->calls.Do("output", [&] { return object->output.Close(); });
  });
}

}  // extern "C"
