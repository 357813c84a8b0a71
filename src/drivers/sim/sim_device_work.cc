// SimDevice: streams, events, commands and kernels.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "drivers/sim/sim_device.h"
#include "hal/check_command.h"

namespace keel::sim {

using hal::Access;
using hal::Primitive;

// --- Streams -----------------------------------------------------------------------------------

Result<std::shared_ptr<SimStream>> SimDevice::FindStream(hal::StreamHandle stream) const {
  std::shared_ptr<SimStream> found = machine_->streams.Find(stream.value);
  if (found == nullptr) {
    return InvalidArgument(
        fmt::format("{:#x} is not the handle of a stream, or was destroyed", stream.value));
  }
  if (&found->device() != this) {
    return InvalidArgument(fmt::format("stream {:#x} belongs to device {}, not to device {}",
                                       stream.value, found->device().ordinal(), ordinal_));
  }
  return found;
}

Result<std::shared_ptr<SimStream>> SimDevice::StartStream(SimStream::Role role) {
  std::vector<std::shared_ptr<SimStream>> ended;  // joined outside of the lock
  MutexLock lock(mutex_);
  const auto running = std::partition(streams_.begin(), streams_.end(),
                                      [](const auto& stream) { return !stream->ended(); });
  ended.assign(std::make_move_iterator(running), std::make_move_iterator(streams_.end()));
  streams_.erase(running, streams_.end());
  const std::uint64_t seed = machine_->config().seed * 1000003 +
                             static_cast<std::uint64_t>(ordinal_) * 4099 + streams_started_;
  KEEL_ASSIGN(auto stream, SimStream::Create(*this, role, seed));
  ++streams_started_;
  streams_.push_back(stream);
  return stream;
}

std::vector<std::shared_ptr<SimStream>> SimDevice::Streams() const {
  MutexLock lock(mutex_);
  return streams_;
}

Result<hal::StreamHandle> SimDevice::CreateStream(const hal::StreamOptions&) {
  KEEL_TRY(Enter(Primitive::kCreateStream));
  KEEL_ASSIGN(auto stream, StartStream(SimStream::Role::kOwned));
  return hal::StreamHandle{machine_->streams.Insert(std::move(stream))};
}

Status SimDevice::DestroyStream(hal::StreamHandle stream) {
  KEEL_TRY(Enter(Primitive::kDestroyStream));
  KEEL_ASSIGN(const auto found, FindStream(stream));
  if (found->role() != SimStream::Role::kOwned) {
    return FailedPrecondition("a default stream cannot be destroyed");
  }
  if (machine_->captures.State(*found) != hal::CaptureState::kNone) {
    return FailedPrecondition("the stream takes part in a capture; end that first");
  }
  if (machine_->streams.Remove(stream.value) == nullptr) return FindStream(stream).status();
  found->Finish();
  return OkStatus();
}

Result<hal::StreamHandle> SimDevice::GetDefaultStream(hal::DefaultStream which) {
  KEEL_TRY(Enter(Primitive::kGetDefaultStream));
  const bool legacy = which == hal::DefaultStream::kLegacy;
  {
    MutexLock lock(mutex_);
    const hal::StreamHandle have = legacy ? legacy_ : per_thread_[std::this_thread::get_id()];
    if (have) return have;
  }
  KEEL_ASSIGN(auto stream,
              StartStream(legacy ? SimStream::Role::kLegacy : SimStream::Role::kPerThread));
  MutexLock lock(mutex_);
  hal::StreamHandle& handle = legacy ? legacy_ : per_thread_[std::this_thread::get_id()];
  // Another thread may have been faster with the one that all share; ours then ends unused.
  if (handle) {
    stream->Finish();
    return handle;
  }
  handle = {machine_->streams.Insert(std::move(stream))};
  return handle;
}

Result<hal::StreamHandle> SimDevice::BorrowStream(std::uint64_t native) {
  KEEL_TRY(Enter(Primitive::kBorrowStream));
  const hal::StreamHandle stream{native};
  KEEL_TRY(FindStream(stream).status());
  return stream;
}

Result<hal::Completion> SimDevice::QueryStream(hal::StreamHandle stream) {
  KEEL_TRY(Enter(Primitive::kQueryStream, Safety::kUnsafeInCapture));
  KEEL_ASSIGN(const auto found, FindStream(stream));
  KEEL_TRY(machine_->captures.CheckStream(*found, "QueryStream"));
  const bool done = found->Idle();
  // A fault that is part of the work must not be seen as "done".
  if (lost()) return Health();
  return done ? hal::Completion::kDone : hal::Completion::kPending;
}

Status SimDevice::SynchronizeStream(hal::StreamHandle stream, Deadline deadline) {
  KEEL_TRY(Enter(Primitive::kSynchronizeStream, Safety::kUnsafeInCapture));
  KEEL_ASSIGN(const auto found, FindStream(stream));
  KEEL_TRY(machine_->captures.CheckStream(*found, "SynchronizeStream"));
  const bool in_time = found->WaitFor(found->position(), deadline);
  if (lost()) return Health();
  if (!in_time) return DeadlineExceeded("the stream's work was not done in time; it goes on");
  return OkStatus();
}

Status SimDevice::Synchronize(Deadline deadline) {
  KEEL_TRY(Enter(Primitive::kSynchronize, Safety::kUnsafeInCapture));
  for (const std::shared_ptr<SimStream>& stream : Streams()) {
    const bool in_time = stream->WaitFor(stream->position(), deadline);
    if (lost()) return Health();
    if (!in_time) return DeadlineExceeded("the device's work was not done in time; it goes on");
  }
  return OkStatus();
}

// --- Events ------------------------------------------------------------------------------------

Result<std::shared_ptr<SimEvent>> SimDevice::FindEvent(hal::EventHandle event) const {
  std::shared_ptr<SimEvent> found = machine_->events.Find(event.value);
  if (found == nullptr) {
    return InvalidArgument(
        fmt::format("{:#x} is not the handle of an event, or was destroyed", event.value));
  }
  return found;
}

Result<hal::EventHandle> SimDevice::CreateEvent(const hal::EventOptions& options) {
  KEEL_TRY(Enter(Primitive::kCreateEvent));
  return hal::EventHandle{
      machine_->events.Insert(std::make_shared<SimEvent>(*this, options.timing))};
}

Status SimDevice::DestroyEvent(hal::EventHandle event) {
  KEEL_TRY(Enter(Primitive::kDestroyEvent));
  KEEL_ASSIGN(const auto found, FindEvent(event));
  if (&found->device != this) {
    return InvalidArgument(fmt::format("event {:#x} belongs to device {}, not to device {}",
                                       event.value, found->device.ordinal(), ordinal_));
  }
  if (machine_->events.Remove(event.value) == nullptr) return FindEvent(event).status();
  return OkStatus();
}

Status SimDevice::RecordEvent(hal::EventHandle event, hal::StreamHandle stream) {
  KEEL_TRY(Enter(Primitive::kRecordEvent));
  KEEL_ASSIGN(const auto on, FindStream(stream));
  KEEL_ASSIGN(const auto found, FindEvent(event));
  if (&found->device != this) {
    return InvalidArgument(
        fmt::format("an event of device {} cannot be recorded on a stream of device {}",
                    found->device.ordinal(), ordinal_));
  }
  if (on->capturing.load() || found->captured.load()) {
    KEEL_ASSIGN(const bool captured, machine_->captures.Record(*on, *found));
    if (captured) return OkStatus();
  }
  auto ticket = std::make_shared<Ticket>();
  MutexLock lock(found->mutex);
  // Under the event's lock: two threads that record at once leave the ticket that was queued last.
  on->Push(SimStream::Reach{ticket});
  found->ticket = std::move(ticket);
  return OkStatus();
}

Status SimDevice::WaitEvent(hal::StreamHandle stream, hal::EventHandle event) {
  KEEL_TRY(Enter(Primitive::kWaitEvent));
  KEEL_ASSIGN(const auto on, FindStream(stream));
  KEEL_ASSIGN(const auto found, FindEvent(event));
  if (on->capturing.load() || found->captured.load()) {
    KEEL_ASSIGN(const bool captured, machine_->captures.Wait(on, *found));
    if (captured) return OkStatus();
  }
  std::shared_ptr<Ticket> ticket;
  {
    MutexLock lock(found->mutex);
    ticket = found->ticket;
  }
  if (ticket != nullptr && ticket->state() == Ticket::State::kPending) {
    on->Push(SimStream::Await{std::move(ticket)});
  }
  return OkStatus();
}

Result<hal::Completion> SimDevice::QueryEvent(hal::EventHandle event) {
  KEEL_TRY(Enter(Primitive::kQueryEvent, Safety::kUnsafeInCapture));
  KEEL_ASSIGN(const auto found, FindEvent(event));
  KEEL_TRY(machine_->captures.CheckEvent(*found, "QueryEvent"));
  // Of a peer that is lost: its work will never be done.
  if (found->device.lost()) return found->device.Health();
  std::shared_ptr<Ticket> ticket;
  {
    MutexLock lock(found->mutex);
    ticket = found->ticket;
  }
  if (ticket == nullptr) return hal::Completion::kDone;
  switch (ticket->state()) {
    case Ticket::State::kPending:
      return hal::Completion::kPending;
    case Ticket::State::kReached:
      return hal::Completion::kDone;
    case Ticket::State::kAbandoned:
      break;
  }
  return found->device.Health();
}

Status SimDevice::SynchronizeEvent(hal::EventHandle event, Deadline deadline) {
  KEEL_TRY(Enter(Primitive::kSynchronizeEvent, Safety::kUnsafeInCapture));
  KEEL_ASSIGN(const auto found, FindEvent(event));
  KEEL_TRY(machine_->captures.CheckEvent(*found, "SynchronizeEvent"));
  std::shared_ptr<Ticket> ticket;
  {
    MutexLock lock(found->mutex);
    ticket = found->ticket;
  }
  if (ticket == nullptr) return OkStatus();
  const Ticket::State state = ticket->Wait(deadline, [&] { return found->device.lost(); });
  if (state == Ticket::State::kReached) return OkStatus();
  KEEL_TRY(found->device.Health());
  return DeadlineExceeded("the event was not reached in time; the work goes on");
}

Result<double> SimDevice::ElapsedMilliseconds(hal::EventHandle start, hal::EventHandle end) {
  KEEL_TRY(Enter(Primitive::kElapsedMilliseconds));
  std::chrono::steady_clock::time_point when[2];
  const hal::EventHandle events[2] = {start, end};
  for (int i = 0; i < 2; ++i) {
    const char* name = i == 0 ? "first" : "second";
    KEEL_ASSIGN(const auto found, FindEvent(events[i]));
    if (!found->timing) {
      return FailedPrecondition(
          fmt::format("the {} event was created without EventOptions::timing", name));
    }
    MutexLock lock(found->mutex);
    if (found->ticket == nullptr || found->ticket->state() != Ticket::State::kReached) {
      return FailedPrecondition(fmt::format("the {} event was not recorded, or is not done", name));
    }
    when[i] = found->ticket->when();
  }
  return std::chrono::duration<double, std::milli>(when[1] - when[0]).count();
}

// --- Commands ----------------------------------------------------------------------------------

Status SimDevice::Submit(SimStream& stream, StoredCommand command) {
  if (stream.capturing.load()) {
    KEEL_ASSIGN(const bool captured, machine_->captures.Append(stream, command));
    if (captured) return OkStatus();
  }
  stream.Push(std::move(command));
  return OkStatus();
}

Status SimDevice::CheckUse(DeviceAddress address, Bytes size, Access access) const {
  return machine_->Check({ordinal_, address.value(), size, access});
}

Result<CopySide> SimDevice::StoreSide(const hal::Location& location) const {
  if (location.on_host()) return CopySide{CopySide::kHost, location.address};
  KEEL_ASSIGN(const int other, FindPeer(location.device));
  return CopySide{other, location.address};
}

Result<StoredCopy> SimDevice::StoreCopy(const hal::Copy& copy) const {
  StoredCopy stored;
  stored.size = copy.size;
  KEEL_ASSIGN(stored.destination, StoreSide(copy.destination));
  KEEL_ASSIGN(stored.source, StoreSide(copy.source));
  const bool same_space =
      stored.destination.ordinal == stored.source.ordinal || machine_->config().unified;
  KEEL_TRY(hal::CheckCopy(copy, same_space));
  return stored;
}

Status SimDevice::EnqueueCopy(hal::StreamHandle stream, const hal::Copy& copy) {
  KEEL_TRY(Enter(Primitive::kCopy));
  KEEL_ASSIGN(const auto on, FindStream(stream));
  KEEL_ASSIGN(StoredCopy stored, StoreCopy(copy));
  if (copy.size.empty()) return OkStatus();
  const bool capturing = machine_->captures.State(*on) != hal::CaptureState::kNone;
  const auto check = [&](const CopySide& side, Access access, bool* pageable) -> Status {
    if (side.ordinal == CopySide::kHost) {
      *pageable = !machine_->host.Contains(side.address, copy.size);
      for (int device = 0; device < machine_->config().devices; ++device) {
        if (machine_->SpaceOf(device).Contains(side.address)) {
          return InvalidArgument(fmt::format("{} is a device address; the copy says host memory",
                                             ToString(DeviceAddress(side.address))));
        }
      }
      return OkStatus();
    }
    // What a graph copies must be mapped when it runs, not when it is recorded.
    if (capturing) return OkStatus();
    return machine_->Check({side.ordinal, side.address, copy.size, access});
  };
  bool pageable_source = false;
  KEEL_TRY(check(stored.destination, Access::kWrite, &stored.pageable_destination)
               .Annotate("destination of a copy"));
  KEEL_TRY(check(stored.source, Access::kRead, &pageable_source).Annotate("source of a copy"));
  if (capturing && (pageable_source || stored.pageable_destination)) {
    return FailedPrecondition(
        "a copy of host memory that is not pinned cannot be captured; allocate it with "
        "AllocateHost, or register it");
  }
  if (pageable_source) {
    const auto* from = reinterpret_cast<const std::byte*>(stored.source.address);
    stored.staged_source.assign(from, from + copy.size.count());
  }
  const bool wait = stored.pageable_destination;
  KEEL_TRY(Submit(*on, std::move(stored)));
  if (wait) {
    on->WaitFor(on->position(), Deadline::Never());
    if (lost()) return Health();
  }
  return OkStatus();
}

Status SimDevice::EnqueueFill(hal::StreamHandle stream, const hal::Fill& fill) {
  KEEL_TRY(Enter(Primitive::kFill));
  KEEL_ASSIGN(const auto on, FindStream(stream));
  KEEL_TRY(hal::CheckFill(fill));
  if (fill.count == 0) return OkStatus();
  if (!on->capturing.load()) {
    KEEL_TRY(CheckUse(fill.destination, Bytes(fill.count * fill.width), Access::kWrite)
                 .Annotate("destination of a fill"));
  }
  return Submit(*on, fill);
}

Status SimDevice::WriteValue(hal::StreamHandle stream, const hal::ValueWrite& write) {
  KEEL_TRY(Enter(Primitive::kWriteValue));
  KEEL_ASSIGN(const auto on, FindStream(stream));
  KEEL_TRY(hal::CheckValueAddress(write.destination));
  if (!on->capturing.load()) {
    KEEL_TRY(CheckUse(write.destination, Bytes(8), Access::kWrite).Annotate("a value write"));
  }
  return Submit(*on, write);
}

Status SimDevice::WaitValue(hal::StreamHandle stream, const hal::ValueWait& wait) {
  KEEL_TRY(Enter(Primitive::kWaitValue));
  KEEL_ASSIGN(const auto on, FindStream(stream));
  KEEL_TRY(hal::CheckValueAddress(wait.source));
  if (!on->capturing.load()) {
    KEEL_TRY(CheckUse(wait.source, Bytes(8), Access::kRead).Annotate("a value wait"));
  }
  return Submit(*on, wait);
}

Status SimDevice::CallHost(hal::StreamHandle stream, const hal::HostCall& call) {
  KEEL_TRY(Enter(Primitive::kCallHost));
  KEEL_ASSIGN(const auto on, FindStream(stream));
  if (call.function == nullptr) return InvalidArgument("a host call without a function");
  return Submit(*on, call);
}

// --- Kernels -----------------------------------------------------------------------------------

Result<KernelSet> SimDevice::LoadFromMemory(DeviceAddress address, Bytes size) const {
  if (size.empty()) return InvalidArgument("no orchestration code was given");
  const MemoryUse use{ordinal_, address.value(), size, Access::kRead};
  HeldMemory held;
  KEEL_TRY(machine_->Check(use).Annotate("orchestration code"));
  const auto pointers = machine_->PinAll({&use, 1}, held, /*may_wait=*/true);
  if (!pointers.ok()) return pointers.status();
  return LoadOrchestration({pointers->front(), size.count()});
}

Result<hal::ModuleHandle> SimDevice::LoadModule(const hal::ModuleSource& source) {
  KEEL_TRY(Enter(Primitive::kLoadModule));
  KEEL_ASSIGN(const KernelSet kernels, source.kind == hal::ModuleSource::Kind::kDevice
                                           ? LoadFromMemory(source.address, source.size)
                                           : LoadKernels(source));
  auto module = std::make_shared<ModuleObject>(ModuleObject{ordinal_, {}});
  for (const std::shared_ptr<const Kernel>& kernel : kernels) {
    module->kernels.emplace_back(
        kernel->name,
        machine_->kernels.Insert(std::make_shared<KernelObject>(KernelObject{kernel, ordinal_})));
  }
  return hal::ModuleHandle{machine_->modules.Insert(std::move(module))};
}

Status SimDevice::UnloadModule(hal::ModuleHandle module) {
  KEEL_TRY(Enter(Primitive::kUnloadModule));
  const std::shared_ptr<ModuleObject> found = machine_->modules.Find(module.value);
  if (found == nullptr || found->ordinal != ordinal_ ||
      machine_->modules.Remove(module.value) == nullptr) {
    return InvalidArgument(
        fmt::format("{:#x} is not the handle of a module of device {}, or was unloaded",
                    module.value, ordinal_));
  }
  for (const auto& [name, kernel] : found->kernels) machine_->kernels.Remove(kernel);
  return OkStatus();
}

Result<hal::KernelHandle> SimDevice::FindKernel(hal::ModuleHandle module, std::string_view name) {
  KEEL_TRY(Enter(Primitive::kFindKernel));
  const std::shared_ptr<ModuleObject> found = machine_->modules.Find(module.value);
  if (found == nullptr || found->ordinal != ordinal_) {
    return InvalidArgument(
        fmt::format("{:#x} is not the handle of a module of device {}, or was unloaded",
                    module.value, ordinal_));
  }
  for (const auto& [kernel_name, kernel] : found->kernels) {
    if (kernel_name == name) return hal::KernelHandle{kernel};
  }
  return NotFound(fmt::format("the module has no kernel named '{}'", name));
}

Status SimDevice::LaunchKernel(hal::StreamHandle stream, const hal::KernelLaunch& launch) {
  KEEL_TRY(Enter(Primitive::kLaunchKernel));
  KEEL_ASSIGN(const auto on, FindStream(stream));
  KEEL_ASSIGN(StoredKernel stored, machine_->StoreKernel(ordinal_, launch));
  return Submit(*on, std::move(stored));
}

}  // namespace keel::sim
