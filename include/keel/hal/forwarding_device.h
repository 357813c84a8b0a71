// ForwardingDevice: a device that hands every call on to another one. What wraps a device and
// changes a few of its calls derives from this.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "keel/hal/device.h"

namespace keel::hal {

class KEEL_EXPORT ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  Device& Innermost() override { return device_->Innermost(); }

  const DeviceInfo& info() const override { return device_->info(); }
  const Capabilities& capabilities() const override { return device_->capabilities(); }
  DeviceId id() const override { return device_->id(); }
  Status Health() const override { return device_->Health(); }
  Result<ModuleSource> StandardKernels() const override { return device_->StandardKernels(); }
  Result<MemoryInfo> GetMemoryInfo() override { return device_->GetMemoryInfo(); }
  Result<DeviceAddress> AllocatePlain(Bytes size) override { return device_->AllocatePlain(size); }
  Status FreePlain(DeviceAddress address) override { return device_->FreePlain(address); }
  Result<MemoryHandle> CreateMemory(Bytes size, const MemoryOptions& options) override {
    return device_->CreateMemory(size, options);
  }
  Status ReleaseMemory(MemoryHandle memory) override { return device_->ReleaseMemory(memory); }
  Result<UniqueFd> ExportMemory(MemoryHandle memory) override {
    return device_->ExportMemory(memory);
  }
  Result<MemoryHandle> ImportMemory(int descriptor, Bytes size) override {
    return device_->ImportMemory(descriptor, size);
  }
  Result<DeviceAddress> ReserveAddress(Bytes size, Bytes alignment, DeviceAddress hint) override {
    return device_->ReserveAddress(size, alignment, hint);
  }
  Status FreeAddress(DeviceAddress address, Bytes size) override {
    return device_->FreeAddress(address, size);
  }
  Status Map(DeviceAddress address, Bytes size, Offset offset, MemoryHandle memory) override {
    return device_->Map(address, size, offset, memory);
  }
  Status Unmap(DeviceAddress address, Bytes size) override { return device_->Unmap(address, size); }
  Status SetAccess(DeviceAddress address, Bytes size,
                   std::span<const AccessGrant> grants) override {
    return device_->SetAccess(address, size, grants);
  }
  Result<Access> GetAccess(DeviceAddress address, DeviceId device) override {
    return device_->GetAccess(address, device);
  }
  Result<void*> AllocateHost(Bytes size, const HostOptions& options) override {
    return device_->AllocateHost(size, options);
  }
  Status FreeHost(void* pointer) override { return device_->FreeHost(pointer); }
  Status RegisterHost(void* pointer, Bytes size) override {
    return device_->RegisterHost(pointer, size);
  }
  Status UnregisterHost(void* pointer) override { return device_->UnregisterHost(pointer); }
  Result<DeviceAddress> GetHostAddress(const void* pointer) override {
    return device_->GetHostAddress(pointer);
  }
  Result<bool> CanAccessPeer(DeviceId peer) override { return device_->CanAccessPeer(peer); }
  Status EnablePeerAccess(DeviceId peer) override { return device_->EnablePeerAccess(peer); }
  Status DisablePeerAccess(DeviceId peer) override { return device_->DisablePeerAccess(peer); }
  Result<StreamHandle> CreateStream(const StreamOptions& options) override {
    return device_->CreateStream(options);
  }
  Status DestroyStream(StreamHandle stream) override { return device_->DestroyStream(stream); }
  Result<StreamHandle> GetDefaultStream(DefaultStream which) override {
    return device_->GetDefaultStream(which);
  }
  Result<StreamHandle> BorrowStream(std::uint64_t native) override {
    return device_->BorrowStream(native);
  }
  Result<Completion> QueryStream(StreamHandle stream) override {
    return device_->QueryStream(stream);
  }
  Status SynchronizeStream(StreamHandle stream, Deadline deadline) override {
    return device_->SynchronizeStream(stream, deadline);
  }
  Status Synchronize(Deadline deadline) override { return device_->Synchronize(deadline); }
  Result<EventHandle> CreateEvent(const EventOptions& options) override {
    return device_->CreateEvent(options);
  }
  Status DestroyEvent(EventHandle event) override { return device_->DestroyEvent(event); }
  Status RecordEvent(EventHandle event, StreamHandle stream) override {
    return device_->RecordEvent(event, stream);
  }
  Status WaitEvent(StreamHandle stream, EventHandle event) override {
    return device_->WaitEvent(stream, event);
  }
  Result<Completion> QueryEvent(EventHandle event) override { return device_->QueryEvent(event); }
  Status SynchronizeEvent(EventHandle event, Deadline deadline) override {
    return device_->SynchronizeEvent(event, deadline);
  }
  Result<double> ElapsedMilliseconds(EventHandle start, EventHandle end) override {
    return device_->ElapsedMilliseconds(start, end);
  }
  Status EnqueueCopy(StreamHandle stream, const Copy& copy) override {
    return device_->EnqueueCopy(stream, copy);
  }
  Status EnqueueFill(StreamHandle stream, const Fill& fill) override {
    return device_->EnqueueFill(stream, fill);
  }
  Status WriteValue(StreamHandle stream, const ValueWrite& write) override {
    return device_->WriteValue(stream, write);
  }
  Status WaitValue(StreamHandle stream, const ValueWait& wait) override {
    return device_->WaitValue(stream, wait);
  }
  Status CallHost(StreamHandle stream, const HostCall& call) override {
    return device_->CallHost(stream, call);
  }
  Result<ModuleHandle> LoadModule(const ModuleSource& source) override {
    return device_->LoadModule(source);
  }
  Status UnloadModule(ModuleHandle module) override { return device_->UnloadModule(module); }
  Result<KernelHandle> FindKernel(ModuleHandle module, std::string_view name) override {
    return device_->FindKernel(module, name);
  }
  Status LaunchKernel(StreamHandle stream, const KernelLaunch& launch) override {
    return device_->LaunchKernel(stream, launch);
  }
  Status BeginCapture(StreamHandle stream, CaptureMode mode) override {
    return device_->BeginCapture(stream, mode);
  }
  Result<GraphHandle> EndCapture(StreamHandle stream) override {
    return device_->EndCapture(stream);
  }
  Result<CaptureState> GetCaptureState(StreamHandle stream) override {
    return device_->GetCaptureState(stream);
  }
  Result<std::vector<NodeHandle>> GetCaptureFrontier(StreamHandle stream) override {
    return device_->GetCaptureFrontier(stream);
  }
  Result<GraphHandle> CreateGraph() override { return device_->CreateGraph(); }
  Status DestroyGraph(GraphHandle graph) override { return device_->DestroyGraph(graph); }
  Result<NodeHandle> AddNode(GraphHandle graph, std::span<const NodeHandle> dependencies,
                             const Command& command) override {
    return device_->AddNode(graph, dependencies, command);
  }
  Result<std::vector<NodeInfo>> GetNodes(GraphHandle graph) override {
    return device_->GetNodes(graph);
  }
  Result<ExecHandle> Instantiate(GraphHandle graph) override { return device_->Instantiate(graph); }
  Status DestroyExec(ExecHandle exec) override { return device_->DestroyExec(exec); }
  Result<UpdateReport> UpdateExec(ExecHandle exec, GraphHandle graph) override {
    return device_->UpdateExec(exec, graph);
  }
  Status SetNodeParams(ExecHandle exec, NodeHandle node, const Command& command) override {
    return device_->SetNodeParams(exec, node, command);
  }
  Status LaunchGraph(ExecHandle exec, StreamHandle stream) override {
    return device_->LaunchGraph(exec, stream);
  }

 protected:
  const std::shared_ptr<Device>& wrapped() const { return device_; }

 private:
  const std::shared_ptr<Device> device_;
};

}  // namespace keel::hal
