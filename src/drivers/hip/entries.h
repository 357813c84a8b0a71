// The entry points of the HIP runtime that Keel calls, as HIP declares them. One that the library
// does not have is null.
#pragma once

#include <cstddef>
#include <cstdint>

#include "drivers/hip/abi.h"

namespace keel::hip {

struct Entries {
  using Result = abi::Result;

  // Devices. All but those with a device among their arguments are about the current one.
  Result (*init)(unsigned flags) = nullptr;
  Result (*runtime_version)(int* version) = nullptr;
  const char* (*error_name)(Result code) = nullptr;
  const char* (*error_text)(Result code) = nullptr;
  Result (*last_error)() = nullptr;
  Result (*device_count)(int* count) = nullptr;
  Result (*device_get)(abi::Device* device, int ordinal) = nullptr;
  Result (*device_name)(char* name, int size, abi::Device device) = nullptr;
  Result (*device_uuid)(abi::Uuid* uuid, abi::Device device) = nullptr;
  Result (*device_bus)(char* text, int size, int device) = nullptr;
  Result (*device_memory)(std::size_t* bytes, abi::Device device) = nullptr;
  Result (*device_attribute)(int* value, int attribute, int device) = nullptr;
  Result (*properties)(abi::Properties* properties, int device) = nullptr;
  Result (*properties_before_6)(abi::PropertiesBefore6* properties, int device) = nullptr;
  Result (*get_device)(int* device) = nullptr;
  Result (*set_device)(int device) = nullptr;
  Result (*priority_range)(int* least, int* greatest) = nullptr;

  // Memory.
  Result (*memory_info)(std::size_t* free, std::size_t* total) = nullptr;
  Result (*allocate)(void** address, std::size_t size) = nullptr;
  Result (*free)(void* address) = nullptr;
  Result (*granularity)(std::size_t* value, const abi::AllocationProp* prop, int option) = nullptr;
  Result (*create)(abi::MemoryHandle* handle, std::size_t size, const abi::AllocationProp* prop,
                   unsigned long long flags) = nullptr;
  Result (*release)(abi::MemoryHandle handle) = nullptr;
  Result (*export_handle)(void* shareable, abi::MemoryHandle handle, int type,
                          unsigned long long flags) = nullptr;
  Result (*import_handle)(abi::MemoryHandle* handle, void* shareable, int type) = nullptr;
  Result (*reserve)(void** address, std::size_t size, std::size_t alignment, void* hint,
                    unsigned long long flags) = nullptr;
  Result (*address_free)(void* address, std::size_t size) = nullptr;
  Result (*map)(void* address, std::size_t size, std::size_t offset, abi::MemoryHandle handle,
                unsigned long long flags) = nullptr;
  Result (*unmap)(void* address, std::size_t size) = nullptr;
  Result (*set_access)(void* address, std::size_t size, const abi::AccessDesc* descs,
                       std::size_t count) = nullptr;
  Result (*get_access)(unsigned long long* flags, const abi::Location* location,
                       void* address) = nullptr;
  Result (*host_allocate)(void** pointer, std::size_t size, unsigned flags) = nullptr;
  Result (*host_free)(void* pointer) = nullptr;
  Result (*host_register)(void* pointer, std::size_t size, unsigned flags) = nullptr;
  Result (*host_unregister)(void* pointer) = nullptr;
  Result (*host_address)(void** address, void* pointer, unsigned flags) = nullptr;
  Result (*pointer_attribute)(void* value, int attribute, void* pointer) = nullptr;
  Result (*can_access_peer)(int* can, int device, int peer) = nullptr;
  Result (*enable_peer)(int peer, unsigned flags) = nullptr;
  Result (*disable_peer)(int peer) = nullptr;

  // Streams and events.
  Result (*stream_create)(abi::Stream* stream, unsigned flags, int priority) = nullptr;
  Result (*stream_destroy)(abi::Stream stream) = nullptr;
  Result (*stream_device)(abi::Stream stream, abi::Device* device) = nullptr;
  Result (*stream_query)(abi::Stream stream) = nullptr;
  Result (*event_create)(abi::Event* event, unsigned flags) = nullptr;
  Result (*event_destroy)(abi::Event event) = nullptr;
  Result (*event_record)(abi::Event event, abi::Stream stream) = nullptr;
  Result (*event_query)(abi::Event event) = nullptr;
  Result (*event_elapsed)(float* milliseconds, abi::Event start, abi::Event end) = nullptr;
  Result (*stream_wait_event)(abi::Stream stream, abi::Event event, unsigned flags) = nullptr;

  // Commands.
  Result (*copy_in)(void* to, void* from, std::size_t size, abi::Stream stream) = nullptr;
  Result (*copy_out)(void* to, void* from, std::size_t size, abi::Stream stream) = nullptr;
  Result (*copy_within)(void* to, void* from, std::size_t size, abi::Stream stream) = nullptr;
  Result (*copy)(void* to, const void* from, std::size_t size, int kind,
                 abi::Stream stream) = nullptr;
  Result (*copy_peer)(void* to, int to_device, const void* from, int from_device, std::size_t size,
                      abi::Stream stream) = nullptr;
  Result (*fill8)(void* to, unsigned char value, std::size_t count, abi::Stream stream) = nullptr;
  Result (*fill16)(void* to, unsigned short value, std::size_t count, abi::Stream stream) = nullptr;
  Result (*fill32)(void* to, int value, std::size_t count, abi::Stream stream) = nullptr;
  Result (*write_value)(abi::Stream stream, void* to, std::uint64_t value,
                        unsigned flags) = nullptr;
  Result (*wait_value)(abi::Stream stream, void* from, std::uint64_t value, unsigned flags,
                       std::uint64_t mask) = nullptr;
  Result (*call_host)(abi::Stream stream, abi::HostFunction function, void* data) = nullptr;
  Result (*module_load)(abi::Module* module, const void* image) = nullptr;
  Result (*module_unload)(abi::Module module) = nullptr;
  Result (*module_kernel)(abi::Function* function, abi::Module module, const char* name) = nullptr;
  Result (*launch)(abi::Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                   abi::Stream stream, void** arguments, void** extra) = nullptr;

  // Captures and graphs.
  Result (*exchange_capture_mode)(int* mode) = nullptr;
  Result (*capture_begin)(abi::Stream stream, int mode) = nullptr;
  Result (*capture_end)(abi::Stream stream, abi::Graph* graph) = nullptr;
  Result (*capture_info)(abi::Stream stream, int* status, unsigned long long* id, abi::Graph* graph,
                         const abi::GraphNode** dependencies, std::size_t* count) = nullptr;
  Result (*graph_create)(abi::Graph* graph, unsigned flags) = nullptr;
  Result (*graph_destroy)(abi::Graph graph) = nullptr;
  Result (*graph_nodes)(abi::Graph graph, abi::GraphNode* nodes, std::size_t* count) = nullptr;
  Result (*node_dependencies)(abi::GraphNode node, abi::GraphNode* nodes,
                              std::size_t* count) = nullptr;
  Result (*node_type)(abi::GraphNode node, int* type) = nullptr;
  Result (*instantiate)(abi::GraphExec* exec, abi::Graph graph, abi::GraphNode* node, char* log,
                        std::size_t size) = nullptr;
  Result (*exec_destroy)(abi::GraphExec exec) = nullptr;
  Result (*exec_update)(abi::GraphExec exec, abi::Graph graph, abi::GraphNode* node,
                        int* result) = nullptr;
  Result (*graph_launch)(abi::GraphExec exec, abi::Stream stream) = nullptr;
  Result (*add_kernel)(abi::GraphNode* node, abi::Graph graph, const abi::GraphNode* dependencies,
                       std::size_t count, const abi::KernelNodeParams* params) = nullptr;
  Result (*add_copy)(abi::GraphNode* node, abi::Graph graph, const abi::GraphNode* dependencies,
                     std::size_t count, void* to, const void* from, std::size_t size,
                     int kind) = nullptr;
  Result (*add_fill)(abi::GraphNode* node, abi::Graph graph, const abi::GraphNode* dependencies,
                     std::size_t count, const abi::MemsetParams* params) = nullptr;
  Result (*add_host)(abi::GraphNode* node, abi::Graph graph, const abi::GraphNode* dependencies,
                     std::size_t count, const abi::HostNodeParams* params) = nullptr;
  Result (*add_child)(abi::GraphNode* node, abi::Graph graph, const abi::GraphNode* dependencies,
                      std::size_t count, abi::Graph child) = nullptr;
  Result (*add_empty)(abi::GraphNode* node, abi::Graph graph, const abi::GraphNode* dependencies,
                      std::size_t count) = nullptr;
  Result (*add_mem_op)(abi::GraphNode* node, abi::Graph graph, const abi::GraphNode* dependencies,
                       std::size_t count, const abi::BatchMemOpNodeParams* params) = nullptr;
  Result (*get_kernel)(abi::GraphNode node, abi::KernelNodeParams* params) = nullptr;
  Result (*get_mem_op)(abi::GraphNode node, abi::BatchMemOpNodeParams* params) = nullptr;
  Result (*set_kernel)(abi::GraphExec exec, abi::GraphNode node,
                       const abi::KernelNodeParams* params) = nullptr;
  Result (*set_copy)(abi::GraphExec exec, abi::GraphNode node, void* to, const void* from,
                     std::size_t size, int kind) = nullptr;
  Result (*set_fill)(abi::GraphExec exec, abi::GraphNode node,
                     const abi::MemsetParams* params) = nullptr;
  Result (*set_host)(abi::GraphExec exec, abi::GraphNode node,
                     const abi::HostNodeParams* params) = nullptr;
  Result (*set_child)(abi::GraphExec exec, abi::GraphNode node, abi::Graph child) = nullptr;
  Result (*set_mem_op)(abi::GraphExec exec, abi::GraphNode node,
                       const abi::BatchMemOpNodeParams* params) = nullptr;
};

}  // namespace keel::hip
