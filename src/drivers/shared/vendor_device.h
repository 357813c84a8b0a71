// VendorDevice: the device layer's primitives over a vendor's library, whichever it is
// (vendor_api.h).
//
// No primitive depends on which device or context the calling thread has current, and none changes
// it: each makes the device's own context current if it is not already, and puts back what was.
// Calls that are unsafe in a capture run under the thread's capture mode of Keel
// (keel/hal/capture_mode.h), and put back the library's own.
//
// Waiting polls with growing pauses: it takes a deadline, burns no core, and needs nothing of how
// the embedding program configured the context. What is waited for is an event that is recorded
// when the wait begins: work that others queue behind it is not waited for.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "drivers/shared/address_map.h"
#include "drivers/shared/host_calls.h"
#include "drivers/shared/pinned_ranges.h"
#include "drivers/shared/vendor_api.h"
#include "keel/base/mutex.h"
#include "keel/hal/device.h"
#include "keel/hal/primitive.h"

namespace keel::vendor {

// What the open devices of one library share: who they are, for copies and access between them,
// their addresses, and the host calls that are on their way.
class OpenDevices {
 public:
  struct Entry {
    int device = 0;
    void* context = nullptr;
  };
  void Add(hal::DeviceId id, Entry entry) KEEL_EXCLUDES(mutex_);
  void Remove(hal::DeviceId id) KEEL_EXCLUDES(mutex_);
  // kInvalidArgument if it is not one of them.
  Result<Entry> Find(hal::DeviceId id) const KEEL_EXCLUDES(mutex_);
  AddressMap& addresses() { return addresses_; }
  HostCalls& host_calls() { return host_calls_; }
  PinnedRanges& pinned() { return pinned_; }

 private:
  AddressMap addresses_;
  HostCalls host_calls_;
  PinnedRanges pinned_;
  mutable Mutex mutex_;
  std::map<hal::DeviceId, Entry> devices_ KEEL_GUARDED_BY(mutex_);
};

// The status of a call of the library that failed, with its code and name attached.
Status StatusOf(const VendorApi& api, std::string_view call, Code code);

class VendorDevice final : public hal::Device {
 public:
  // Retains the device's primary context, which the embedding program may use too.
  static Result<std::unique_ptr<hal::Device>> Open(const VendorApi& api,
                                                   std::shared_ptr<OpenDevices> open,
                                                   hal::DeviceInfo info, int device);
  ~VendorDevice() override;

  const hal::DeviceInfo& info() const override { return info_; }
  const hal::Capabilities& capabilities() const override { return capabilities_; }
  hal::DeviceId id() const override { return id_; }
  Status Health() const override KEEL_EXCLUDES(fault_mutex_);
  Result<hal::ModuleSource> StandardKernels() const override;

  Result<hal::MemoryInfo> GetMemoryInfo() override;
  Result<DeviceAddress> AllocatePlain(Bytes size) override;
  Status FreePlain(DeviceAddress address) override;
  Result<hal::MemoryHandle> CreateMemory(Bytes size, const hal::MemoryOptions& options) override;
  Status ReleaseMemory(hal::MemoryHandle memory) override;
  Result<UniqueFd> ExportMemory(hal::MemoryHandle memory) override;
  Result<hal::MemoryHandle> ImportMemory(int descriptor, Bytes size) override;
  Result<DeviceAddress> ReserveAddress(Bytes size, Bytes alignment, DeviceAddress hint) override;
  Status FreeAddress(DeviceAddress address, Bytes size) override;
  Status Map(DeviceAddress address, Bytes size, Offset offset, hal::MemoryHandle memory) override;
  Status Unmap(DeviceAddress address, Bytes size) override;
  Status SetAccess(DeviceAddress address, Bytes size,
                   std::span<const hal::AccessGrant> grants) override;
  Result<hal::Access> GetAccess(DeviceAddress address, hal::DeviceId device) override;
  Result<void*> AllocateHost(Bytes size, const hal::HostOptions& options) override;
  Status FreeHost(void* pointer) override;
  Status RegisterHost(void* pointer, Bytes size) override;
  Status UnregisterHost(void* pointer) override;
  Result<DeviceAddress> GetHostAddress(const void* pointer) override;
  Result<bool> CanAccessPeer(hal::DeviceId peer) override;
  Status EnablePeerAccess(hal::DeviceId peer) override;
  Status DisablePeerAccess(hal::DeviceId peer) override;

  Result<hal::StreamHandle> CreateStream(const hal::StreamOptions& options) override;
  Status DestroyStream(hal::StreamHandle stream) override;
  Result<hal::StreamHandle> GetDefaultStream(hal::DefaultStream which) override;
  Result<hal::StreamHandle> BorrowStream(std::uint64_t native) override;
  Result<hal::Completion> QueryStream(hal::StreamHandle stream) override;
  Status SynchronizeStream(hal::StreamHandle stream, Deadline deadline) override;
  Status Synchronize(Deadline deadline) override;
  Result<hal::EventHandle> CreateEvent(const hal::EventOptions& options) override;
  Status DestroyEvent(hal::EventHandle event) override;
  Status RecordEvent(hal::EventHandle event, hal::StreamHandle stream) override;
  Status WaitEvent(hal::StreamHandle stream, hal::EventHandle event) override;
  Result<hal::Completion> QueryEvent(hal::EventHandle event) override;
  Status SynchronizeEvent(hal::EventHandle event, Deadline deadline) override;
  Result<double> ElapsedMilliseconds(hal::EventHandle start, hal::EventHandle end) override;
  Status EnqueueCopy(hal::StreamHandle stream, const hal::Copy& copy) override;
  Status EnqueueFill(hal::StreamHandle stream, const hal::Fill& fill) override;
  Status WriteValue(hal::StreamHandle stream, const hal::ValueWrite& write) override;
  Status WaitValue(hal::StreamHandle stream, const hal::ValueWait& wait) override;
  Status CallHost(hal::StreamHandle stream, const hal::HostCall& call) override;
  Result<hal::ModuleHandle> LoadModule(const hal::ModuleSource& source) override;
  Status UnloadModule(hal::ModuleHandle module) override;
  Result<hal::KernelHandle> FindKernel(hal::ModuleHandle module, std::string_view name) override;
  Status LaunchKernel(hal::StreamHandle stream, const hal::KernelLaunch& launch) override;

  Status BeginCapture(hal::StreamHandle stream, hal::CaptureMode mode) override;
  Result<hal::GraphHandle> EndCapture(hal::StreamHandle stream) override;
  Result<hal::CaptureState> GetCaptureState(hal::StreamHandle stream) override;
  Result<std::vector<hal::NodeHandle>> GetCaptureFrontier(hal::StreamHandle stream) override;
  Result<hal::GraphHandle> CreateGraph() override;
  Status DestroyGraph(hal::GraphHandle graph) override;
  Result<hal::NodeHandle> AddNode(hal::GraphHandle graph,
                                  std::span<const hal::NodeHandle> dependencies,
                                  const hal::Command& command) override;
  Result<std::vector<hal::NodeInfo>> GetNodes(hal::GraphHandle graph) override;
  Result<hal::ExecHandle> Instantiate(hal::GraphHandle graph) override;
  Status DestroyExec(hal::ExecHandle exec) override;
  Result<hal::UpdateReport> UpdateExec(hal::ExecHandle exec, hal::GraphHandle graph) override;
  Status SetNodeParams(hal::ExecHandle exec, hal::NodeHandle node,
                       const hal::Command& command) override;
  Status LaunchGraph(hal::ExecHandle exec, hal::StreamHandle stream) override;

 private:
  VendorDevice(const VendorApi& api, std::shared_ptr<OpenDevices> open, hal::DeviceInfo info,
               int device, void* context);

  // Before every primitive: may it be called here and now, is the device well, and can it do this
  // at all?
  Status Enter(hal::Primitive primitive, bool capable = true) const;
  // After every call of the library: OK, or the error; a loss is remembered.
  Status Check(hal::Primitive primitive, Code code) {
    return code == kSuccess ? OkStatus() : Fail(primitive, code);
  }
  Status Fail(hal::Primitive primitive, Code code) KEEL_EXCLUDES(fault_mutex_);

  static void* Pointer(std::uint64_t value) { return reinterpret_cast<void*>(value); }
  static std::uint64_t Value(const void* pointer) {
    return reinterpret_cast<std::uint64_t>(pointer);
  }
  Status CheckStream(hal::StreamHandle stream) const;
  // That the legacy default stream can be used now. With the device's context current.
  Status CheckLegacy() const;
  bool IsDefault(hal::StreamHandle stream) const {
    return stream.value == api_.legacy_stream || stream.value == api_.per_thread_stream;
  }
  // Whether a call on this stream needs the device's context to be current. (Copies and fills
  // always do.)
  bool NeedsCurrent(hal::StreamHandle stream) const {
    return !api_.streams_know_their_context || IsDefault(stream);
  }
  // Polls until `query` no longer says "not ready".
  template <class Query>
  Status Await(hal::Primitive primitive, Query query, Deadline deadline);
  // An event of the device's own that stands for what is queued on the stream now. When the last
  // owner lets go it is kept for the next mark.
  Code Mark(void* stream, std::shared_ptr<void>* mark) KEEL_EXCLUDES(marks_mutex_);
  struct Retired {
    void* stream = nullptr;
    int priority = 0;
    bool idle = false;  // seen with nothing to do, which it then has until it is taken
  };
  // A command that is rewritten before its graph was handed to the device is slower in every launch
  // after that. So it is handed over at once.
  Code Upload(void* exec) KEEL_EXCLUDES(streams_mutex_);
  // A retired stream with this priority and nothing to do; null if there is none.
  void* TakeRetired(int priority) KEEL_EXCLUDES(streams_mutex_);
  // Asks one of `retired_`, unless the answer is known.
  Code QueryRetired(Retired& retired) const;
  // Of a stream that is not the legacy default one. Where there are no graphs nothing captures.
  Code LookAtCapture(void* stream, hal::CaptureState* state);
  Result<bool> IsCapturing(hal::StreamHandle stream);
  // Refuses host memory that is not pinned, which a graph cannot copy.
  // True for device memory.
  bool IsKnownPinned(const hal::Location& side, Bytes size) const;
  Status CheckPinned(const hal::Copy& copy) const;
  // Whether any byte of a range of host memory is pinned. Looks at every page.
  bool AnyPinned(const void* pointer, Bytes size) const;
  // A command in the library's terms, all but the pointers to a kernel's arguments.
  Status Resolve(const hal::Command& command, NodeSpec& spec);

  const VendorApi& api_;
  const std::shared_ptr<OpenDevices> open_;
  const hal::DeviceInfo info_;
  const int device_;
  void* const context_;
  const hal::DeviceId id_;
  hal::Capabilities capabilities_;
  const Home home_;
  int least_priority_ = 0;
  int greatest_priority_ = 0;

  std::atomic<bool> lost_{false};
  mutable Mutex fault_mutex_;
  Status fault_ KEEL_GUARDED_BY(fault_mutex_);

  Mutex marks_mutex_;
  std::vector<void*> spare_marks_ KEEL_GUARDED_BY(marks_mutex_);

  Mutex streams_mutex_;
  // Those that this device made, with their priority.
  std::map<void*, int> streams_ KEEL_GUARDED_BY(streams_mutex_);
  // Those that were destroyed, which the library still has: their work is still covered by
  // Synchronize, which cannot ask a stream that is gone, and the next CreateStream takes one.
  std::vector<Retired> retired_ KEEL_GUARDED_BY(streams_mutex_);
  struct Begun {
    std::thread::id thread;
    hal::CaptureMode mode = hal::CaptureMode::kGlobal;
  };
  // By the stream they began on.
  std::map<std::uint64_t, Begun> captures_ KEEL_GUARDED_BY(streams_mutex_);
  void* upload_stream_ KEEL_GUARDED_BY(streams_mutex_) = nullptr;  // null before the first upload
};

}  // namespace keel::vendor
