// VendorDevice: streams, events, commands and kernels.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>

#include "drivers/shared/current_scope.h"
#include "drivers/shared/vendor_device.h"
#include "hal/check_command.h"

namespace keel::vendor {

using hal::Primitive;

// --- Streams -----------------------------------------------------------------------------------

Status VendorDevice::CheckStream(hal::StreamHandle stream) const {
  if (stream) return OkStatus();
  return InvalidArgument("a null handle is not a stream; GetDefaultStream has the default ones");
}

Result<hal::StreamHandle> VendorDevice::CreateStream(const hal::StreamOptions& options) {
  KEEL_TRY(Enter());
  CurrentScope current(api_, context_);
  void* stream = nullptr;
  KEEL_TRY(Check("CreateStream",
                 api_.stream_create(
                     &stream, std::clamp(options.priority, greatest_priority_, least_priority_))));
  MutexLock lock(mutex_);
  streams_.insert(stream);
  return hal::StreamHandle{Value(stream)};
}

Status VendorDevice::DestroyStream(hal::StreamHandle stream) {
  KEEL_TRY(Enter());
  KEEL_TRY(CheckStream(stream));
  if (stream.value == api_.legacy_stream || stream.value == api_.per_thread_stream) {
    return FailedPrecondition("a default stream cannot be destroyed");
  }
  {
    MutexLock lock(mutex_);
    if (!streams_.contains(Pointer(stream.value))) {
      return InvalidArgument(fmt::format(
          "{:#x} is not a stream that this device made, or was destroyed", stream.value));
    }
  }
  KEEL_ASSIGN(const bool capturing, IsCapturing(stream));
  if (capturing) {
    return FailedPrecondition("the stream takes part in a capture; end that first");
  }
  KEEL_TRY(Check("DestroyStream", api_.stream_destroy(Pointer(stream.value))));
  MutexLock lock(mutex_);
  streams_.erase(Pointer(stream.value));
  return OkStatus();
}

Result<hal::StreamHandle> VendorDevice::GetDefaultStream(hal::DefaultStream which) {
  KEEL_TRY(Enter());
  return hal::StreamHandle{which == hal::DefaultStream::kLegacy ? api_.legacy_stream
                                                                : api_.per_thread_stream};
}

Result<hal::StreamHandle> VendorDevice::BorrowStream(std::uint64_t native) {
  KEEL_TRY(Enter());
  // To the library zero is the legacy default stream; here it is no stream.
  if (native == 0 || native == api_.legacy_stream) return hal::StreamHandle{api_.legacy_stream};
  if (native == api_.per_thread_stream) return hal::StreamHandle{native};
  void* context = nullptr;
  KEEL_TRY(Check("BorrowStream", api_.stream_context(Pointer(native), &context)));
  if (context != context_) {
    return InvalidArgument(fmt::format("stream {:#x} belongs to another device", native));
  }
  return hal::StreamHandle{native};
}

Result<hal::Completion> VendorDevice::QueryStream(hal::StreamHandle stream) {
  KEEL_TRY(Enter());
  KEEL_TRY(CheckStream(stream));
  CurrentScope current(api_, context_);
  CaptureModeScope mode(api_);
  const Code code = api_.stream_query(Pointer(stream.value));
  if (code == api_.not_ready) return hal::Completion::kPending;
  KEEL_TRY(Check("QueryStream", code));
  return hal::Completion::kDone;
}

template <class Query>
Status VendorDevice::Await(std::string_view call, Query query, Deadline deadline) {
  CurrentScope current(api_, context_);
  CaptureModeScope mode(api_);
  const auto spin_until = Deadline::Clock::now() + std::chrono::microseconds(20);
  auto pause = std::chrono::microseconds(5);
  for (;;) {
    const Code code = query();
    if (code != api_.not_ready) return Check(call, code);
    if (deadline.Passed()) {
      return DeadlineExceeded(fmt::format("{}: not done in time; the work goes on", call));
    }
    // Most waits are short: look again at once for a moment before sleeping costs a wake-up.
    if (Deadline::Clock::now() < spin_until) continue;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(100));
  }
}

Status VendorDevice::SynchronizeStream(hal::StreamHandle stream, Deadline deadline) {
  KEEL_TRY(Enter());
  KEEL_TRY(CheckStream(stream));
  return Await(
      "SynchronizeStream", [&] { return api_.stream_query(Pointer(stream.value)); }, deadline);
}

Status VendorDevice::Synchronize(Deadline deadline) {
  KEEL_TRY(Enter());
  if (deadline.never()) {
    CurrentScope current(api_, context_);
    CaptureModeScope mode(api_);
    return Check("Synchronize", api_.context_synchronize());
  }
  // The library has no bounded wait for a device: first everything that we know of, bounded.
  std::set<void*> streams;
  {
    MutexLock lock(mutex_);
    streams = streams_;
  }
  streams.insert(Pointer(api_.legacy_stream));
  for (void* stream : streams) {
    // A stream that captures runs nothing, and asking it would break its capture.
    KEEL_ASSIGN(const bool capturing, IsCapturing({Value(stream)}));
    if (capturing) continue;
    KEEL_TRY(Await("Synchronize", [&] { return api_.stream_query(stream); }, deadline));
  }
  return OkStatus();
}

// --- Events ------------------------------------------------------------------------------------

Result<hal::EventHandle> VendorDevice::CreateEvent(const hal::EventOptions& options) {
  KEEL_TRY(Enter());
  CurrentScope current(api_, context_);
  void* event = nullptr;
  KEEL_TRY(Check("CreateEvent", api_.event_create(&event, options.timing)));
  return hal::EventHandle{Value(event)};
}

Status VendorDevice::DestroyEvent(hal::EventHandle event) {
  KEEL_TRY(Enter());
  if (!event) return InvalidArgument("a null handle is not an event");
  return Check("DestroyEvent", api_.event_destroy(Pointer(event.value)));
}

Status VendorDevice::RecordEvent(hal::EventHandle event, hal::StreamHandle stream) {
  KEEL_TRY(Enter());
  KEEL_TRY(CheckStream(stream));
  CurrentScope current(api_, context_);
  return Check("RecordEvent", api_.event_record(Pointer(event.value), Pointer(stream.value)));
}

Status VendorDevice::WaitEvent(hal::StreamHandle stream, hal::EventHandle event) {
  KEEL_TRY(Enter());
  KEEL_TRY(CheckStream(stream));
  CurrentScope current(api_, context_);
  return Check("WaitEvent", api_.stream_wait_event(Pointer(stream.value), Pointer(event.value), 0));
}

Result<hal::Completion> VendorDevice::QueryEvent(hal::EventHandle event) {
  KEEL_TRY(Enter());
  if (!event) return InvalidArgument("a null handle is not an event");
  CaptureModeScope mode(api_);
  const Code code = api_.event_query(Pointer(event.value));
  if (code == api_.not_ready) return hal::Completion::kPending;
  KEEL_TRY(Check("QueryEvent", code));
  return hal::Completion::kDone;
}

Status VendorDevice::SynchronizeEvent(hal::EventHandle event, Deadline deadline) {
  KEEL_TRY(Enter());
  if (!event) return InvalidArgument("a null handle is not an event");
  return Await(
      "SynchronizeEvent", [&] { return api_.event_query(Pointer(event.value)); }, deadline);
}

Result<double> VendorDevice::ElapsedMilliseconds(hal::EventHandle start, hal::EventHandle end) {
  KEEL_TRY(Enter());
  if (!start || !end) return InvalidArgument("a null handle is not an event");
  float milliseconds = 0;
  const Code code = api_.event_elapsed(&milliseconds, Pointer(start.value), Pointer(end.value));
  if (code != kSuccess && api_.judge(code).device_lost) return Fail("ElapsedMilliseconds", code);
  if (code != kSuccess) {
    // The library's words for "not recorded", "not done" and "no timing" are three; ours is one.
    const Status status = StatusOf(api_, "ElapsedMilliseconds", code);
    return FailedPrecondition(
               "both events must have timing (EventOptions::timing), be recorded and be done")
        .WithVendor(status.vendor_code(), status.vendor_name());
  }
  return static_cast<double>(milliseconds);
}

// --- Commands ----------------------------------------------------------------------------------

Status VendorDevice::CheckPinned(const hal::Copy& copy) const {
  for (const hal::Location& side : {copy.destination, copy.source}) {
    if (side.on_host() && !api_.is_pinned(Pointer(side.address))) {
      return FailedPrecondition(
          "a copy of host memory that is not pinned cannot be part of a graph; allocate it with "
          "AllocateHost, or register it");
    }
  }
  return OkStatus();
}

Status VendorDevice::EnqueueCopy(hal::StreamHandle stream, const hal::Copy& copy) {
  KEEL_TRY(Enter());
  KEEL_TRY(CheckStream(stream));
  KEEL_TRY(hal::CheckCopy(copy, /*same_space=*/true));
  const hal::Location& to = copy.destination;
  const hal::Location& from = copy.source;
  if (to.on_host() || from.on_host()) {
    KEEL_ASSIGN(const bool capturing, IsCapturing(stream));
    if (capturing) KEEL_TRY(CheckPinned(copy));
  }
  void* to_context = context_;
  void* from_context = context_;
  if (!to.on_host() && to.device != id_) {
    KEEL_ASSIGN(const OpenDevices::Entry device, open_->Find(to.device));
    to_context = device.context;
  }
  if (!from.on_host() && from.device != id_) {
    KEEL_ASSIGN(const OpenDevices::Entry device, open_->Find(from.device));
    from_context = device.context;
  }
  const std::size_t size = copy.size.count();
  if (size == 0) return OkStatus();
  CurrentScope current(api_, context_);
  void* const on = Pointer(stream.value);
  Code code = kSuccess;
  if (to.on_host() && from.on_host()) {
    code = api_.copy_host(to.address, from.address, size, on);
  } else if (from.on_host()) {
    code = api_.copy_in(to.address, Pointer(from.address), size, on);
  } else if (to.on_host()) {
    code = api_.copy_out(Pointer(to.address), from.address, size, on);
  } else if (to_context == from_context) {
    code = api_.copy_within(to.address, from.address, size, on);
  } else {
    code = api_.copy_peer(to.address, to_context, from.address, from_context, size, on);
  }
  return Check("EnqueueCopy", code);
}

Status VendorDevice::EnqueueFill(hal::StreamHandle stream, const hal::Fill& fill) {
  KEEL_TRY(Enter());
  KEEL_TRY(CheckStream(stream));
  KEEL_TRY(hal::CheckFill(fill));
  if (fill.count == 0) return OkStatus();
  CurrentScope current(api_, context_);
  void* on = Pointer(stream.value);
  const std::uint64_t to = fill.destination.value();
  switch (fill.width) {
    case 1:
      return Check("EnqueueFill",
                   api_.fill8(to, static_cast<unsigned char>(fill.value), fill.count, on));
    case 2:
      return Check("EnqueueFill",
                   api_.fill16(to, static_cast<unsigned short>(fill.value), fill.count, on));
    default:
      return Check("EnqueueFill", api_.fill32(to, fill.value, fill.count, on));
  }
}

Status VendorDevice::WriteValue(hal::StreamHandle stream, const hal::ValueWrite& write) {
  KEEL_TRY(Enter(capabilities_.value_writes, Primitive::kWriteValue));
  KEEL_TRY(CheckStream(stream));
  KEEL_TRY(hal::CheckValueAddress(write.destination));
  CurrentScope current(api_, context_);
  return Check("WriteValue",
               api_.write_value(Pointer(stream.value), write.destination.value(), write.value, 0));
}

Status VendorDevice::WaitValue(hal::StreamHandle stream, const hal::ValueWait& wait) {
  KEEL_TRY(Enter(capabilities_.value_waits, Primitive::kWaitValue));
  KEEL_TRY(CheckStream(stream));
  KEEL_TRY(hal::CheckValueAddress(wait.source));
  CurrentScope current(api_, context_);
  return Check("WaitValue", api_.wait_value(Pointer(stream.value), wait.source.value(), wait.value,
                                            wait.condition));
}

Status VendorDevice::CallHost(hal::StreamHandle stream, const hal::HostCall& call) {
  KEEL_TRY(Enter(capabilities_.host_calls, Primitive::kCallHost));
  KEEL_TRY(CheckStream(stream));
  if (call.function == nullptr) return InvalidArgument("a host call without a function");
  CurrentScope current(api_, context_);
  return Check("CallHost", api_.call_host(Pointer(stream.value), call.function, call.data));
}

// --- Kernels -----------------------------------------------------------------------------------

Result<hal::ModuleHandle> VendorDevice::LoadModule(const hal::ModuleSource& source) {
  KEEL_TRY(Enter(capabilities_.kernels, Primitive::kLoadModule));
  std::string image;
  switch (source.kind) {
    case hal::ModuleSource::Kind::kImage:
      image.assign(reinterpret_cast<const char*>(source.image.data()), source.image.size());
      break;
    case hal::ModuleSource::Kind::kFile: {
      std::ifstream file(source.name, std::ios::binary);
      if (!file) {
        return SystemError(fmt::format("opening the module '{}'", source.name),
                           errno == 0 ? ENOENT : errno);
      }
      image.assign(std::istreambuf_iterator<char>(file), {});
      break;
    }
    case hal::ModuleSource::Kind::kRegistered:
      return NotFound(
          fmt::format("no set of kernels named '{}' is registered: {} takes images and files",
                      source.name, info_.driver));
  }
  if (image.empty()) return InvalidArgument("a module without any bytes");
  CurrentScope current(api_, context_);
  CaptureModeScope mode(api_);
  void* module = nullptr;
  // The string's own terminator ends an image that is text.
  KEEL_TRY(Check("LoadModule", api_.module_load(&module, image.c_str())));
  return hal::ModuleHandle{Value(module)};
}

Status VendorDevice::UnloadModule(hal::ModuleHandle module) {
  KEEL_TRY(Enter(capabilities_.kernels, Primitive::kUnloadModule));
  if (!module) return InvalidArgument("a null handle is not a module");
  CurrentScope current(api_, context_);
  CaptureModeScope mode(api_);
  return Check("UnloadModule", api_.module_unload(Pointer(module.value)));
}

Result<hal::KernelHandle> VendorDevice::FindKernel(hal::ModuleHandle module,
                                                   std::string_view name) {
  KEEL_TRY(Enter(capabilities_.kernels, Primitive::kFindKernel));
  if (!module) return InvalidArgument("a null handle is not a module");
  CurrentScope current(api_, context_);
  void* kernel = nullptr;
  const std::string terminated(name);
  Status status =
      Check("FindKernel", api_.module_kernel(&kernel, Pointer(module.value), terminated.c_str()));
  if (!status.ok()) return std::move(status).Annotate(fmt::format("kernel '{}'", name));
  return hal::KernelHandle{Value(kernel)};
}

Status VendorDevice::LaunchKernel(hal::StreamHandle stream, const hal::KernelLaunch& launch) {
  KEEL_TRY(Enter(capabilities_.kernels, Primitive::kLaunchKernel));
  KEEL_TRY(CheckStream(stream));
  if (!launch.kernel) return InvalidArgument("a null handle is not a kernel");
  constexpr std::size_t kInline = 32;
  std::array<void*, kInline> few;
  std::vector<void*> many;
  void** arguments = few.data();
  if (launch.args.size() > kInline) {
    many.resize(launch.args.size());
    arguments = many.data();
  }
  for (std::size_t i = 0; i < launch.args.size(); ++i) {
    arguments[i] = const_cast<void*>(launch.args[i].data());
  }
  CurrentScope current(api_, context_);
  const auto& grid = launch.dims.grid;
  const auto& block = launch.dims.block;
  return Check("LaunchKernel", api_.launch(Pointer(launch.kernel.value), grid[0], grid[1], grid[2],
                                           block[0], block[1], block[2],
                                           static_cast<unsigned>(launch.dims.shared_memory.count()),
                                           Pointer(stream.value), arguments, nullptr));
}

}  // namespace keel::vendor
