#include "drivers/standin/resolve.h"

#include <utility>

#include "keel/hal/capture_mode.h"

namespace keel::standin {
namespace {

// A real device gives a block this much without being asked in a way that this interface lacks.
constexpr Bytes kMostSharedMemory = 48_KiB;

Cause ResolveLaunch(const Launch& launch, Context& context, ResolvedWork* resolved) {
  Process& process = Process::Get();
  std::shared_ptr<KernelObject> kernel;
  if (const Cause cause = process.Find(process.kernels, launch.kernel, &kernel);
      cause != Cause::kOk) {
    return cause;
  }
  if (kernel->context != &context) return Cause::kInvalidHandle;
  if (!kernel->handle) return Cause::kInvalidImage;
  if (launch.arguments == nullptr && !kernel->sizes.empty()) return Cause::kInvalidValue;
  if (launch.dims.shared_memory > kMostSharedMemory) return Cause::kInvalidValue;
  for (std::size_t i = 0; i < kernel->sizes.size(); ++i) {
    if (launch.arguments[i] == nullptr) return Cause::kInvalidValue;
    resolved->arguments.push_back(hal::KernelArg::ValueAt(launch.arguments[i], kernel->sizes[i]));
  }
  resolved->command = hal::KernelLaunch{kernel->handle, launch.dims, resolved->arguments};
  return Cause::kOk;
}

// The device that a device address is used by: the one at hand if it may, else the one whose memory
// it is, as a library does that copies between devices on its own.
Cause UserOf(Address address, Context& context, hal::Device& device, ResolvedWork* resolved,
             hal::DeviceId* id) {
  *id = device.id();
  const auto access = device.GetAccess(DeviceAddress(address), device.id());
  if (access.ok() && *access != hal::Access::kNone) return Cause::kOk;
  Process& process = Process::Get();
  Context* owner = &context;
  {
    MutexLock lock(process.mutex);
    for (const Regions* regions : {&process.plain, &process.mappings}) {
      const auto found = FindRegion(*regions, address);
      if (found != regions->end()) owner = found->second.context;
    }
  }
  if (owner == &context) return Cause::kOk;
  const Cause cause = process.Open(*owner, &resolved->open.emplace_back());
  if (cause == Cause::kOk) *id = resolved->open.back()->id();
  return cause;
}

Cause ResolvePlace(const Place& place, Context& context, hal::Device& device,
                   ResolvedWork* resolved, hal::Location* location) {
  const MemoryKind kind = KindOf(place.address);
  const bool host = place.side == Place::Side::kHost ||
                    (place.side == Place::Side::kAny && kind != MemoryKind::kDevice);
  if (host) {
    if (kind == MemoryKind::kDevice) return Cause::kInvalidValue;
    *location = {hal::DeviceId::kNone, place.address};
    return Cause::kOk;
  }
  // What was never handed out, or was given back.
  if (kind == MemoryKind::kPageable) return Cause::kInvalidValue;
  hal::DeviceId id = device.id();
  Cause cause = Cause::kOk;
  if (place.context != nullptr) {
    Process& process = Process::Get();
    Context* owner = nullptr;
    cause = process.FindContext(place.context, &owner);
    if (cause == Cause::kOk) cause = process.Open(*owner, &resolved->open.emplace_back());
    if (cause == Cause::kOk) id = resolved->open.back()->id();
  } else {
    cause = UserOf(place.address, context, device, resolved, &id);
  }
  *location = {id, place.address};
  return cause;
}

Cause ResolveTransfer(const Transfer& transfer, Context& context, hal::Device& device,
                      ResolvedWork* resolved) {
  hal::Copy copy;
  copy.size = Bytes(transfer.size);
  Cause cause = ResolvePlace(transfer.to, context, device, resolved, &copy.destination);
  if (cause == Cause::kOk) {
    cause = ResolvePlace(transfer.from, context, device, resolved, &copy.source);
  }
  resolved->command = copy;
  return cause;
}

}  // namespace

Cause Resolve(const Work& work, Context& context, hal::Device& device, ResolvedWork* resolved) {
  if (const auto* launch = std::get_if<Launch>(&work)) {
    return ResolveLaunch(*launch, context, resolved);
  }
  if (const auto* transfer = std::get_if<Transfer>(&work)) {
    return ResolveTransfer(*transfer, context, device, resolved);
  }
  if (const auto* fill = std::get_if<hal::Fill>(&work)) {
    if (fill->count > 0 && KindOf(fill->destination.value()) == MemoryKind::kPageable) {
      return Cause::kInvalidValue;
    }
    resolved->command = *fill;
    return Cause::kOk;
  }
  if (const auto* call = std::get_if<hal::HostCall>(&work)) {
    if (call->function == nullptr) return Cause::kInvalidValue;
    resolved->command = *call;
    return Cause::kOk;
  }
  if (const auto* write = std::get_if<hal::ValueWrite>(&work)) resolved->command = *write;
  if (const auto* wait = std::get_if<hal::ValueWait>(&work)) resolved->command = *wait;
  return Cause::kOk;
}

bool MayUse(hal::Device& device, const hal::Location& location, Bytes size, hal::Access access) {
  if (location.on_host()) return true;
  Process& process = Process::Get();
  const Address end = location.address + size.count();
  for (Address at = location.address; at < end;) {
    Address next = 0;
    bool pinned = false;
    {
      MutexLock lock(process.mutex);
      for (const Regions* regions : {&process.plain, &process.mappings, &process.pinned}) {
        const auto found = FindRegion(*regions, at);
        if (found == regions->end()) continue;
        next = found->first + found->second.size;
        pinned = regions == &process.pinned;
      }
    }
    if (next == 0) return false;
    if (!pinned) {
      const auto granted = device.GetAccess(DeviceAddress(at), location.device);
      if (!granted.ok() || !hal::Allows(*granted, access)) return false;
    }
    at = next;
  }
  return true;
}

void BreakCapture(hal::Device& device, hal::StreamHandle stream) {
  const hal::ScopedCaptureMode relaxed(hal::CaptureMode::kRelaxed);
  // Looking at a stream that captures is refused and breaks its capture.
  (void)device.QueryStream(stream);
}

}  // namespace keel::standin
