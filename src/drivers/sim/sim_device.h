// SimDevice: the device layer's primitives on the simulated accelerator.
//
// The methods are spread over sim_device.cc (identity, loss), sim_device_memory.cc,
// sim_device_work.cc (streams, events, commands) and sim_device_graph.cc; the things they act on
// are in the machine (machine.h), so that devices can share memory, events and captures.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/fork.h"
#include "drivers/sim/machine.h"
#include "keel/base/mutex.h"
#include "keel/drivers/sim.h"
#include "keel/hal/device.h"
#include "keel/hal/primitive.h"

namespace keel::sim {

// Known without opening.
hal::DeviceInfo DescribeDevice(const SimConfig& config, int ordinal);

class SimDevice final : public hal::Device, public Controls {
 public:
  SimDevice(std::shared_ptr<Machine> machine, int ordinal);
  ~SimDevice() override;

  Machine& machine() const { return *machine_; }
  int ordinal() const { return ordinal_; }
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  // A fault: the device is lost with this status. The first one counts.
  void LoseBy(const Status& fault) KEEL_EXCLUDES(mutex_);

  const hal::DeviceInfo& info() const override { return info_; }
  const hal::Capabilities& capabilities() const override { return capabilities_; }
  hal::DeviceId id() const override { return id_; }
  Status Health() const override KEEL_EXCLUDES(mutex_);
  Result<hal::ModuleSource> StandardKernels() const override;

  // Memory.
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

  // Streams, events, commands.
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

  // Graphs.
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

  // Controls.
  Status HoldStream(hal::StreamHandle stream) override;
  Status ReleaseStream(hal::StreamHandle stream) override;
  Status SetPeer(hal::DeviceId peer, bool allowed) override;
  void Lose(std::string_view reason) override;
  Bytes used() const override { return machine_->FileOf(ordinal_)->used(); }
  std::size_t host_mappings() const override { return machine_->host_mappings(); }

 private:
  enum class Safety { kSafe, kUnsafeInCapture };
  // What every primitive asks first: may anything be done at all?
  Status Enter(hal::Primitive primitive, Safety safety = Safety::kSafe) const;

  Result<std::shared_ptr<SimStream>> FindStream(hal::StreamHandle stream) const;
  Result<std::shared_ptr<SimEvent>> FindEvent(hal::EventHandle event) const;
  Result<std::shared_ptr<PhysicalBlock>> FindMemory(hal::MemoryHandle memory) const;
  Result<std::shared_ptr<SimGraph>> FindGraph(hal::GraphHandle graph) const;
  Result<std::shared_ptr<ExecObject>> FindExec(hal::ExecHandle exec) const;
  Result<int> FindPeer(hal::DeviceId peer) const;

  Result<std::shared_ptr<SimStream>> StartStream(SimStream::Role role) KEEL_EXCLUDES(mutex_);
  // Runs the command on the stream, or adds it to the stream's capture.
  Status Submit(SimStream& stream, StoredCommand command);
  Status CheckUse(DeviceAddress address, Bytes size, hal::Access access) const;
  // A command with copies of all it refers to; errors name the bad argument.
  Result<StoredCommand> Store(const hal::Command& command) const;
  Result<CopySide> StoreSide(const hal::Location& location) const;
  Result<StoredCopy> StoreCopy(const hal::Copy& copy) const;
  Result<KernelSet> LoadFromMemory(DeviceAddress address, Bytes size) const;
  std::vector<std::shared_ptr<SimStream>> Streams() const KEEL_EXCLUDES(mutex_);

  const std::shared_ptr<Machine> machine_;
  const int ordinal_;
  const hal::DeviceId id_;
  const hal::DeviceInfo info_;
  hal::Capabilities capabilities_;
  const Home home_;

  std::atomic<bool> lost_{false};
  mutable Mutex mutex_;
  Status fault_ KEEL_GUARDED_BY(mutex_);
  // Every stream that has a thread, those that were destroyed and still run included.
  std::vector<std::shared_ptr<SimStream>> streams_ KEEL_GUARDED_BY(mutex_);
  std::uint64_t streams_started_ KEEL_GUARDED_BY(mutex_) = 0;
  hal::StreamHandle legacy_ KEEL_GUARDED_BY(mutex_);
  std::map<std::thread::id, hal::StreamHandle> per_thread_ KEEL_GUARDED_BY(mutex_);
};

}  // namespace keel::sim
