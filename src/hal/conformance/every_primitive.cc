#include "hal/conformance/every_primitive.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>

#include "hal/conformance/props.h"
#include "hal/conformance/runner.h"
#include "keel/hal/primitive.h"

namespace keel::hal::conformance {
namespace {

void DoNothing(void*) {}

class User {
 public:
  User(CaseContext& context, Waiting waiting, int i)
      : context_(context),
        device_(context.device(i)),
        can_(context.capabilities(i)),
        waiting_(waiting),
        i_(i) {}

  void Memory() {
    ASSERT_VALUE(const MemoryInfo info, device_.GetMemoryInfo());
    EXPECT_LE(info.free, info.total);
    ASSERT_VALUE(PlainMemory plain, context_.NewPlain(64_KiB, i_));
    ASSERT_VALUE(HostMemory host, HostMemory::Create(context_.shared(i_), 64_KiB));
    EXPECT_OK(device_.GetHostAddress(host.data()));
    plain_ = plain.address();
    host_ = host.data();
    leftovers_.plain.push_back(std::move(plain));
    leftovers_.host.push_back(std::move(host));
    // Unpinning may wait, and what is pinned must not be left behind.
    if (can_.host_registration && may_wait()) {
      const Bytes size = 64_KiB;
      void* pages =
          mmap(nullptr, size.count(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ASSERT_NE(pages, MAP_FAILED);
      EXPECT_OK(device_.RegisterHost(pages, size));
      EXPECT_OK(device_.UnregisterHost(pages));
      munmap(pages, size.count());
    }
  }

  void Virtual() {
    if (!can_.virtual_memory) return;
    const Bytes size = context_.granule(i_);
    ASSERT_VALUE(const MemoryHandle memory,
                 device_.CreateMemory(size, {.exportable = can_.exportable_memory}));
    ASSERT_VALUE(const DeviceAddress range, device_.ReserveAddress(size, Bytes(0), {}));
    EXPECT_OK(device_.Map(range, size, Offset(0), memory));
    const std::array grants = {AccessGrant{device_.id(), Access::kReadWrite}};
    EXPECT_OK(device_.SetAccess(range, size, grants));
    EXPECT_OK(device_.GetAccess(range, device_.id()));
    EXPECT_OK(device_.Unmap(range, size));
    EXPECT_OK(device_.FreeAddress(range, size));
    if (can_.exportable_memory) {
      ASSERT_VALUE(const UniqueFd descriptor, device_.ExportMemory(memory));
      ASSERT_VALUE(const MemoryHandle imported, device_.ImportMemory(descriptor.get(), size));
      EXPECT_OK(device_.ReleaseMemory(imported));
    }
    EXPECT_OK(device_.ReleaseMemory(memory));
  }

  void Peers() {
    for (int peer = 0; peer < context_.device_count(); ++peer) {
      const DeviceId id = context_.device(peer).id();
      ASSERT_VALUE(const bool reachable, device_.CanAccessPeer(id));
      if (id == device_.id() || !reachable) continue;
      EXPECT_OK(device_.EnablePeerAccess(id));
      EXPECT_OK(device_.DisablePeerAccess(id));
    }
  }

  void StreamsAndEvents() {
    ASSERT_VALUE(const StreamHandle other, device_.CreateStream({.priority = -1}));
    EXPECT_OK(device_.GetDefaultStream(DefaultStream::kPerThread));
    EXPECT_OK(device_.BorrowStream(stream_.get().value));
    EXPECT_OK(device_.QueryStream(other));
    ASSERT_VALUE(const EventHandle event, device_.CreateEvent({.timing = can_.event_timing}));
    EXPECT_OK(device_.RecordEvent(event, other));
    EXPECT_OK(device_.WaitEvent(stream_.get(), event));
    EXPECT_OK(device_.QueryEvent(event));
    if (may_wait()) {
      EXPECT_OK(device_.SynchronizeEvent(event, InTime()));
      EXPECT_OK(device_.SynchronizeStream(other, InTime()));
      EXPECT_OK(device_.Synchronize(InTime()));
      if (can_.event_timing) {
        EXPECT_OK(device_.ElapsedMilliseconds(event, event));
      }
    }
    EXPECT_OK(device_.DestroyEvent(event));
    EXPECT_OK(device_.DestroyStream(other));
  }

  void Commands() {
    const Location on_device = Location::On(device_.id(), plain_);
    EXPECT_OK(device_.EnqueueCopy(
        stream_.get(), {.destination = on_device, .source = Location::Host(host_), .size = 4_KiB}));
    EXPECT_OK(device_.EnqueueCopy(
        stream_.get(), {.destination = Location::Host(host_), .source = on_device, .size = 4_KiB}));
    if (may_wait()) {
      std::vector<std::byte> pageable(4096);
      const Location on_host = Location::Host(pageable.data());
      EXPECT_OK(device_.EnqueueCopy(stream_.get(),
                                    {.destination = on_device, .source = on_host, .size = 4_KiB}));
      EXPECT_OK(device_.EnqueueCopy(stream_.get(),
                                    {.destination = on_host, .source = on_device, .size = 4_KiB}));
    }
    EXPECT_OK(device_.EnqueueFill(stream_.get(),
                                  {.destination = plain_, .value = 3, .width = 4, .count = 100}));
    if (can_.value_writes) {
      EXPECT_OK(device_.WriteValue(stream_.get(), {.destination = plain_, .value = 7}));
    }
    if (can_.value_waits) {
      // Met by the write before it; without one, by the fill (both words are 3).
      EXPECT_OK(device_.WaitValue(stream_.get(), {.source = plain_, .value = 3}));
    }
    if (can_.host_calls) {
      EXPECT_OK(device_.CallHost(stream_.get(), {.function = &DoNothing}));
    }
  }

  void Kernels() {
    if (!can_.kernels) return;
    if (may_wait()) {
      ASSERT_VALUE(const ModuleSource source, device_.StandardKernels());
      // Never used by a launch: unloading is for modules without work.
      ASSERT_VALUE(const ModuleHandle module, device_.LoadModule(source));
      EXPECT_OK(device_.FindKernel(module, kernels::kAdd));
      EXPECT_OK(device_.UnloadModule(module));
    }
    EXPECT_OK(context_.LaunchFill(stream_.get(), plain_, 5, 64, i_));
  }

  void Graphs() {
    if (!can_.graphs) return;
    const Fill fill{.destination = plain_, .value = 9, .width = 4, .count = 16};
    ASSERT_VALUE(const Stream recording, context_.NewStream(i_));
    EXPECT_OK(device_.BeginCapture(recording.get(), CaptureMode::kThreadLocal));
    EXPECT_OK(device_.EnqueueFill(recording.get(), fill));
    EXPECT_OK(device_.GetCaptureState(recording.get()));
    EXPECT_OK(device_.GetCaptureFrontier(recording.get()));
    ASSERT_VALUE(const GraphHandle captured, device_.EndCapture(recording.get()));
    ASSERT_VALUE(const GraphHandle graph, device_.CreateGraph());
    ASSERT_VALUE(const NodeHandle node, device_.AddNode(graph, {}, fill));
    EXPECT_OK(device_.GetNodes(graph));
    ASSERT_VALUE(const ExecHandle exec, device_.Instantiate(graph));
    if (can_.graph_update) {
      EXPECT_OK(device_.UpdateExec(exec, captured));
    }
    if (can_.node_update) {
      EXPECT_OK(device_.SetNodeParams(exec, node, fill));
    }
    EXPECT_OK(device_.LaunchGraph(exec, stream_.get()));
    EXPECT_OK(device_.DestroyExec(exec));
    EXPECT_OK(device_.DestroyGraph(graph));
    EXPECT_OK(device_.DestroyGraph(captured));
  }

  void Run() {
    device_.ResetCounts();
    ASSERT_VALUE(stream_, context_.NewStream(i_));
    Memory();
    Virtual();
    Peers();
    StreamsAndEvents();
    Commands();
    Kernels();
    Graphs();
    if (may_wait()) {
      EXPECT_OK(stream_.Synchronize(InTime()));
      for (PlainMemory& plain : leftovers_.plain) EXPECT_OK(plain.Close());
      for (HostMemory& host : leftovers_.host) EXPECT_OK(host.Close());
    }
    ExpectAllWereUsed();
  }

  Leftovers TakeLeftovers() { return std::move(leftovers_); }

 private:
  bool may_wait() const { return waiting_ == Waiting::kAllowed; }

  void ExpectAllWereUsed() {
    std::vector<Primitive> left_out;
    if (!may_wait()) {
      left_out = {Primitive::kFreePlain,         Primitive::kFreeHost,
                  Primitive::kRegisterHost,      Primitive::kUnregisterHost,
                  Primitive::kSynchronizeStream, Primitive::kSynchronize,
                  Primitive::kSynchronizeEvent,  Primitive::kElapsedMilliseconds,
                  Primitive::kLoadModule,        Primitive::kUnloadModule,
                  Primitive::kFindKernel};
    }
    if (context_.device_count() < 2 || device_.calls(Primitive::kEnablePeerAccess) == 0) {
      left_out.push_back(Primitive::kEnablePeerAccess);
      left_out.push_back(Primitive::kDisablePeerAccess);
    }
    for (bool Capabilities::* capability : AllCapabilities()) {
      if (can_.*capability) continue;
      for (const Primitive primitive : PrimitivesOf(capability)) left_out.push_back(primitive);
    }
    if (!can_.host_registration) left_out.push_back(Primitive::kUnregisterHost);
    if (!can_.graphs) left_out.push_back(Primitive::kGetCaptureState);
    for (const PrimitiveCall& call : AllPrimitives()) {
      const Primitive primitive = call.primitive;
      if (std::find(left_out.begin(), left_out.end(), primitive) != left_out.end()) continue;
      EXPECT_GT(device_.calls(primitive), 0u) << PrimitiveName(primitive) << " was not used";
    }
  }

  CaseContext& context_;
  InstrumentedDevice& device_;
  const Capabilities& can_;
  const Waiting waiting_;
  const int i_;
  Stream stream_;
  DeviceAddress plain_;
  void* host_ = nullptr;
  Leftovers leftovers_;
};

}  // namespace

Leftovers UseEveryPrimitive(CaseContext& context, Waiting waiting, int i) {
  User user(context, waiting, i);
  user.Run();
  return user.TakeLeftovers();
}

}  // namespace keel::hal::conformance
