#include "hal/conformance/props.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>

namespace keel::hal::conformance {
namespace {

constexpr Bytes kSize = 4_KiB;

void DoNothing(void*) {}

Fill FillOf(const Props& props) {
  return {.destination = props.plain ? props.plain.address() : DeviceAddress(),
          .value = 1,
          .width = 4,
          .count = 4};
}

template <class Owner>
auto HandleOf(const Owner& owner) {
  return owner ? owner.get() : decltype(owner.get()){};
}
MemoryHandle MemoryOf(const Props& props) {
  return props.memory ? props.memory.handle() : MemoryHandle{};
}
DeviceAddress RangeOf(const Props& props) {
  return props.range ? props.range.address() : DeviceAddress();
}
DeviceAddress MappedOf(const Props& props) {
  return props.mapped ? props.mapped.address() : DeviceAddress();
}
DeviceAddress PlainOf(const Props& props) { return FillOf(props).destination; }
void* HostOf(const Props& props) { return props.host ? props.host.data() : nullptr; }

std::vector<PrimitiveCall> MemoryCalls() {
  return {
      {Primitive::kGetMemoryInfo,
       [](Device& d, const Props&) { return StatusOf(d.GetMemoryInfo()); }},
      {Primitive::kAllocatePlain,
       [](Device& d, const Props&) { return StatusOf(d.AllocatePlain(kSize)); }},
      {Primitive::kFreePlain, [](Device& d, const Props& p) { return d.FreePlain(PlainOf(p)); }},
      {Primitive::kCreateMemory,
       [](Device& d, const Props& p) { return StatusOf(d.CreateMemory(p.granule, {})); }},
      {Primitive::kExportMemory,
       [](Device& d, const Props& p) { return StatusOf(d.ExportMemory(MemoryOf(p))); }},
      {Primitive::kImportMemory,
       [](Device& d, const Props& p) { return StatusOf(d.ImportMemory(0, p.granule)); }},
      {Primitive::kReserveAddress,
       [](Device& d, const Props& p) {
         return StatusOf(d.ReserveAddress(p.granule, Bytes(0), DeviceAddress()));
       }},
      {Primitive::kMap,
       [](Device& d, const Props& p) {
         return d.Map(RangeOf(p), p.granule, Offset(0), MemoryOf(p));
       }},
      {Primitive::kSetAccess,
       [](Device& d, const Props& p) {
         const std::array grants = {AccessGrant{p.self, Access::kReadWrite}};
         return d.SetAccess(MappedOf(p), p.granule, grants);
       }},
      {Primitive::kGetAccess,
       [](Device& d, const Props& p) { return StatusOf(d.GetAccess(MappedOf(p), p.self)); }},
      {Primitive::kUnmap,
       [](Device& d, const Props& p) { return d.Unmap(MappedOf(p), p.granule); }},
      {Primitive::kReleaseMemory,
       [](Device& d, const Props& p) { return d.ReleaseMemory(MemoryOf(p)); }},
      {Primitive::kFreeAddress,
       [](Device& d, const Props& p) { return d.FreeAddress(RangeOf(p), p.granule); }},
      {Primitive::kAllocateHost,
       [](Device& d, const Props&) { return StatusOf(d.AllocateHost(kSize, {})); }},
      {Primitive::kGetHostAddress,
       [](Device& d, const Props& p) { return StatusOf(d.GetHostAddress(HostOf(p))); }},
      {Primitive::kRegisterHost,
       [](Device& d, const Props& p) { return d.RegisterHost(p.pages.get(), kSize); }},
      {Primitive::kUnregisterHost,
       [](Device& d, const Props& p) { return d.UnregisterHost(p.pages.get()); }},
      {Primitive::kFreeHost, [](Device& d, const Props& p) { return d.FreeHost(HostOf(p)); }},
      {Primitive::kCanAccessPeer,
       [](Device& d, const Props& p) { return StatusOf(d.CanAccessPeer(p.self)); }},
      {Primitive::kEnablePeerAccess,
       [](Device& d, const Props& p) { return d.EnablePeerAccess(p.self); }},
      {Primitive::kDisablePeerAccess,
       [](Device& d, const Props& p) { return d.DisablePeerAccess(p.self); }},
  };
}

std::vector<PrimitiveCall> StreamCalls() {
  return {
      {Primitive::kCreateStream,
       [](Device& d, const Props&) { return StatusOf(d.CreateStream({})); }},
      {Primitive::kGetDefaultStream,
       [](Device& d, const Props&) {
         return StatusOf(d.GetDefaultStream(DefaultStream::kPerThread));
       }},
      {Primitive::kBorrowStream,
       [](Device& d, const Props& p) {
         return StatusOf(d.BorrowStream(HandleOf(p.stream).value));
       }},
      {Primitive::kQueryStream,
       [](Device& d, const Props& p) { return StatusOf(d.QueryStream(HandleOf(p.stream))); }},
      {Primitive::kSynchronizeStream,
       [](Device& d, const Props& p) { return d.SynchronizeStream(HandleOf(p.stream), InTime()); }},
      {Primitive::kSynchronize, [](Device& d, const Props&) { return d.Synchronize(InTime()); }},
      {Primitive::kCreateEvent,
       [](Device& d, const Props&) { return StatusOf(d.CreateEvent({})); }},
      {Primitive::kRecordEvent,
       [](Device& d, const Props& p) {
         return d.RecordEvent(HandleOf(p.event), HandleOf(p.stream));
       }},
      {Primitive::kWaitEvent,
       [](Device& d, const Props& p) {
         return d.WaitEvent(HandleOf(p.stream), HandleOf(p.event));
       }},
      {Primitive::kQueryEvent,
       [](Device& d, const Props& p) { return StatusOf(d.QueryEvent(HandleOf(p.event))); }},
      {Primitive::kSynchronizeEvent,
       [](Device& d, const Props& p) { return d.SynchronizeEvent(HandleOf(p.event), InTime()); }},
      {Primitive::kElapsedMilliseconds,
       [](Device& d, const Props& p) {
         return StatusOf(d.ElapsedMilliseconds(HandleOf(p.start), HandleOf(p.end)));
       }},
      {Primitive::kDestroyEvent,
       [](Device& d, const Props& p) { return d.DestroyEvent(HandleOf(p.event)); }},
      {Primitive::kCopy,
       [](Device& d, const Props& p) {
         return d.EnqueueCopy(HandleOf(p.stream), {.destination = Location::On(p.self, PlainOf(p)),
                                                   .source = Location::Host(p.pageable.data()),
                                                   .size = Bytes(64)});
       }},
      {Primitive::kFill,
       [](Device& d, const Props& p) { return d.EnqueueFill(HandleOf(p.stream), FillOf(p)); }},
      {Primitive::kWriteValue,
       [](Device& d, const Props& p) {
         return d.WriteValue(HandleOf(p.stream), {.destination = PlainOf(p), .value = 1});
       }},
      {Primitive::kWaitValue,
       [](Device& d, const Props& p) {
         return d.WaitValue(HandleOf(p.stream), {.source = PlainOf(p), .value = 1});
       }},
      {Primitive::kCallHost,
       [](Device& d, const Props& p) {
         return d.CallHost(HandleOf(p.stream), {.function = &DoNothing});
       }},
      {Primitive::kDestroyStream,
       [](Device& d, const Props& p) { return d.DestroyStream(HandleOf(p.stream)); }},
  };
}

std::vector<PrimitiveCall> KernelAndGraphCalls() {
  return {
      {Primitive::kLoadModule,
       [](Device& d, const Props& p) { return StatusOf(d.LoadModule(p.source)); }},
      {Primitive::kFindKernel,
       [](Device& d, const Props& p) {
         return StatusOf(d.FindKernel(HandleOf(p.module), kernels::kFill));
       }},
      {Primitive::kLaunchKernel,
       [](Device& d, const Props& p) {
         const std::array args = {KernelArg::Out(PlainOf(p), Bytes(16)),
                                  KernelArg::Value<std::uint32_t>(1),
                                  KernelArg::Value<std::uint64_t>(4)};
         return d.LaunchKernel(HandleOf(p.stream), {.kernel = p.fill, .args = args});
       }},
      {Primitive::kUnloadModule,
       [](Device& d, const Props& p) { return d.UnloadModule(HandleOf(p.module)); }},
      {Primitive::kBeginCapture,
       [](Device& d, const Props& p) {
         return d.BeginCapture(HandleOf(p.stream), CaptureMode::kRelaxed);
       }},
      {Primitive::kGetCaptureState,
       [](Device& d, const Props& p) {
         return StatusOf(d.GetCaptureState(HandleOf(p.capturing)));
       }},
      {Primitive::kGetCaptureFrontier,
       [](Device& d, const Props& p) {
         return StatusOf(d.GetCaptureFrontier(HandleOf(p.capturing)));
       }},
      {Primitive::kEndCapture,
       [](Device& d, const Props& p) { return StatusOf(d.EndCapture(HandleOf(p.capturing))); }},
      {Primitive::kCreateGraph, [](Device& d, const Props&) { return StatusOf(d.CreateGraph()); }},
      {Primitive::kAddNode,
       [](Device& d, const Props& p) {
         return StatusOf(d.AddNode(HandleOf(p.graph), {}, FillOf(p)));
       }},
      {Primitive::kGetNodes,
       [](Device& d, const Props& p) { return StatusOf(d.GetNodes(HandleOf(p.graph))); }},
      {Primitive::kInstantiate,
       [](Device& d, const Props& p) { return StatusOf(d.Instantiate(HandleOf(p.graph))); }},
      {Primitive::kLaunchGraph,
       [](Device& d, const Props& p) {
         return d.LaunchGraph(HandleOf(p.exec), HandleOf(p.stream));
       }},
      {Primitive::kUpdateExec,
       [](Device& d, const Props& p) {
         return StatusOf(d.UpdateExec(HandleOf(p.exec), HandleOf(p.graph)));
       }},
      {Primitive::kSetNodeParams,
       [](Device& d, const Props& p) {
         return d.SetNodeParams(HandleOf(p.exec), p.node, FillOf(p));
       }},
      {Primitive::kDestroyExec,
       [](Device& d, const Props& p) { return d.DestroyExec(HandleOf(p.exec)); }},
      {Primitive::kDestroyGraph,
       [](Device& d, const Props& p) { return d.DestroyGraph(HandleOf(p.graph)); }},
  };
}

std::shared_ptr<void> NewPages() {
  void* pages =
      mmap(nullptr, kSize.count(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  return {pages, [](void* mapped) { munmap(mapped, kSize.count()); }};
}

}  // namespace

Result<Props> Props::Create(CaseContext& context, int i) {
  const std::shared_ptr<Device> device = context.shared(i);
  const Capabilities& can = device->capabilities();
  Props props;
  props.self = device->id();
  props.granule = context.granule(i);
  props.pages = NewPages();
  KEEL_ASSIGN(props.stream, context.NewStream(i));
  KEEL_ASSIGN(props.event, context.NewEvent(i));
  KEEL_TRY(props.event.Record(props.stream.get()));
  KEEL_ASSIGN(props.plain, context.NewPlain(kSize, i));
  KEEL_ASSIGN(props.host, HostMemory::Create(device, kSize));
  if (can.event_timing) {
    KEEL_ASSIGN(props.start, Event::Create(device, {.timing = true}));
    KEEL_ASSIGN(props.end, Event::Create(device, {.timing = true}));
    KEEL_TRY(props.start.Record(props.stream.get()));
    KEEL_TRY(props.end.Record(props.stream.get()));
  }
  if (can.virtual_memory) {
    KEEL_ASSIGN(props.memory, PhysicalMemory::Create(device, props.granule,
                                                     {.exportable = can.exportable_memory}));
    KEEL_ASSIGN(props.range, AddressRange::Create(device, props.granule));
    KEEL_ASSIGN(props.mapped, MappedMemory::Create(device, props.granule));
  }
  if (can.kernels) {
    KEEL_ASSIGN(props.source, device->StandardKernels());
    KEEL_ASSIGN(props.module, Module::LoadStandard(device));
    KEEL_ASSIGN(props.fill, props.module.Find(kernels::kFill));
  }
  if (can.graphs) {
    KEEL_ASSIGN(props.graph, Graph::Create(device));
    KEEL_ASSIGN(props.node, device->AddNode(props.graph.get(), {}, FillOf(props)));
    KEEL_ASSIGN(props.exec, GraphExec::Create(props.graph));
    KEEL_ASSIGN(props.capturing, context.NewStream(i));
    KEEL_ASSIGN(props.capture,
                Capture::Begin(device, props.capturing.get(), CaptureMode::kRelaxed));
  }
  KEEL_TRY(props.stream.Synchronize(InTime()));
  return props;
}

const std::vector<PrimitiveCall>& AllPrimitives() {
  static const std::vector<PrimitiveCall> all = [] {
    std::vector<PrimitiveCall> calls = MemoryCalls();
    for (auto* more : {&StreamCalls, &KernelAndGraphCalls}) {
      for (PrimitiveCall& call : (*more)()) calls.push_back(std::move(call));
    }
    return calls;
  }();
  return all;
}

std::vector<Primitive> PrimitivesOf(bool Capabilities::* capability) {
  using P = Primitive;
  if (capability == &Capabilities::virtual_memory) {
    return {P::kCreateMemory,   P::kReleaseMemory, P::kExportMemory, P::kImportMemory,
            P::kReserveAddress, P::kFreeAddress,   P::kMap,          P::kUnmap,
            P::kSetAccess,      P::kGetAccess};
  }
  if (capability == &Capabilities::exportable_memory) return {P::kExportMemory, P::kImportMemory};
  if (capability == &Capabilities::host_registration) return {P::kRegisterHost};
  if (capability == &Capabilities::kernels) {
    return {P::kLoadModule, P::kUnloadModule, P::kFindKernel, P::kLaunchKernel};
  }
  if (capability == &Capabilities::host_calls) return {P::kCallHost};
  if (capability == &Capabilities::value_writes) return {P::kWriteValue};
  if (capability == &Capabilities::value_waits) return {P::kWaitValue};
  if (capability == &Capabilities::event_timing) return {P::kElapsedMilliseconds};
  if (capability == &Capabilities::graphs) {
    return {P::kBeginCapture, P::kEndCapture, P::kGetCaptureFrontier, P::kCreateGraph,
            P::kDestroyGraph, P::kAddNode,    P::kGetNodes,           P::kInstantiate,
            P::kDestroyExec,  P::kUpdateExec, P::kSetNodeParams,      P::kLaunchGraph};
  }
  if (capability == &Capabilities::graph_update) return {P::kUpdateExec};
  if (capability == &Capabilities::node_update) return {P::kSetNodeParams};
  return {};
}

void ExpectFromPrimitives(Device& device, const Props& props, StatusCode code,
                          const std::vector<Primitive>& wanted) {
  for (const PrimitiveCall& primitive : AllPrimitives()) {
    if (!wanted.empty() &&
        std::find(wanted.begin(), wanted.end(), primitive.primitive) == wanted.end()) {
      continue;
    }
    EXPECT_TRUE(HasCode({code}, primitive.call(device, props)))
        << "from " << PrimitiveName(primitive.primitive);
  }
}

}  // namespace keel::hal::conformance
