#include "keel/hal/instrumented.h"

#include <type_traits>
#include <utility>

#include "hal/call_ledger.h"
#include "keel/hal/driver.h"

namespace keel::hal {
namespace {

using Kind = CallLedger::Kind;

std::uint64_t ValueOf(DeviceAddress address) { return address.value(); }
std::uint64_t ValueOf(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }
std::uint64_t ValueOf(DeviceId id) { return static_cast<std::uint64_t>(id); }
template <class Tag>
std::uint64_t ValueOf(Handle<Tag> handle) {
  return handle.value;
}

class Wrapper final : public InstrumentedDevice {
 public:
  explicit Wrapper(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  // --- InstrumentedDevice ---------------------------------------------------------------------

  std::uint64_t calls() const override { return ledger_.calls(); }
  std::uint64_t calls(Primitive primitive) const override { return ledger_.calls(primitive); }
  void ResetCounts() override { ledger_.ResetCounts(); }
  void FailNth(std::uint64_t n, Status error) override {
    ledger_.FailNth(std::nullopt, n, std::move(error));
  }
  void FailNth(Primitive primitive, std::uint64_t n, Status error) override {
    ledger_.FailNth(primitive, n, std::move(error));
  }
  void DelayNth(Primitive primitive, std::uint64_t n, std::chrono::microseconds delay) override {
    ledger_.DelayNth(primitive, n, delay);
  }
  void ClearRules() override { ledger_.ClearRules(); }
  std::optional<Primitive> failed() const override { return ledger_.failed(); }
  std::vector<LiveObject> Live() const override { return ledger_.Live(); }

  // --- Not counted ------------------------------------------------------------------------------

  const DeviceInfo& info() const override { return device_->info(); }
  const Capabilities& capabilities() const override { return device_->capabilities(); }
  DeviceId id() const override { return device_->id(); }
  Status Health() const override { return device_->Health(); }
  Result<ModuleSource> StandardKernels() const override { return device_->StandardKernels(); }
  Device& Innermost() override { return device_->Innermost(); }

  // --- Memory -----------------------------------------------------------------------------------

  Result<MemoryInfo> GetMemoryInfo() override {
    return Forward(Primitive::kGetMemoryInfo, [&] { return device_->GetMemoryInfo(); });
  }
  Result<DeviceAddress> AllocatePlain(Bytes size) override {
    return Create(Primitive::kAllocatePlain, Kind::kPlain,
                  [&] { return device_->AllocatePlain(size); });
  }
  Status FreePlain(DeviceAddress address) override {
    return GiveBack(Primitive::kFreePlain, Kind::kPlain, address,
                    [&] { return device_->FreePlain(address); });
  }
  Result<MemoryHandle> CreateMemory(Bytes size, const MemoryOptions& options) override {
    return Create(Primitive::kCreateMemory, Kind::kMemory,
                  [&] { return device_->CreateMemory(size, options); });
  }
  Status ReleaseMemory(MemoryHandle memory) override {
    return GiveBack(Primitive::kReleaseMemory, Kind::kMemory, memory,
                    [&] { return device_->ReleaseMemory(memory); });
  }
  Result<UniqueFd> ExportMemory(MemoryHandle memory) override {
    return Forward(Primitive::kExportMemory, [&] { return device_->ExportMemory(memory); });
  }
  Result<MemoryHandle> ImportMemory(int descriptor, Bytes size) override {
    return Create(Primitive::kImportMemory, Kind::kMemory,
                  [&] { return device_->ImportMemory(descriptor, size); });
  }
  Result<DeviceAddress> ReserveAddress(Bytes size, Bytes alignment, DeviceAddress hint) override {
    return Create(Primitive::kReserveAddress, Kind::kRange,
                  [&] { return device_->ReserveAddress(size, alignment, hint); });
  }
  Status FreeAddress(DeviceAddress address, Bytes size) override {
    return GiveBack(Primitive::kFreeAddress, Kind::kRange, address,
                    [&] { return device_->FreeAddress(address, size); });
  }
  Status Map(DeviceAddress address, Bytes size, Offset offset, MemoryHandle memory) override {
    KEEL_ASSIGN(const std::uint64_t call, ledger_.Begin(Primitive::kMap));
    KEEL_TRY(device_->Map(address, size, offset, memory));
    ledger_.Add(Kind::kMapping, {Primitive::kMap, ValueOf(address), call}, size);
    return OkStatus();
  }
  Status Unmap(DeviceAddress address, Bytes size) override {
    KEEL_TRY(ledger_.Begin(Primitive::kUnmap).status());
    CallLedger::Records records = ledger_.TakeMappings(address, size);
    return RestoreUnlessGone(device_->Unmap(address, size), std::move(records));
  }
  Status SetAccess(DeviceAddress address, Bytes size,
                   std::span<const AccessGrant> grants) override {
    return Forward(Primitive::kSetAccess,
                   [&] { return device_->SetAccess(address, size, grants); });
  }
  Result<Access> GetAccess(DeviceAddress address, DeviceId device) override {
    return Forward(Primitive::kGetAccess, [&] { return device_->GetAccess(address, device); });
  }
  Result<void*> AllocateHost(Bytes size, const HostOptions& options) override {
    return Create(Primitive::kAllocateHost, Kind::kHost,
                  [&] { return device_->AllocateHost(size, options); });
  }
  Status FreeHost(void* pointer) override {
    return GiveBack(Primitive::kFreeHost, Kind::kHost, pointer,
                    [&] { return device_->FreeHost(pointer); });
  }
  Status RegisterHost(void* pointer, Bytes size) override {
    KEEL_ASSIGN(const std::uint64_t call, ledger_.Begin(Primitive::kRegisterHost));
    KEEL_TRY(device_->RegisterHost(pointer, size));
    ledger_.Add(Kind::kRegistration, {Primitive::kRegisterHost, ValueOf(pointer), call});
    return OkStatus();
  }
  Status UnregisterHost(void* pointer) override {
    return GiveBack(Primitive::kUnregisterHost, Kind::kRegistration, pointer,
                    [&] { return device_->UnregisterHost(pointer); });
  }
  Result<DeviceAddress> GetHostAddress(const void* pointer) override {
    return Forward(Primitive::kGetHostAddress, [&] { return device_->GetHostAddress(pointer); });
  }

  // --- Peers ------------------------------------------------------------------------------------

  Result<bool> CanAccessPeer(DeviceId peer) override {
    return Forward(Primitive::kCanAccessPeer, [&] { return device_->CanAccessPeer(peer); });
  }
  Status EnablePeerAccess(DeviceId peer) override {
    KEEL_ASSIGN(const std::uint64_t call, ledger_.Begin(Primitive::kEnablePeerAccess));
    KEEL_TRY(device_->EnablePeerAccess(peer));
    ledger_.AddOnce(Kind::kPeer, {Primitive::kEnablePeerAccess, ValueOf(peer), call});
    return OkStatus();
  }
  Status DisablePeerAccess(DeviceId peer) override {
    return GiveBack(Primitive::kDisablePeerAccess, Kind::kPeer, peer,
                    [&] { return device_->DisablePeerAccess(peer); });
  }

  // --- Streams and events
  // -------------------------------------------------------------------------

  Result<StreamHandle> CreateStream(const StreamOptions& options) override {
    return Create(Primitive::kCreateStream, Kind::kStream,
                  [&] { return device_->CreateStream(options); });
  }
  Status DestroyStream(StreamHandle stream) override {
    return GiveBack(Primitive::kDestroyStream, Kind::kStream, stream,
                    [&] { return device_->DestroyStream(stream); });
  }
  Result<StreamHandle> GetDefaultStream(DefaultStream which) override {
    return Forward(Primitive::kGetDefaultStream, [&] { return device_->GetDefaultStream(which); });
  }
  Result<StreamHandle> BorrowStream(std::uint64_t native) override {
    return Forward(Primitive::kBorrowStream, [&] { return device_->BorrowStream(native); });
  }
  Result<Completion> QueryStream(StreamHandle stream) override {
    return Forward(Primitive::kQueryStream, [&] { return device_->QueryStream(stream); });
  }
  Status SynchronizeStream(StreamHandle stream, Deadline deadline) override {
    return Forward(Primitive::kSynchronizeStream,
                   [&] { return device_->SynchronizeStream(stream, deadline); });
  }
  Status Synchronize(Deadline deadline) override {
    return Forward(Primitive::kSynchronize, [&] { return device_->Synchronize(deadline); });
  }
  Result<EventHandle> CreateEvent(const EventOptions& options) override {
    return Create(Primitive::kCreateEvent, Kind::kEvent,
                  [&] { return device_->CreateEvent(options); });
  }
  Status DestroyEvent(EventHandle event) override {
    return GiveBack(Primitive::kDestroyEvent, Kind::kEvent, event,
                    [&] { return device_->DestroyEvent(event); });
  }
  Status RecordEvent(EventHandle event, StreamHandle stream) override {
    return Forward(Primitive::kRecordEvent, [&] { return device_->RecordEvent(event, stream); });
  }
  Status WaitEvent(StreamHandle stream, EventHandle event) override {
    return Forward(Primitive::kWaitEvent, [&] { return device_->WaitEvent(stream, event); });
  }
  Result<Completion> QueryEvent(EventHandle event) override {
    return Forward(Primitive::kQueryEvent, [&] { return device_->QueryEvent(event); });
  }
  Status SynchronizeEvent(EventHandle event, Deadline deadline) override {
    return Forward(Primitive::kSynchronizeEvent,
                   [&] { return device_->SynchronizeEvent(event, deadline); });
  }
  Result<double> ElapsedMilliseconds(EventHandle start, EventHandle end) override {
    return Forward(Primitive::kElapsedMilliseconds,
                   [&] { return device_->ElapsedMilliseconds(start, end); });
  }

  // --- Commands and kernels -------------------------------------------------------------------

  Status EnqueueCopy(StreamHandle stream, const Copy& copy) override {
    return Forward(Primitive::kCopy, [&] { return device_->EnqueueCopy(stream, copy); });
  }
  Status EnqueueFill(StreamHandle stream, const Fill& fill) override {
    return Forward(Primitive::kFill, [&] { return device_->EnqueueFill(stream, fill); });
  }
  Status WriteValue(StreamHandle stream, const ValueWrite& write) override {
    return Forward(Primitive::kWriteValue, [&] { return device_->WriteValue(stream, write); });
  }
  Status WaitValue(StreamHandle stream, const ValueWait& wait) override {
    return Forward(Primitive::kWaitValue, [&] { return device_->WaitValue(stream, wait); });
  }
  Status CallHost(StreamHandle stream, const HostCall& call) override {
    return Forward(Primitive::kCallHost, [&] { return device_->CallHost(stream, call); });
  }
  Result<ModuleHandle> LoadModule(const ModuleSource& source) override {
    return Create(Primitive::kLoadModule, Kind::kModule,
                  [&] { return device_->LoadModule(source); });
  }
  Status UnloadModule(ModuleHandle module) override {
    return GiveBack(Primitive::kUnloadModule, Kind::kModule, module,
                    [&] { return device_->UnloadModule(module); });
  }
  Result<KernelHandle> FindKernel(ModuleHandle module, std::string_view name) override {
    return Forward(Primitive::kFindKernel, [&] { return device_->FindKernel(module, name); });
  }
  Status LaunchKernel(StreamHandle stream, const KernelLaunch& launch) override {
    return Forward(Primitive::kLaunchKernel, [&] { return device_->LaunchKernel(stream, launch); });
  }

  // --- Graphs -----------------------------------------------------------------------------------

  Status BeginCapture(StreamHandle stream, CaptureMode mode) override {
    KEEL_ASSIGN(const std::uint64_t call, ledger_.Begin(Primitive::kBeginCapture));
    KEEL_TRY(device_->BeginCapture(stream, mode));
    ledger_.Add(Kind::kCapture, {Primitive::kBeginCapture, ValueOf(stream), call});
    return OkStatus();
  }
  Result<GraphHandle> EndCapture(StreamHandle stream) override {
    KEEL_ASSIGN(const std::uint64_t call, ledger_.Begin(Primitive::kEndCapture));
    CallLedger::Records records = ledger_.Take(Kind::kCapture, ValueOf(stream));
    Result<GraphHandle> graph = device_->EndCapture(stream);
    if (graph.ok()) {
      ledger_.Add(Kind::kGraph, {Primitive::kEndCapture, ValueOf(*graph), call});
      return graph;
    }
    // Most errors end a capture too; one asked of the wrong thread does not.
    const Result<CaptureState> state = device_->GetCaptureState(stream);
    if (state.ok() && *state != CaptureState::kNone) ledger_.Restore(std::move(records));
    return graph;
  }
  Result<CaptureState> GetCaptureState(StreamHandle stream) override {
    return Forward(Primitive::kGetCaptureState, [&] { return device_->GetCaptureState(stream); });
  }
  Result<std::vector<NodeHandle>> GetCaptureFrontier(StreamHandle stream) override {
    return Forward(Primitive::kGetCaptureFrontier,
                   [&] { return device_->GetCaptureFrontier(stream); });
  }
  Result<GraphHandle> CreateGraph() override {
    return Create(Primitive::kCreateGraph, Kind::kGraph, [&] { return device_->CreateGraph(); });
  }
  Status DestroyGraph(GraphHandle graph) override {
    return GiveBack(Primitive::kDestroyGraph, Kind::kGraph, graph,
                    [&] { return device_->DestroyGraph(graph); });
  }
  Result<NodeHandle> AddNode(GraphHandle graph, std::span<const NodeHandle> dependencies,
                             const Command& command) override {
    return Forward(Primitive::kAddNode,
                   [&] { return device_->AddNode(graph, dependencies, command); });
  }
  Result<std::vector<NodeInfo>> GetNodes(GraphHandle graph) override {
    return Forward(Primitive::kGetNodes, [&] { return device_->GetNodes(graph); });
  }
  Result<ExecHandle> Instantiate(GraphHandle graph) override {
    return Create(Primitive::kInstantiate, Kind::kExec,
                  [&] { return device_->Instantiate(graph); });
  }
  Status DestroyExec(ExecHandle exec) override {
    return GiveBack(Primitive::kDestroyExec, Kind::kExec, exec,
                    [&] { return device_->DestroyExec(exec); });
  }
  Result<UpdateReport> UpdateExec(ExecHandle exec, GraphHandle graph) override {
    return Forward(Primitive::kUpdateExec, [&] { return device_->UpdateExec(exec, graph); });
  }
  Status SetNodeParams(ExecHandle exec, NodeHandle node, const Command& command) override {
    return Forward(Primitive::kSetNodeParams,
                   [&] { return device_->SetNodeParams(exec, node, command); });
  }
  Status LaunchGraph(ExecHandle exec, StreamHandle stream) override {
    return Forward(Primitive::kLaunchGraph, [&] { return device_->LaunchGraph(exec, stream); });
  }

 private:
  template <class Call>
  std::invoke_result_t<Call> Forward(Primitive primitive, Call call) {
    KEEL_TRY(ledger_.Begin(primitive).status());
    return call();
  }

  template <class Call>
  std::invoke_result_t<Call> Create(Primitive primitive, Kind kind, Call call) {
    KEEL_ASSIGN(const std::uint64_t number, ledger_.Begin(primitive));
    std::invoke_result_t<Call> result = call();
    if (result.ok()) ledger_.Add(kind, {primitive, ValueOf(*result), number});
    return result;
  }

  template <class Value, class Call>
  Status GiveBack(Primitive primitive, Kind kind, Value value, Call call) {
    KEEL_TRY(ledger_.Begin(primitive).status());
    CallLedger::Records records = ledger_.Take(kind, ValueOf(value));
    return RestoreUnlessGone(call(), std::move(records));
  }

  // What was on a lost device is gone with it.
  Status RestoreUnlessGone(Status status, CallLedger::Records records) {
    if (!status.ok() && status.code() != StatusCode::kDeviceLost) {
      ledger_.Restore(std::move(records));
    }
    return status;
  }

  const std::shared_ptr<Device> device_;
  CallLedger ledger_;
};

}  // namespace

std::shared_ptr<InstrumentedDevice> Instrumented(std::shared_ptr<Device> device) {
  return std::static_pointer_cast<InstrumentedDevice>(
      ShareDevice(std::make_unique<Wrapper>(std::move(device))));
}

}  // namespace keel::hal
