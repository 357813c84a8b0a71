#include "hal/conformance/null_device.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "keel/base/mutex.h"
#include "keel/hal/driver.h"

namespace keel::hal::conformance {
namespace {

Status Missing() { return Unimplemented("the null device cannot do that"); }

class NullDevice final : public Device {
 public:
  const DeviceInfo& info() const override { return info_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  DeviceId id() const override { return id_; }
  Status Health() const override { return OkStatus(); }
  Result<ModuleSource> StandardKernels() const override { return Missing(); }

  // --- What every device has: here without any effect ------------------------------------------

  Result<MemoryInfo> GetMemoryInfo() override { return MemoryInfo{1_GiB, 1_GiB}; }
  Result<DeviceAddress> AllocatePlain(Bytes) override { return DeviceAddress(NextValue() * 4096); }
  Status FreePlain(DeviceAddress) override { return OkStatus(); }
  // Real memory, which goes with the device: cases write to it.
  Result<void*> AllocateHost(Bytes size, const HostOptions&) override {
    if (size > 1_GiB) return ResourceExhausted("the null device has 1 GiB");
    const MutexLock lock(mutex_);
    host_.push_back(std::make_unique<std::byte[]>(size.count() + 1));
    return host_.back().get();
  }
  Status FreeHost(void*) override { return OkStatus(); }
  Result<DeviceAddress> GetHostAddress(const void*) override { return DeviceAddress(4096); }
  Result<bool> CanAccessPeer(DeviceId peer) override { return peer == id_; }
  Status EnablePeerAccess(DeviceId) override { return OkStatus(); }
  Status DisablePeerAccess(DeviceId) override { return OkStatus(); }
  Result<StreamHandle> CreateStream(const StreamOptions&) override {
    return StreamHandle{NextValue()};
  }
  Status DestroyStream(StreamHandle) override { return OkStatus(); }
  Result<StreamHandle> GetDefaultStream(DefaultStream) override { return StreamHandle{1}; }
  Result<StreamHandle> BorrowStream(std::uint64_t native) override { return StreamHandle{native}; }
  Result<Completion> QueryStream(StreamHandle) override { return Completion::kDone; }
  Status SynchronizeStream(StreamHandle, Deadline) override { return OkStatus(); }
  Status Synchronize(Deadline) override { return OkStatus(); }
  Result<EventHandle> CreateEvent(const EventOptions& options) override {
    if (options.timing) return Missing();
    return EventHandle{NextValue()};
  }
  Status DestroyEvent(EventHandle) override { return OkStatus(); }
  Status RecordEvent(EventHandle, StreamHandle) override { return OkStatus(); }
  Status WaitEvent(StreamHandle, EventHandle) override { return OkStatus(); }
  Result<Completion> QueryEvent(EventHandle) override { return Completion::kDone; }
  Status SynchronizeEvent(EventHandle, Deadline) override { return OkStatus(); }
  Status EnqueueCopy(StreamHandle, const Copy&) override { return OkStatus(); }
  Status EnqueueFill(StreamHandle, const Fill&) override { return OkStatus(); }

  // --- What needs a capability
  // --------------------------------------------------------------------

  Result<MemoryHandle> CreateMemory(Bytes, const MemoryOptions&) override { return Missing(); }
  Status ReleaseMemory(MemoryHandle) override { return Missing(); }
  Result<UniqueFd> ExportMemory(MemoryHandle) override { return Missing(); }
  Result<MemoryHandle> ImportMemory(int, Bytes) override { return Missing(); }
  Result<DeviceAddress> ReserveAddress(Bytes, Bytes, DeviceAddress) override { return Missing(); }
  Status FreeAddress(DeviceAddress, Bytes) override { return Missing(); }
  Status Map(DeviceAddress, Bytes, Offset, MemoryHandle) override { return Missing(); }
  Status Unmap(DeviceAddress, Bytes) override { return Missing(); }
  Status SetAccess(DeviceAddress, Bytes, std::span<const AccessGrant>) override {
    return Missing();
  }
  Result<Access> GetAccess(DeviceAddress, DeviceId) override { return Missing(); }
  Status RegisterHost(void*, Bytes) override { return Missing(); }
  Status UnregisterHost(void*) override { return Missing(); }
  Result<double> ElapsedMilliseconds(EventHandle, EventHandle) override { return Missing(); }
  Status WriteValue(StreamHandle, const ValueWrite&) override { return Missing(); }
  Status WaitValue(StreamHandle, const ValueWait&) override { return Missing(); }
  Status CallHost(StreamHandle, const HostCall&) override { return Missing(); }
  Result<ModuleHandle> LoadModule(const ModuleSource&) override { return Missing(); }
  Status UnloadModule(ModuleHandle) override { return Missing(); }
  Result<KernelHandle> FindKernel(ModuleHandle, std::string_view) override { return Missing(); }
  Status LaunchKernel(StreamHandle, const KernelLaunch&) override { return Missing(); }
  Status BeginCapture(StreamHandle, CaptureMode) override { return Missing(); }
  Result<GraphHandle> EndCapture(StreamHandle) override { return Missing(); }
  Result<CaptureState> GetCaptureState(StreamHandle) override { return Missing(); }
  Result<std::vector<NodeHandle>> GetCaptureFrontier(StreamHandle) override { return Missing(); }
  Result<GraphHandle> CreateGraph() override { return Missing(); }
  Status DestroyGraph(GraphHandle) override { return Missing(); }
  Result<NodeHandle> AddNode(GraphHandle, std::span<const NodeHandle>, const Command&) override {
    return Missing();
  }
  Result<std::vector<NodeInfo>> GetNodes(GraphHandle) override { return Missing(); }
  Result<ExecHandle> Instantiate(GraphHandle) override { return Missing(); }
  Status DestroyExec(ExecHandle) override { return Missing(); }
  Result<UpdateReport> UpdateExec(ExecHandle, GraphHandle) override { return Missing(); }
  Status SetNodeParams(ExecHandle, NodeHandle, const Command&) override { return Missing(); }
  Status LaunchGraph(ExecHandle, StreamHandle) override { return Missing(); }

 private:
  static std::uint64_t NextValue() {
    static std::atomic<std::uint64_t> next{1};
    return next.fetch_add(1);
  }

  DeviceInfo info_{.driver = "null",
                   .name = "null device",
                   .identity = "null",
                   .architecture = "",
                   .memory = 1_GiB};
  Mutex mutex_;
  std::vector<std::unique_ptr<std::byte[]>> host_ KEEL_GUARDED_BY(mutex_);
  Capabilities capabilities_;
  DeviceId id_ = NextDeviceId();
};

}  // namespace

std::shared_ptr<Device> NewNullDevice() { return ShareDevice(std::make_unique<NullDevice>()); }

}  // namespace keel::hal::conformance
