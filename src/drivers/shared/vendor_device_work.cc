// VendorDevice: commands and kernels.

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <iterator>

#include "drivers/shared/current_scope.h"
#include "drivers/shared/short_list.h"
#include "drivers/shared/vendor_device.h"
#include "hal/check_command.h"

namespace keel::vendor {

using hal::Primitive;

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

bool VendorDevice::IsKnownPinned(const hal::Location& side, Bytes size) const {
  return !side.on_host() || open_->pinned().Has(Pointer(side.address), size);
}

Status VendorDevice::EnqueueCopy(hal::StreamHandle stream, const hal::Copy& copy) {
  KEEL_TRY(Enter(Primitive::kCopy));
  KEEL_TRY(CheckStream(stream));
  KEEL_TRY(hal::CheckCopy(copy, /*same_space=*/true));
  const hal::Location& to = copy.destination;
  const hal::Location& from = copy.source;
  if (!IsKnownPinned(to, copy.size) || !IsKnownPinned(from, copy.size)) {
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
  return Check(Primitive::kCopy, code);
}

Status VendorDevice::EnqueueFill(hal::StreamHandle stream, const hal::Fill& fill) {
  KEEL_TRY(Enter(Primitive::kFill));
  KEEL_TRY(CheckStream(stream));
  KEEL_TRY(hal::CheckFill(fill));
  if (fill.count == 0) return OkStatus();
  CurrentScope current(api_, context_);
  void* on = Pointer(stream.value);
  const std::uint64_t to = fill.destination.value();
  switch (fill.width) {
    case 1:
      return Check(Primitive::kFill,
                   api_.fill8(to, static_cast<unsigned char>(fill.value), fill.count, on));
    case 2:
      return Check(Primitive::kFill,
                   api_.fill16(to, static_cast<unsigned short>(fill.value), fill.count, on));
    default:
      return Check(Primitive::kFill, api_.fill32(to, fill.value, fill.count, on));
  }
}

Status VendorDevice::WriteValue(hal::StreamHandle stream, const hal::ValueWrite& write) {
  KEEL_TRY(Enter(Primitive::kWriteValue, capabilities_.value_writes));
  KEEL_TRY(CheckStream(stream));
  KEEL_TRY(hal::CheckValueAddress(write.destination));
  CurrentScope current(api_, context_, NeedsCurrent(stream));
  return Check(Primitive::kWriteValue,
               api_.write_value(Pointer(stream.value), write.destination.value(), write.value, 0));
}

Status VendorDevice::WaitValue(hal::StreamHandle stream, const hal::ValueWait& wait) {
  KEEL_TRY(Enter(Primitive::kWaitValue, capabilities_.value_waits));
  KEEL_TRY(CheckStream(stream));
  KEEL_TRY(hal::CheckValueAddress(wait.source));
  CurrentScope current(api_, context_, NeedsCurrent(stream));
  return Check(Primitive::kWaitValue, api_.wait_value(Pointer(stream.value), wait.source.value(),
                                                      wait.value, wait.condition));
}

Status VendorDevice::CallHost(hal::StreamHandle stream, const hal::HostCall& call) {
  KEEL_TRY(Enter(Primitive::kCallHost, capabilities_.host_calls));
  KEEL_TRY(CheckStream(stream));
  if (call.function == nullptr) return InvalidArgument("a host call without a function");
  CurrentScope current(api_, context_, NeedsCurrent(stream));
  HostCalls& calls = open_->host_calls();
  HostCalls::Thunk* thunk = calls.Find(call);
  if (thunk == nullptr) {
    // A capture makes a node of it, which runs with every launch of the graph.
    KEEL_ASSIGN(const bool capturing, IsCapturing(stream));
    thunk = capturing ? calls.Keep(call) : calls.Lend(call);
  }
  const Code code = api_.call_host(Pointer(stream.value), HostCalls::Run, thunk);
  if (code != kSuccess) HostCalls::GiveBack(thunk);
  return Check(Primitive::kCallHost, code);
}

// --- Kernels -----------------------------------------------------------------------------------

Result<hal::ModuleHandle> VendorDevice::LoadModule(const hal::ModuleSource& source) {
  KEEL_TRY(Enter(Primitive::kLoadModule, capabilities_.kernels));
  // An image that is text must end in a zero byte: one that does not is copied, and a string's own
  // terminator ends it.
  std::string copied;
  const char* image = nullptr;
  switch (source.kind) {
    case hal::ModuleSource::Kind::kImage: {
      const auto* bytes = reinterpret_cast<const char*>(source.image.data());
      if (source.image.empty()) return InvalidArgument("a module without any bytes");
      if (source.image.back() == std::byte{0}) {
        image = bytes;
      } else {
        copied.assign(bytes, source.image.size());
        image = copied.c_str();
      }
      break;
    }
    case hal::ModuleSource::Kind::kFile: {
      std::ifstream file(source.name, std::ios::binary);
      if (!file) {
        return SystemError(fmt::format("opening the module '{}'", source.name),
                           errno == 0 ? ENOENT : errno);
      }
      copied.assign(std::istreambuf_iterator<char>(file), {});
      if (copied.empty()) {
        return InvalidArgument(fmt::format("the module '{}' is empty", source.name));
      }
      image = copied.c_str();
      break;
    }
    case hal::ModuleSource::Kind::kDevice:
      return Unimplemented("code in device memory: this device has no controller that runs it");
    case hal::ModuleSource::Kind::kRegistered:
      return NotFound(
          fmt::format("no set of kernels named '{}' is registered: {} takes images and files",
                      source.name, info_.driver));
  }
  CurrentScope current(api_, context_);
  CaptureModeScope mode(api_);
  void* module = nullptr;
  KEEL_TRY(Check(Primitive::kLoadModule, api_.module_load(&module, image)));
  return hal::ModuleHandle{Value(module)};
}

Status VendorDevice::UnloadModule(hal::ModuleHandle module) {
  KEEL_TRY(Enter(Primitive::kUnloadModule, capabilities_.kernels));
  if (!module) return InvalidArgument("a null handle is not a module");
  CurrentScope current(api_, context_);
  CaptureModeScope mode(api_);
  return Check(Primitive::kUnloadModule, api_.module_unload(Pointer(module.value)));
}

Result<hal::KernelHandle> VendorDevice::FindKernel(hal::ModuleHandle module,
                                                   std::string_view name) {
  KEEL_TRY(Enter(Primitive::kFindKernel, capabilities_.kernels));
  if (!module) return InvalidArgument("a null handle is not a module");
  CurrentScope current(api_, context_);
  void* kernel = nullptr;
  const std::string terminated(name);
  Status status = Check(Primitive::kFindKernel,
                        api_.module_kernel(&kernel, Pointer(module.value), terminated.c_str()));
  if (!status.ok()) return std::move(status).Annotate(fmt::format("kernel '{}'", name));
  return hal::KernelHandle{Value(kernel)};
}

Status VendorDevice::LaunchKernel(hal::StreamHandle stream, const hal::KernelLaunch& launch) {
  KEEL_TRY(Enter(Primitive::kLaunchKernel, capabilities_.kernels));
  KEEL_TRY(CheckStream(stream));
  if (!launch.kernel) return InvalidArgument("a null handle is not a kernel");
  KEEL_TRY(hal::CheckArguments(launch.args));
  PointerList arguments(launch.args, [](const hal::KernelArg& argument) {
    return const_cast<void*>(argument.data());
  });
  CurrentScope current(api_, context_, NeedsCurrent(stream));
  const auto& grid = launch.dims.grid;
  const auto& block = launch.dims.block;
  return Check(
      Primitive::kLaunchKernel,
      api_.launch(Pointer(launch.kernel.value), grid[0], grid[1], grid[2], block[0], block[1],
                  block[2], static_cast<unsigned>(launch.dims.shared_memory.count()),
                  Pointer(stream.value), arguments.data(), nullptr));
}

}  // namespace keel::vendor
