// VendorApi: the entry points of a vendor's driver library, in one shape.
//
// The libraries that Keel drives have the same primitives with the same meaning; they differ in
// names, in how their structures are laid out, and in what they cannot do. A vendor's folder fills
// this table: where an entry point has exactly this shape (all handles are pointers or 64-bit
// integers) its address goes in as it is, and where structures are involved a small function of the
// vendor's translates. VendorDevice (vendor_device.h) is then one implementation for all of them.
//
// An entry that the library does not have is null; the capability that needs it is then false.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "drivers/shared/context_abi.h"
#include "keel/base/bytes.h"
#include "keel/base/status.h"
#include "keel/hal/capabilities.h"
#include "keel/hal/command.h"

namespace keel::vendor {

using Code = int;
inline constexpr Code kSuccess = 0;

// What an error means to the device layer.
struct Verdict {
  StatusCode code = StatusCode::kInternal;
  bool device_lost = false;  // nothing works on this device any more
};

// One node of a graph, or new parameters for one, with everything resolved to the library's terms.
struct NodeSpec {
  const hal::Command* command = nullptr;  // what kind, and the plain values
  hal::HostCall host_call;                // of a host call: what the library is to call instead
  void** arguments = nullptr;             // of a kernel: a pointer to each value
  void* context = nullptr;                // of the device that the graph belongs to
  bool host_destination = false;          // of a copy: host memory, not a device address
  bool host_source = false;
};

struct UpdateResult {
  bool updated = false;
  std::string reason;
  void* node = nullptr;
};

struct VendorApi {
  // --- The library ---------------------------------------------------------------------------
  std::string_view driver;                    // its name in KEEL_DRIVER
  Code not_ready = 0;                         // a query's "still running"
  Code update_refused = 0;                    // an update's "cannot"
  Code already_enabled = 0, not_enabled = 0;  // of peer access
  Verdict (*judge)(Code code) = nullptr;
  Code (*error_name)(Code code, const char** name) = nullptr;
  Code (*error_text)(Code code, const char** text) = nullptr;

  // --- Devices and contexts --------------------------------------------------------------------
  Code (*init)(unsigned flags) = nullptr;
  Code (*device_count)(int* count) = nullptr;
  Code (*device_get)(int* device, int ordinal) = nullptr;
  // Name, identity, architecture, memory, node: all but driver and ordinal.
  Code (*describe)(int device, hal::DeviceInfo* info) = nullptr;
  Code (*capabilities)(int device, hal::Capabilities* capabilities) = nullptr;
  Code (*context_retain)(void** context, int device) = nullptr;
  Code (*context_release)(int device) = nullptr;
  Code (*current_get)(void** context) = nullptr;
  Code (*current_set)(void* context) = nullptr;
  Code (*priority_range)(int* least, int* greatest) = nullptr;

  // --- Memory ----------------------------------------------------------------------------------
  Code (*memory_info)(std::size_t* free, std::size_t* total) = nullptr;
  Code (*memory_allocate)(std::uint64_t* address, std::size_t size) = nullptr;
  Code (*memory_free)(std::uint64_t address) = nullptr;
  Code (*memory_create)(std::uint64_t* handle, std::size_t size, int device, bool exportable,
                        bool rdma) = nullptr;
  Code (*memory_release)(std::uint64_t handle) = nullptr;
  Code (*memory_export)(int* descriptor, std::uint64_t handle) = nullptr;
  Code (*memory_import)(std::uint64_t* handle, int descriptor) = nullptr;
  Code (*address_reserve)(std::uint64_t* address, std::size_t size, std::size_t alignment,
                          std::uint64_t hint, unsigned long long flags) = nullptr;
  Code (*address_free)(std::uint64_t address, std::size_t size) = nullptr;
  Code (*map)(std::uint64_t address, std::size_t size, std::size_t offset, std::uint64_t handle,
              unsigned long long flags) = nullptr;
  Code (*unmap)(std::uint64_t address, std::size_t size) = nullptr;
  // Flags have the numbers of hal::Access.
  Code (*set_access)(std::uint64_t address, std::size_t size, const abi::AccessDesc* descs,
                     std::size_t count) = nullptr;
  Code (*get_access)(hal::Access* access, std::uint64_t address, int device) = nullptr;
  Code (*host_allocate)(void** pointer, std::size_t size, bool write_combined) = nullptr;
  Code (*host_free)(void* pointer) = nullptr;
  Code (*host_register)(void* pointer, std::size_t size) = nullptr;
  Code (*host_unregister)(void* pointer) = nullptr;
  Code (*host_address)(std::uint64_t* address, void* pointer, unsigned flags) = nullptr;
  // Whether a host pointer is pinned.
  bool (*is_pinned)(const void* pointer) = nullptr;
  Code (*can_access_peer)(int* can, int device, int peer) = nullptr;
  Code (*enable_peer)(void* context, unsigned flags) = nullptr;
  Code (*disable_peer)(void* context) = nullptr;

  // --- Streams and events ------------------------------------------------------------------------
  // Calls on a stream that was made work whatever is current. (Those on a default stream never do;
  // nor do copies and fills, which look addresses up.)
  bool streams_know_their_context = false;
  std::uint64_t legacy_stream = 0, per_thread_stream = 0;
  Code (*stream_create)(void** stream, int priority) = nullptr;
  Code (*stream_destroy)(void* stream) = nullptr;
  Code (*stream_context)(void* stream, void** context) = nullptr;
  Code (*stream_query)(void* stream) = nullptr;
  Code (*event_create)(void** event, bool timing) = nullptr;
  Code (*event_destroy)(void* event) = nullptr;
  Code (*event_record)(void* event, void* stream) = nullptr;
  Code (*event_query)(void* event) = nullptr;
  Code (*event_elapsed)(float* milliseconds, void* start, void* end) = nullptr;
  Code (*stream_wait_event)(void* stream, void* event, unsigned flags) = nullptr;

  // --- Commands ----------------------------------------------------------------------------------
  // By what each side is: an address that is taken for host memory by mistake would be read.
  Code (*copy_in)(std::uint64_t to, const void* from, std::size_t size, void* stream) = nullptr;
  Code (*copy_out)(void* to, std::uint64_t from, std::size_t size, void* stream) = nullptr;
  Code (*copy_within)(std::uint64_t to, std::uint64_t from, std::size_t size,
                      void* stream) = nullptr;
  Code (*copy_host)(std::uint64_t to, std::uint64_t from, std::size_t size, void* stream) = nullptr;
  Code (*copy_peer)(std::uint64_t to, void* to_context, std::uint64_t from, void* from_context,
                    std::size_t size, void* stream) = nullptr;
  Code (*fill8)(std::uint64_t to, unsigned char value, std::size_t count, void* stream) = nullptr;
  Code (*fill16)(std::uint64_t to, unsigned short value, std::size_t count, void* stream) = nullptr;
  Code (*fill32)(std::uint64_t to, unsigned value, std::size_t count, void* stream) = nullptr;
  Code (*write_value)(void* stream, std::uint64_t to, std::uint64_t value,
                      unsigned flags) = nullptr;
  Code (*wait_value)(void* stream, std::uint64_t from, std::uint64_t value,
                     hal::WaitCondition condition) = nullptr;
  Code (*call_host)(void* stream, hal::HostFunction function, void* data) = nullptr;
  Code (*module_load)(void** module, const void* image) = nullptr;
  Code (*module_unload)(void* module) = nullptr;
  Code (*module_kernel)(void** kernel, void* module, const char* name) = nullptr;
  Code (*launch)(void* kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                 unsigned block_y, unsigned block_z, unsigned shared, void* stream,
                 void** arguments, void** extra) = nullptr;

  // --- Capture and graphs ------------------------------------------------------------------------
  // Modes have the numbers of hal::CaptureMode.
  Code (*exchange_capture_mode)(int* mode) = nullptr;
  Code (*capture_begin)(void* stream, int mode) = nullptr;
  Code (*capture_end)(void* stream, void** graph) = nullptr;
  // States have the numbers of hal::CaptureState. Dependencies live until the next call on the
  // stream.
  Code (*capture_info)(void* stream, int* state, void* const** dependencies,
                       std::size_t* count) = nullptr;
  Code (*graph_create)(void** graph, unsigned flags) = nullptr;
  Code (*graph_destroy)(void* graph) = nullptr;
  Code (*add_node)(void** node, void* graph, void* const* dependencies, std::size_t count,
                   const NodeSpec& spec) = nullptr;
  Code (*graph_nodes)(void* graph, void** nodes, std::size_t* count) = nullptr;
  Code (*node_kind)(void* node, std::size_t* command_index) = nullptr;
  // The kernel of a kernel node; null where it has none that the library can name, and on failure.
  Code (*node_kernel)(void* node, void** kernel) = nullptr;
  // Of another kind of node it is refused. Where it is not, only kernel nodes may be asked.
  bool kernels_tell_kind = false;
  Code (*node_dependencies)(void* node, void** dependencies, std::size_t* count) = nullptr;
  Code (*instantiate)(void** exec, void* graph, unsigned long long flags) = nullptr;
  // Hands what was instantiated to the device before the first launch does; null: there is no such
  // call, or nothing is gained by it.
  Code (*upload)(void* exec, void* stream) = nullptr;
  Code (*exec_destroy)(void* exec) = nullptr;
  Code (*exec_update)(void* exec, void* graph, UpdateResult* result) = nullptr;
  Code (*set_node)(void* exec, void* node, const NodeSpec& spec) = nullptr;
  Code (*graph_launch)(void* exec, void* stream) = nullptr;

  // What Device::StandardKernels returns: an image in the library's format, with a zero byte behind
  // it.
  std::string_view standard_kernels;
};

}  // namespace keel::vendor
