// The HIP runtime's memory, streams, events, commands and kernels in VendorApi's shape.

#include "drivers/hip/runtime.h"

namespace keel::hip {
namespace {

using vendor::VendorApi;

// --- Memory --------------------------------------------------------------------------------------

Code MemoryInfo(std::size_t* free, std::size_t* total) {
  return Settle(runtime.entries.memory_info(free, total));
}

Code Allocate(std::uint64_t* address, std::size_t size) {
  void* pointer = nullptr;
  const Code code = Settle(runtime.entries.allocate(&pointer, size));
  *address = reinterpret_cast<std::uint64_t>(pointer);
  return code;
}

Code Free(std::uint64_t address) { return Settle(runtime.entries.free(PointerOf(address))); }

abi::MemoryHandle HandleOf(std::uint64_t handle) {
  return reinterpret_cast<abi::MemoryHandle>(handle);
}

Code CreateMemory(std::uint64_t* handle, std::size_t size, int device, bool exportable, bool rdma) {
  abi::AllocationProp prop;
  prop.location.id = device;
  if (exportable) prop.requested_handle_type = abi::kHandlePosixDescriptor;
  if (rdma) prop.flags.gpu_direct_rdma_capable = 1;
  abi::MemoryHandle created = nullptr;
  const Code code = Settle(runtime.entries.create(&created, size, &prop, 0));
  *handle = reinterpret_cast<std::uint64_t>(created);
  return code;
}

Code ReleaseMemory(std::uint64_t handle) {
  return Settle(runtime.entries.release(HandleOf(handle)));
}

Code ExportMemory(int* descriptor, std::uint64_t handle) {
  return Settle(
      runtime.entries.export_handle(descriptor, HandleOf(handle), abi::kHandlePosixDescriptor, 0));
}

Code ImportMemory(std::uint64_t* handle, int descriptor) {
  // By value since 7.1, by its address before.
  void* const shareable = runtime.version >= abi::kVersion7_1
                              ? reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor))
                              : static_cast<void*>(&descriptor);
  abi::MemoryHandle imported = nullptr;
  const Code code =
      Settle(runtime.entries.import_handle(&imported, shareable, abi::kHandlePosixDescriptor));
  *handle = reinterpret_cast<std::uint64_t>(imported);
  return code;
}

Code Reserve(std::uint64_t* address, std::size_t size, std::size_t alignment, std::uint64_t hint,
             unsigned long long flags) {
  void* pointer = nullptr;
  const Code code =
      Settle(runtime.entries.reserve(&pointer, size, alignment, PointerOf(hint), flags));
  *address = reinterpret_cast<std::uint64_t>(pointer);
  return code;
}

Code FreeAddress(std::uint64_t address, std::size_t size) {
  return Settle(runtime.entries.address_free(PointerOf(address), size));
}

Code Map(std::uint64_t address, std::size_t size, std::size_t offset, std::uint64_t handle,
         unsigned long long flags) {
  return Settle(runtime.entries.map(PointerOf(address), size, offset, HandleOf(handle), flags));
}

Code Unmap(std::uint64_t address, std::size_t size) {
  return Settle(runtime.entries.unmap(PointerOf(address), size));
}

Code SetAccess(std::uint64_t address, std::size_t size, const abi::AccessDesc* descs,
               std::size_t count) {
  return Settle(runtime.entries.set_access(PointerOf(address), size, descs, count));
}

Code GetAccess(hal::Access* access, std::uint64_t address, int device) {
  abi::Location location;
  location.id = device;
  unsigned long long flags = 0;
  const Code code = Settle(runtime.entries.get_access(&flags, &location, PointerOf(address)));
  *access = static_cast<hal::Access>(flags);
  return code;
}

Code AllocateHost(void** pointer, std::size_t size, bool write_combined) {
  const unsigned flags =
      abi::kHostPortable | abi::kHostMapped | (write_combined ? abi::kHostWriteCombined : 0);
  return Settle(runtime.entries.host_allocate(pointer, size, flags));
}

Code FreeHost(void* pointer) { return Settle(runtime.entries.host_free(pointer)); }

Code RegisterHost(void* pointer, std::size_t size) {
  return Settle(
      runtime.entries.host_register(pointer, size, abi::kHostPortable | abi::kHostMapped));
}

Code UnregisterHost(void* pointer) { return Settle(runtime.entries.host_unregister(pointer)); }

Code HostAddress(std::uint64_t* address, void* pointer, unsigned flags) {
  void* device = nullptr;
  const Code code = Settle(runtime.entries.host_address(&device, pointer, flags));
  *address = reinterpret_cast<std::uint64_t>(device);
  return code;
}

bool IsPinned(const void* pointer) {
  int type = -1;
  const int host =
      runtime.version >= abi::kVersion6_0 ? abi::kMemoryTypeHost : abi::kMemoryTypeHostBefore6;
  return Settle(runtime.entries.pointer_attribute(&type, abi::kPointerAttributeMemoryType,
                                                  const_cast<void*>(pointer))) == kSuccess &&
         type == host;
}

Code CanAccessPeer(int* can, int device, int peer) {
  return Settle(runtime.entries.can_access_peer(can, device, peer));
}

Code EnablePeer(void* context, unsigned flags) {
  return Settle(runtime.entries.enable_peer(DeviceOf(context), flags));
}

Code DisablePeer(void* context) { return Settle(runtime.entries.disable_peer(DeviceOf(context))); }

// --- Streams and events --------------------------------------------------------------------------

abi::Event EventOf(void* event) { return static_cast<abi::Event>(event); }

Code CreateStream(void** stream, int priority) {
  abi::Stream created = nullptr;
  const Code code =
      Settle(runtime.entries.stream_create(&created, abi::kStreamNonBlocking, priority));
  *stream = created;
  return code;
}

Code DestroyStream(void* stream) {
  return Settle(runtime.entries.stream_destroy(StreamOf(stream)));
}

Code StreamContext(void* stream, void** context) {
  if (runtime.entries.stream_device == nullptr) return abi::kNotSupported;
  int device = 0;
  const Code code = Settle(runtime.entries.stream_device(StreamOf(stream), &device));
  *context = ContextOf(device);
  return code;
}

Code QueryStream(void* stream) { return Settle(runtime.entries.stream_query(StreamOf(stream))); }

Code CreateEvent(void** event, bool timing) {
  abi::Event created = nullptr;
  const Code code =
      Settle(runtime.entries.event_create(&created, timing ? 0 : abi::kEventDisableTiming));
  *event = created;
  return code;
}

Code DestroyEvent(void* event) { return Settle(runtime.entries.event_destroy(EventOf(event))); }

Code RecordEvent(void* event, void* stream) {
  return Settle(runtime.entries.event_record(EventOf(event), StreamOf(stream)));
}

Code QueryEvent(void* event) { return Settle(runtime.entries.event_query(EventOf(event))); }

Code Elapsed(float* milliseconds, void* start, void* end) {
  return Settle(runtime.entries.event_elapsed(milliseconds, EventOf(start), EventOf(end)));
}

Code WaitEvent(void* stream, void* event, unsigned flags) {
  return Settle(runtime.entries.stream_wait_event(StreamOf(stream), EventOf(event), flags));
}

// --- Commands ------------------------------------------------------------------------------------

Code CopyIn(std::uint64_t to, const void* from, std::size_t size, void* stream) {
  return Settle(
      runtime.entries.copy_in(PointerOf(to), const_cast<void*>(from), size, StreamOf(stream)));
}

Code CopyOut(void* to, std::uint64_t from, std::size_t size, void* stream) {
  return Settle(runtime.entries.copy_out(to, PointerOf(from), size, StreamOf(stream)));
}

Code CopyWithin(std::uint64_t to, std::uint64_t from, std::size_t size, void* stream) {
  return Settle(
      runtime.entries.copy_within(PointerOf(to), PointerOf(from), size, StreamOf(stream)));
}

Code CopyHost(std::uint64_t to, std::uint64_t from, std::size_t size, void* stream) {
  return Settle(runtime.entries.copy(PointerOf(to), PointerOf(from), size, abi::kCopyHostToHost,
                                     StreamOf(stream)));
}

Code CopyPeer(std::uint64_t to, void* to_context, std::uint64_t from, void* from_context,
              std::size_t size, void* stream) {
  return Settle(runtime.entries.copy_peer(PointerOf(to), DeviceOf(to_context), PointerOf(from),
                                          DeviceOf(from_context), size, StreamOf(stream)));
}

Code Fill8(std::uint64_t to, unsigned char value, std::size_t count, void* stream) {
  return Settle(runtime.entries.fill8(PointerOf(to), value, count, StreamOf(stream)));
}

Code Fill16(std::uint64_t to, unsigned short value, std::size_t count, void* stream) {
  return Settle(runtime.entries.fill16(PointerOf(to), value, count, StreamOf(stream)));
}

Code Fill32(std::uint64_t to, unsigned value, std::size_t count, void* stream) {
  return Settle(
      runtime.entries.fill32(PointerOf(to), static_cast<int>(value), count, StreamOf(stream)));
}

Code WriteValue(void* stream, std::uint64_t to, std::uint64_t value, unsigned flags) {
  return Settle(runtime.entries.write_value(StreamOf(stream), PointerOf(to), value, flags));
}

Code WaitValue(void* stream, std::uint64_t from, std::uint64_t value,
               hal::WaitCondition condition) {
  return Settle(runtime.entries.wait_value(StreamOf(stream), PointerOf(from), value,
                                           WaitFlags(condition), ~std::uint64_t{0}));
}

Code CallHost(void* stream, hal::HostFunction function, void* data) {
  return Settle(runtime.entries.call_host(StreamOf(stream), function, data));
}

Code LoadModule(void** module, const void* image) {
  abi::Module loaded = nullptr;
  const Code code = Settle(runtime.entries.module_load(&loaded, image));
  *module = loaded;
  return code;
}

Code UnloadModule(void* module) {
  return Settle(runtime.entries.module_unload(static_cast<abi::Module>(module)));
}

Code FindKernel(void** kernel, void* module, const char* name) {
  abi::Function function = nullptr;
  const Code code =
      Settle(runtime.entries.module_kernel(&function, static_cast<abi::Module>(module), name));
  *kernel = function;
  return code;
}

Code Launch(void* kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
            unsigned block_y, unsigned block_z, unsigned shared, void* stream, void** arguments,
            void** extra) {
  return Settle(runtime.entries.launch(static_cast<abi::Function>(kernel), grid_x, grid_y, grid_z,
                                       block_x, block_y, block_z, shared, StreamOf(stream),
                                       arguments, extra));
}

}  // namespace

unsigned WaitFlags(hal::WaitCondition condition) {
  switch (condition) {
    case hal::WaitCondition::kGreaterOrEqual:
      return abi::kWaitGeq;
    case hal::WaitCondition::kEqual:
      return abi::kWaitEq;
    case hal::WaitCondition::kAnd:
      return abi::kWaitAnd;
  }
  return abi::kWaitGeq;
}

void FillCalls(VendorApi& api) {
  api.memory_info = MemoryInfo;
  api.memory_allocate = Allocate;
  api.memory_free = Free;
  api.memory_create = CreateMemory;
  api.memory_release = ReleaseMemory;
  api.memory_export = ExportMemory;
  api.memory_import = ImportMemory;
  api.address_reserve = Reserve;
  api.address_free = FreeAddress;
  api.map = Map;
  api.unmap = Unmap;
  api.set_access = SetAccess;
  api.get_access = GetAccess;
  api.host_allocate = AllocateHost;
  api.host_free = FreeHost;
  api.host_register = RegisterHost;
  api.host_unregister = UnregisterHost;
  api.host_address = HostAddress;
  api.is_pinned = IsPinned;
  api.can_access_peer = CanAccessPeer;
  api.enable_peer = EnablePeer;
  api.disable_peer = DisablePeer;
  api.stream_create = CreateStream;
  api.stream_destroy = DestroyStream;
  api.stream_context = StreamContext;
  api.stream_query = QueryStream;
  api.event_create = CreateEvent;
  api.event_destroy = DestroyEvent;
  api.event_record = RecordEvent;
  api.event_query = QueryEvent;
  api.event_elapsed = Elapsed;
  api.stream_wait_event = WaitEvent;
  api.copy_in = CopyIn;
  api.copy_out = CopyOut;
  api.copy_within = CopyWithin;
  api.copy_host = CopyHost;
  api.copy_peer = CopyPeer;
  api.fill8 = Fill8;
  api.fill16 = Fill16;
  api.fill32 = Fill32;
  api.write_value = WriteValue;
  api.wait_value = WaitValue;
  api.call_host = CallHost;
  api.module_load = LoadModule;
  api.module_unload = UnloadModule;
  api.module_kernel = FindKernel;
  api.launch = Launch;
}

}  // namespace keel::hip
