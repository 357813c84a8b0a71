// Memory, pinned memory and peers.

#include <sys/stat.h>

#include <utility>

#include "drivers/standin/process.h"
#include "keel/hal/capture_mode.h"

namespace keel::standin {
namespace {

// What has no state to blame: a refusal of the simulated device is a wrong value here.
Cause JudgeValue(Context& context, const Status& status) {
  return Process::Judge(context, status, Cause::kInvalidValue);
}

Cause JudgeUnsafe(Context& context, const Status& status) {
  return Process::Judge(context, status, Cause::kCaptureUnsupported);
}

// Real libraries wait for all work of a context before they free anything of it.
Cause WaitBeforeFree(Context& context, hal::Device& device) {
  const hal::ScopedCaptureMode relaxed(hal::CaptureMode::kRelaxed);
  return JudgeUnsafe(context, device.Synchronize(Deadline::Never()));
}

// The current context, for a call that is unsafe in a capture: the refusal comes before any look at
// the arguments.
Cause CurrentForUnsafe(Context** context, std::shared_ptr<hal::Device>* device) {
  const Cause cause = Process::Get().Current(context, device);
  if (cause != Cause::kOk) return cause;
  // No event has this handle: any other answer is the refusal of an unsafe call, or a loss.
  const Status status = (*device)->QueryEvent({}).status();
  if (status.code() == StatusCode::kInvalidArgument) return Cause::kOk;
  return JudgeUnsafe(**context, status);
}

bool IsRange(Address address, std::size_t size) { return size > 0 && size <= ~address; }

// Forgets a region while `call` gives it back: from then on the same address may be handed out to
// another thread. It is remembered again if the call fails.
template <class Call>
Cause GiveBack(Regions Process::* regions, Address address, Call call) {
  Process& process = Process::Get();
  Regions::node_type gone;
  {
    MutexLock lock(process.mutex);
    gone = (process.*regions).extract(address);
  }
  const Cause cause = call();
  if (cause != Cause::kOk && !gone.empty()) {
    MutexLock lock(process.mutex);
    (process.*regions).insert(std::move(gone));
  }
  return cause;
}

Cause FindMemory(std::uint64_t memory, std::shared_ptr<MemoryObject>* object) {
  Process& process = Process::Get();
  const Cause cause = process.Find(process.memories, reinterpret_cast<void*>(memory), object);
  return cause == Cause::kInvalidHandle ? Cause::kInvalidValue : cause;
}

std::uint64_t InsertMemory(Context& context, hal::MemoryHandle handle, std::size_t size) {
  Process& process = Process::Get();
  return reinterpret_cast<std::uint64_t>(process.Insert(
      process.memories, std::make_shared<MemoryObject>(MemoryObject{&context, handle, size})));
}

}  // namespace

// --- Plain memory --------------------------------------------------------------------------------

Cause GetMemoryInfo(std::size_t* free, std::size_t* total) {
  Context* context = nullptr;
  std::shared_ptr<hal::Device> device;
  if (const Cause cause = Process::Get().Current(&context, &device); cause != Cause::kOk) {
    return cause;
  }
  const auto info = device->GetMemoryInfo();
  if (!info.ok()) return JudgeValue(*context, info.status());
  *free = info->free.count();
  *total = info->total.count();
  return Cause::kOk;
}

Cause AllocatePlain(Address* address, std::size_t size) {
  Process& process = Process::Get();
  Context* context = nullptr;
  std::shared_ptr<hal::Device> device;
  if (const Cause cause = process.Current(&context, &device); cause != Cause::kOk) return cause;
  const auto made = device->AllocatePlain(Bytes(size));
  if (!made.ok()) return JudgeUnsafe(*context, made.status());
  *address = made->value();
  MutexLock lock(process.mutex);
  process.plain.emplace(*address, Region{size, context, false});
  return Cause::kOk;
}

Cause FreePlain(Address address) {
  Process& process = Process::Get();
  Context* current = nullptr;
  std::shared_ptr<hal::Device> device;
  if (const Cause cause = CurrentForUnsafe(&current, &device); cause != Cause::kOk) return cause;
  if (address == 0) return Cause::kOk;
  Context* owner = nullptr;
  {
    MutexLock lock(process.mutex);
    const auto found = process.plain.find(address);
    if (found == process.plain.end()) return Cause::kInvalidValue;
    owner = found->second.context;
    device = owner->device;
  }
  if (const Cause cause = WaitBeforeFree(*owner, *device); cause != Cause::kOk) return cause;
  return GiveBack(&Process::plain, address,
                  [&] { return JudgeUnsafe(*owner, device->FreePlain(DeviceAddress(address))); });
}

// --- Virtual memory ------------------------------------------------------------------------------

Cause CreateMemory(std::uint64_t* memory, std::size_t size, int device,
                   const hal::MemoryOptions& options) {
  Process& process = Process::Get();
  Context* context = nullptr;
  std::shared_ptr<hal::Device> opened;
  Cause cause = process.FindDevice(device, &context);
  if (cause == Cause::kOk) cause = process.Open(*context, &opened);
  if (cause != Cause::kOk) return cause;
  const auto made = opened->CreateMemory(Bytes(size), options);
  if (!made.ok()) return JudgeValue(*context, made.status());
  *memory = InsertMemory(*context, *made, size);
  return Cause::kOk;
}

Cause ReleaseMemory(std::uint64_t memory) {
  Process& process = Process::Get();
  std::shared_ptr<MemoryObject> object;
  std::shared_ptr<hal::Device> device;
  Cause cause = FindMemory(memory, &object);
  if (cause == Cause::kOk) cause = process.Open(*object->context, &device);
  if (cause == Cause::kOk) {
    cause = JudgeValue(*object->context, device->ReleaseMemory(object->handle));
  }
  if (cause != Cause::kOk) return cause;
  process.Erase(process.memories, reinterpret_cast<void*>(memory));
  device.reset();
  process.CloseIdle();
  return cause;
}

Cause ExportMemory(int* descriptor, std::uint64_t memory) {
  std::shared_ptr<MemoryObject> object;
  std::shared_ptr<hal::Device> device;
  Cause cause = FindMemory(memory, &object);
  if (cause == Cause::kOk) cause = Process::Get().Open(*object->context, &device);
  if (cause != Cause::kOk) return cause;
  auto exported = device->ExportMemory(object->handle);
  if (!exported.ok()) return JudgeValue(*object->context, exported.status());
  *descriptor = exported->Release();
  return Cause::kOk;
}

Cause ImportMemory(std::uint64_t* memory, int descriptor) {
  Context* context = nullptr;
  std::shared_ptr<hal::Device> device;
  if (const Cause cause = Process::Get().Any(&context, &device); cause != Cause::kOk) return cause;
  // Only the descriptor knows how much it is.
  struct stat info = {};
  if (fstat(descriptor, &info) != 0 || info.st_size <= 0) return Cause::kUnknown;
  const auto size = static_cast<std::size_t>(info.st_size);
  const auto made = device->ImportMemory(descriptor, Bytes(size));
  if (!made.ok()) {
    const Cause cause = JudgeValue(*context, made.status());
    return cause == Cause::kInvalidValue ? Cause::kUnknown : cause;
  }
  *memory = InsertMemory(*context, *made, size);
  return Cause::kOk;
}

Cause ReserveAddress(Address* address, std::size_t size, std::size_t alignment, Address hint) {
  Process& process = Process::Get();
  Context* context = nullptr;
  std::shared_ptr<hal::Device> device;
  if (const Cause cause = process.Any(&context, &device); cause != Cause::kOk) return cause;
  const auto made = device->ReserveAddress(Bytes(size), Bytes(alignment), DeviceAddress(hint));
  if (!made.ok()) return JudgeValue(*context, made.status());
  *address = made->value();
  MutexLock lock(process.mutex);
  process.reservations.emplace(*address, Region{size, nullptr, false});
  return Cause::kOk;
}

Cause FreeAddress(Address address, std::size_t size) {
  Process& process = Process::Get();
  Context* context = nullptr;
  std::shared_ptr<hal::Device> device;
  Cause cause = process.Any(&context, &device);
  if (cause != Cause::kOk) return cause;
  cause = GiveBack(&Process::reservations, address, [&] {
    return JudgeValue(*context, device->FreeAddress(DeviceAddress(address), Bytes(size)));
  });
  if (cause != Cause::kOk) return cause;
  device.reset();
  process.CloseIdle();
  return cause;
}

Cause Map(Address address, std::size_t size, std::size_t offset, std::uint64_t memory) {
  Process& process = Process::Get();
  std::shared_ptr<MemoryObject> object;
  Context* context = nullptr;
  std::shared_ptr<hal::Device> device;
  Cause cause = FindMemory(memory, &object);
  if (cause != Cause::kOk) return cause;
  if (offset != 0 || size != object->size) return Cause::kNotSupported;
  cause = process.Any(&context, &device);
  if (cause != Cause::kOk) return cause;
  cause = JudgeValue(*context,
                     device->Map(DeviceAddress(address), Bytes(size), Offset(0), object->handle));
  if (cause != Cause::kOk) return cause;
  MutexLock lock(process.mutex);
  process.mappings.emplace(address, Region{size, object->context, false});
  return cause;
}

Cause Unmap(Address address, std::size_t size) {
  Process& process = Process::Get();
  Context* context = nullptr;
  std::shared_ptr<hal::Device> device;
  if (const Cause cause = process.Any(&context, &device); cause != Cause::kOk) return cause;
  if (!IsRange(address, size)) return Cause::kInvalidValue;
  std::vector<std::pair<Address, std::size_t>> whole;
  {
    MutexLock lock(process.mutex);
    const auto first = FindRegion(process.mappings, address);
    if (first != process.mappings.end() && first->first != address) return Cause::kInvalidValue;
    for (auto mapping = process.mappings.lower_bound(address);
         mapping != process.mappings.end() && mapping->first - address < size; ++mapping) {
      if (mapping->second.size > size - (mapping->first - address)) return Cause::kInvalidValue;
      whole.emplace_back(mapping->first, mapping->second.size);
    }
  }
  // One by one: there may be holes between them.
  for (const auto& [start, length] : whole) {
    const Cause cause = GiveBack(&Process::mappings, start, [&] {
      return JudgeValue(*context, device->Unmap(DeviceAddress(start), Bytes(length)));
    });
    if (cause != Cause::kOk) return cause;
  }
  return Cause::kOk;
}

Cause SetAccess(Address address, std::size_t size, std::span<const Grant> grants) {
  Process& process = Process::Get();
  Context* context = nullptr;
  std::shared_ptr<hal::Device> device;
  if (const Cause cause = process.Any(&context, &device); cause != Cause::kOk) return cause;
  std::vector<hal::AccessGrant> by_id;
  std::vector<std::shared_ptr<hal::Device>> open;  // while their ids are used
  for (const Grant& grant : grants) {
    Context* other = nullptr;
    Cause cause = process.FindDevice(grant.device, &other);
    if (cause == Cause::kOk) cause = process.Open(*other, &open.emplace_back());
    if (cause != Cause::kOk) return cause;
    by_id.push_back({open.back()->id(), grant.access});
  }
  return Process::Judge(*context, device->SetAccess(DeviceAddress(address), Bytes(size), by_id),
                        Cause::kInvalidDevice);
}

Cause GetAccess(hal::Access* access, Address address, int device) {
  Process& process = Process::Get();
  Context* context = nullptr;
  std::shared_ptr<hal::Device> opened;
  Cause cause = process.FindDevice(device, &context);
  if (cause == Cause::kOk) cause = process.Open(*context, &opened);
  if (cause != Cause::kOk) return cause;
  const auto found = opened->GetAccess(DeviceAddress(address), opened->id());
  if (!found.ok()) return JudgeValue(*context, found.status());
  *access = *found;
  return Cause::kOk;
}

// --- Host memory ---------------------------------------------------------------------------------

Cause AllocateHost(void** pointer, std::size_t size, bool write_combined) {
  Process& process = Process::Get();
  Context* context = nullptr;
  std::shared_ptr<hal::Device> device;
  if (const Cause cause = process.Current(&context, &device); cause != Cause::kOk) return cause;
  const auto made = device->AllocateHost(Bytes(size), {.write_combined = write_combined});
  if (!made.ok()) return JudgeUnsafe(*context, made.status());
  *pointer = *made;
  MutexLock lock(process.mutex);
  process.pinned.emplace(reinterpret_cast<Address>(*made), Region{size, context, true});
  return Cause::kOk;
}

Cause FreeHost(void* pointer) {
  if (pointer == nullptr) return Cause::kOk;
  Process& process = Process::Get();
  Context* context = nullptr;
  std::shared_ptr<hal::Device> device;
  if (const Cause cause = CurrentForUnsafe(&context, &device); cause != Cause::kOk) return cause;
  const auto address = reinterpret_cast<Address>(pointer);
  {
    MutexLock lock(process.mutex);
    const auto found = process.pinned.find(address);
    if (found == process.pinned.end() || !found->second.allocated) return Cause::kInvalidValue;
  }
  if (const Cause cause = WaitBeforeFree(*context, *device); cause != Cause::kOk) return cause;
  return GiveBack(&Process::pinned, address,
                  [&] { return JudgeUnsafe(*context, device->FreeHost(pointer)); });
}

Cause RegisterHost(void* pointer, std::size_t size) {
  Process& process = Process::Get();
  Context* context = nullptr;
  std::shared_ptr<hal::Device> device;
  if (const Cause cause = process.Current(&context, &device); cause != Cause::kOk) return cause;
  const auto address = reinterpret_cast<Address>(pointer);
  const Cause cause = JudgeUnsafe(*context, device->RegisterHost(pointer, Bytes(size)));
  MutexLock lock(process.mutex);
  if (cause == Cause::kOk) {
    process.pinned.emplace(address, Region{size, context, false});
  } else if (cause == Cause::kHostAlreadyRegistered) {
    // "Registered" is what libraries say of what was registered; memory that they allocated is just
    // a wrong value.
    const auto found = FindRegion(process.pinned, address);
    if (found != process.pinned.end() && found->second.allocated) return Cause::kInvalidValue;
  }
  return cause;
}

Cause UnregisterHost(void* pointer) {
  Process& process = Process::Get();
  Context* context = nullptr;
  std::shared_ptr<hal::Device> device;
  if (const Cause cause = CurrentForUnsafe(&context, &device); cause != Cause::kOk) return cause;
  const auto address = reinterpret_cast<Address>(pointer);
  {
    MutexLock lock(process.mutex);
    const auto found = process.pinned.find(address);
    if (found == process.pinned.end() || found->second.allocated) return Cause::kHostNotRegistered;
  }
  return GiveBack(&Process::pinned, address,
                  [&] { return JudgeUnsafe(*context, device->UnregisterHost(pointer)); });
}

Cause GetHostAddress(Address* address, const void* pointer) {
  Context* context = nullptr;
  std::shared_ptr<hal::Device> device;
  if (const Cause cause = Process::Get().Current(&context, &device); cause != Cause::kOk) {
    return cause;
  }
  const auto found = device->GetHostAddress(pointer);
  if (!found.ok()) return JudgeValue(*context, found.status());
  *address = found->value();
  return Cause::kOk;
}

MemoryKind KindOf(Address address) {
  Process& process = Process::Get();
  MutexLock lock(process.mutex);
  if (FindRegion(process.pinned, address) != process.pinned.end()) return MemoryKind::kPinned;
  if (FindRegion(process.plain, address) != process.plain.end() ||
      FindRegion(process.reservations, address) != process.reservations.end()) {
    return MemoryKind::kDevice;
  }
  return MemoryKind::kPageable;
}

// --- Peers ---------------------------------------------------------------------------------------

Cause CanAccessPeer(bool* can, int device, int peer) {
  Process& process = Process::Get();
  Context* contexts[2] = {};
  std::shared_ptr<hal::Device> devices[2];
  const int ordinals[2] = {device, peer};
  for (int i = 0; i < 2; ++i) {
    Cause cause = process.FindDevice(ordinals[i], &contexts[i]);
    if (cause == Cause::kOk) cause = process.Open(*contexts[i], &devices[i]);
    if (cause != Cause::kOk) return cause;
  }
  *can = false;
  if (device == peer) return Cause::kOk;
  const auto found = devices[0]->CanAccessPeer(devices[1]->id());
  if (!found.ok()) return JudgeValue(*contexts[0], found.status());
  *can = *found;
  return Cause::kOk;
}

namespace {

// The current context and another one, with their devices.
struct Pair {
  Context* current = nullptr;
  Context* peer = nullptr;
  std::shared_ptr<hal::Device> device;
  std::shared_ptr<hal::Device> other;
};

Cause FindPair(void* context, Pair* pair) {
  Process& process = Process::Get();
  Cause cause = process.Current(&pair->current, &pair->device);
  if (cause == Cause::kOk) cause = process.FindContext(context, &pair->peer);
  if (cause == Cause::kOk) cause = process.Open(*pair->peer, &pair->other);
  return cause;
}

}  // namespace

Cause EnablePeer(void* context) {
  Process& process = Process::Get();
  Pair pair;
  Cause cause = FindPair(context, &pair);
  if (cause != Cause::kOk) return cause;
  auto& [current, peer, device, other] = pair;
  if (peer == current) return Cause::kInvalidDevice;
  {
    MutexLock lock(process.mutex);
    if (peer->retains == 0) return Cause::kInvalidContext;
    if (current->peers.contains(peer->ordinal)) return Cause::kPeerAlreadyEnabled;
  }
  cause = Process::Judge(*current, device->EnablePeerAccess(other->id()), Cause::kPeerUnsupported);
  if (cause != Cause::kOk) return cause;
  MutexLock lock(process.mutex);
  return current->peers.insert(peer->ordinal).second ? Cause::kOk : Cause::kPeerAlreadyEnabled;
}

Cause DisablePeer(void* context) {
  Process& process = Process::Get();
  Pair pair;
  Cause cause = FindPair(context, &pair);
  if (cause != Cause::kOk) return cause;
  auto& [current, peer, device, other] = pair;
  {
    MutexLock lock(process.mutex);
    if (!current->peers.contains(peer->ordinal)) return Cause::kPeerNotEnabled;
  }
  cause = JudgeValue(*current, device->DisablePeerAccess(other->id()));
  if (cause != Cause::kOk) return cause;
  MutexLock lock(process.mutex);
  current->peers.erase(peer->ordinal);
  return cause;
}

}  // namespace keel::standin
