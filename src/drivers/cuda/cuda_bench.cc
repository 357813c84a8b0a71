// What the device layer costs on a real device: every primitive through Keel beside the same call
// of the library.
//
//   <operation>/direct   libcuda's entry points, on a thread that has the context current
//   <operation>/device   hal::Device, on a thread that has nothing current, as a program that only
//                        knows Keel
//
// Both ways use the same device, context and sizes, and take turns: direct, device, direct, ...
// (the number behind the name). The figures to compare are the medians of the turns. Commands are
// timed as the caller sees them: until they are queued, unless the operation says "wait". `calls`
// is how many primitives one iteration calls.

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "drivers/cuda/abi.h"
#include "drivers/cuda/cuda_api.h"
#include "drivers/shared/current_scope.h"
#include "drivers/shared/library.h"
#include "keel/hal/driver.h"
#include "keel/hal/standard_kernels.h"

namespace keel::cuda {
namespace {

using benchmark::State;
using vendor::Code;
using vendor::VendorApi;

// Entry points whose arguments the driver's table translates: here they are called as they are.
struct Raw {
  Code (*create)(std::uint64_t*, std::size_t, const abi::AllocationProp*, unsigned long long);
  Code (*export_handle)(void*, std::uint64_t, int, unsigned long long);
  Code (*import_handle)(std::uint64_t*, void*, int);
  Code (*set_access)(std::uint64_t, std::size_t, const abi::AccessDesc*, std::size_t);
  Code (*get_access)(unsigned long long*, const abi::Location*, std::uint64_t);
  Code (*host_allocate)(void**, std::size_t, unsigned);
  Code (*host_register)(void*, std::size_t, unsigned);
  Code (*synchronize)();
  Code (*stream_create)(void**, unsigned, int);
  Code (*stream_synchronize)(void*);
  Code (*event_create)(void**, unsigned);
  Code (*event_synchronize)(void*);
  Code (*wait_value)(void*, std::uint64_t, std::uint64_t, unsigned);
  Code (*capture_info)(void*, int*, std::uint64_t*, void**, void* const**, std::size_t*);
  Code (*add_kernel)(void**, void*, void* const*, std::size_t, const abi::KernelNodeParams*);
  Code (*set_kernel)(void*, void*, const abi::KernelNodeParams*);
  Code (*node_type)(void*, int*);
  Code (*exec_update)(void*, void*, abi::UpdateResultInfo*);

  static Result<Raw> Load() {
    Raw raw;
    KEEL_ASSIGN(vendor::Library library, vendor::Library::Open("CUDA", {"libcuda.so.1"}));
    library.Find(&raw.create, {"cuMemCreate"});
    library.Find(&raw.export_handle, {"cuMemExportToShareableHandle"});
    library.Find(&raw.import_handle, {"cuMemImportFromShareableHandle"});
    library.Find(&raw.set_access, {"cuMemSetAccess"});
    library.Find(&raw.get_access, {"cuMemGetAccess"});
    library.Find(&raw.host_allocate, {"cuMemHostAlloc"});
    library.Find(&raw.host_register, {"cuMemHostRegister_v2"});
    library.Find(&raw.synchronize, {"cuCtxSynchronize"});
    library.Find(&raw.stream_create, {"cuStreamCreateWithPriority"});
    library.Find(&raw.stream_synchronize, {"cuStreamSynchronize"});
    library.Find(&raw.event_create, {"cuEventCreate"});
    library.Find(&raw.event_synchronize, {"cuEventSynchronize"});
    library.Find(&raw.wait_value, {"cuStreamWaitValue64_v2"});
    library.Find(&raw.capture_info, {"cuStreamGetCaptureInfo_v2"});
    library.Find(&raw.add_kernel, {"cuGraphAddKernelNode_v2"});
    library.Find(&raw.set_kernel, {"cuGraphExecKernelNodeSetParams_v2"});
    library.Find(&raw.node_type, {"cuGraphNodeGetType"});
    library.Find(&raw.exec_update, {"cuGraphExecUpdate_v2"});
    KEEL_TRY(library.Missing());
    return raw;
  }
};

template <class T>
T Must(Result<T> result, const char* what) {
  if (result.ok()) return *std::move(result);
  std::fprintf(stderr, "cuda_bench: %s: %s\n", what, result.status().ToString().c_str());
  std::exit(1);
}

void* Pointer(std::uint64_t value) { return reinterpret_cast<void*>(value); }

constexpr std::size_t kNodes = 100;
constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;
// The largest buffers that copies use.
constexpr std::size_t kHostBytes = 256 * kMiB;

// What both ways work on, made once. `cu` holds the entry points that the table takes as they are.
struct Bench {
  const VendorApi& cu;
  Raw raw;
  std::shared_ptr<hal::Device> device;
  void* context = nullptr;

  hal::StreamHandle stream = Must(device->CreateStream({}), "a stream");
  hal::StreamHandle recording = Must(device->CreateStream({}), "a stream");
  hal::EventHandle event = Must(device->CreateEvent({.timing = true}), "an event");
  hal::EventHandle later = Must(device->CreateEvent({.timing = true}), "an event");
  DeviceAddress memory = Must(device->AllocatePlain(Bytes(2 * kGiB)), "memory");
  void* pinned = Must(device->AllocateHost(Bytes(kHostBytes), {}), "pinned memory");
  std::vector<std::byte> pageable = std::vector<std::byte>(kHostBytes, std::byte{1});
  hal::ModuleSource source = Must(device->StandardKernels(), "kernels");
  hal::ModuleHandle module = Must(device->LoadModule(source), "a module");
  hal::KernelHandle kernel = Must(device->FindKernel(module, hal::kernels::kFill), "a kernel");

  // The smallest kernel there is: it fills one word.
  std::uint64_t word = memory.value();
  std::uint32_t value = 1;
  std::uint64_t count = 1;
  std::array<void*, 3> raw_args = {&word, &value, &count};
  std::array<hal::KernelArg, 3> args = {hal::KernelArg::Out(memory, Bytes(4)),
                                        hal::KernelArg::Value(value), hal::KernelArg::Value(count)};

  hal::GraphHandle graph = Must(device->CreateGraph(), "a graph");
  std::vector<hal::NodeHandle> nodes = Chain();
  hal::ExecHandle exec = Must(device->Instantiate(graph), "an instantiated graph");

  hal::KernelLaunch launch() const { return {.kernel = kernel, .dims = {}, .args = args}; }
  abi::KernelNodeParams params() {
    abi::KernelNodeParams params;
    params.function = static_cast<abi::Function>(Pointer(kernel.value));
    params.arguments = raw_args.data();
    return params;
  }
  Code Launch(void* on) {
    return cu.launch(Pointer(kernel.value), 1, 1, 1, 1, 1, 1, 0, on, raw_args.data(), nullptr);
  }
  abi::AllocationProp prop(bool exportable = false) const {
    abi::AllocationProp prop;
    if (exportable) prop.requested_handle_types = abi::kHandlePosixDescriptor;
    return prop;
  }
  hal::Location on_device(std::uint64_t offset = 0) const {
    return hal::Location::On(device->id(), memory + Bytes(offset));
  }

 private:
  std::vector<hal::NodeHandle> Chain() {
    std::vector<hal::NodeHandle> chain;
    for (std::size_t i = 0; i < kNodes; ++i) {
      std::vector<hal::NodeHandle> before;
      if (!chain.empty()) before = {chain.back()};
      chain.push_back(Must(device->AddNode(graph, before, launch()), "a node"));
    }
    return chain;
  }
};

Bench* bench = nullptr;

// --- Measuring ---------------------------------------------------------------------------------

bool Ok(State& state, Code code) {
  if (code == vendor::kSuccess) return true;
  state.SkipWithError(fmt::format("the library returned {}", code).c_str());
  return false;
}
bool Ok(State& state, const Status& status) {
  if (status.ok()) return true;
  state.SkipWithError(status.ToString().c_str());
  return false;
}
template <class T>
bool Ok(State& state, const Result<T>& result) {
  return result.ok() || Ok(state, result.status());
}

template <class Call>
void Measure(State& state, Call& call) {
  for (auto _ : state) {
    if (!Ok(state, call(*bench))) return;
  }
}

// A stream's queue is bounded: so many commands, then it is waited for with the clock stopped.
template <class Call>
void MeasureQueued(State& state, Call& call) {
  constexpr std::int64_t kBatch = 32;
  while (state.KeepRunningBatch(kBatch)) {
    for (std::int64_t i = 0; i < kBatch; ++i) {
      if (!Ok(state, call(*bench))) return;
    }
    state.PauseTiming();
    const Status done = bench->device->SynchronizeStream(bench->stream, Deadline::Never());
    state.ResumeTiming();
    if (!Ok(state, done)) return;
  }
}

enum class Clock { kCall, kQueue };

struct Options {
  Clock clock = Clock::kCall;
  int calls = 1;
};

// Registers an operation in its two ways.
template <class Direct, class Device>
void Operation(const std::string& name, Direct direct, Device device, Options options = {}) {
  constexpr int kTurns = 9;
  const auto add = [&](const char* way, int turn, auto call) {
    const auto run = [call, options](State& state) mutable {
      vendor::CurrentScope scope(bench->cu, bench->context);
      if (options.clock == Clock::kQueue) {
        MeasureQueued(state, call);
      } else {
        Measure(state, call);
      }
      state.counters["calls"] = options.calls;
    };
    benchmark::RegisterBenchmark(fmt::format("{}/{}/{}", name, way, turn).c_str(), run);
  };
  for (int turn = 0; turn < kTurns; ++turn) {
    add("direct", turn, direct);
    add("device", turn, device);
  }
}

// Both calls, and the first failure.
Code Both(Code first, Code second) { return first != vendor::kSuccess ? first : second; }

std::string Sized(const char* name, std::size_t size) {
  return fmt::format("{} {}", name, ToString(Bytes(size)));
}

// --- Operations --------------------------------------------------------------------------------

void Memory() {
  Operation(
      "GetMemoryInfo",
      [](Bench& b) {
        std::size_t free = 0, total = 0;
        return b.cu.memory_info(&free, &total);
      },
      [](Bench& b) { return b.device->GetMemoryInfo(); });
  for (const std::size_t size : {2 * kMiB, 64 * kMiB}) {
    Operation(
        Sized("AllocatePlain + FreePlain", size),
        [size](Bench& b) {
          std::uint64_t address = 0;
          const Code code = b.cu.memory_allocate(&address, size);
          return Both(code, b.cu.memory_free(address));
        },
        [size](Bench& b) -> Status {
          KEEL_ASSIGN(const DeviceAddress address, b.device->AllocatePlain(Bytes(size)));
          return b.device->FreePlain(address);
        },
        {.calls = 2});
  }
  for (const std::size_t size : {64 * kKiB, 64 * kMiB}) {
    Operation(
        Sized("AllocateHost + FreeHost", size),
        [size](Bench& b) {
          void* pointer = nullptr;
          const Code code =
              b.raw.host_allocate(&pointer, size, abi::kHostPortable | abi::kHostDeviceMap);
          return Both(code, b.cu.host_free(pointer));
        },
        [size](Bench& b) -> Status {
          KEEL_ASSIGN(void* const pointer, b.device->AllocateHost(Bytes(size), {}));
          return b.device->FreeHost(pointer);
        },
        {.calls = 2});
  }
  static void* const pages =
      mmap(nullptr, 64 * kKiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Operation(
      "RegisterHost + UnregisterHost 64 KiB",
      [](Bench& b) {
        const Code code =
            b.raw.host_register(pages, 64 * kKiB, abi::kHostPortable | abi::kHostDeviceMap);
        return Both(code, b.cu.host_unregister(pages));
      },
      [](Bench& b) -> Status {
        KEEL_TRY(b.device->RegisterHost(pages, 64_KiB));
        return b.device->UnregisterHost(pages);
      },
      {.calls = 2});
  Operation(
      "GetHostAddress",
      [](Bench& b) {
        std::uint64_t address = 0;
        return b.cu.host_address(&address, b.pinned, 0);
      },
      [](Bench& b) { return b.device->GetHostAddress(b.pinned); });
  Operation(
      "CanAccessPeer",
      [](Bench& b) {
        int can = 0;
        return b.cu.can_access_peer(&can, 0, 0);
      },
      [](Bench& b) { return b.device->CanAccessPeer(b.device->id()); });
}

void VirtualMemory() {
  for (const std::size_t size : {2 * kMiB, 64 * kMiB, kGiB}) {
    Operation(
        Sized("CreateMemory + ReleaseMemory", size),
        [size](Bench& b) {
          std::uint64_t handle = 0;
          const abi::AllocationProp prop = b.prop();
          const Code code = b.raw.create(&handle, size, &prop, 0);
          return Both(code, b.cu.memory_release(handle));
        },
        [size](Bench& b) -> Status {
          KEEL_ASSIGN(const hal::MemoryHandle handle, b.device->CreateMemory(Bytes(size), {}));
          return b.device->ReleaseMemory(handle);
        },
        {.calls = 2});
    // One range and one memory, for both ways.
    const hal::MemoryHandle memory =
        Must(bench->device->CreateMemory(Bytes(size), {}), "physical memory");
    const DeviceAddress at =
        Must(bench->device->ReserveAddress(Bytes(size), Bytes(0), {}), "addresses");
    Operation(
        Sized("Map + SetAccess + Unmap", size),
        [=](Bench& b) {
          abi::AccessDesc access;
          access.flags = 3;
          Code code = b.cu.map(at.value(), size, 0, memory.value, 0);
          code = Both(code, b.raw.set_access(at.value(), size, &access, 1));
          return Both(code, b.cu.unmap(at.value(), size));
        },
        [=](Bench& b) -> Status {
          const std::array grants = {hal::AccessGrant{b.device->id(), hal::Access::kReadWrite}};
          KEEL_TRY(b.device->Map(at, Bytes(size), Offset(0), memory));
          KEEL_TRY(b.device->SetAccess(at, Bytes(size), grants));
          return b.device->Unmap(at, Bytes(size));
        },
        {.calls = 3});
  }
  Operation(
      "ReserveAddress + FreeAddress 256 GiB",
      [](Bench& b) {
        std::uint64_t address = 0;
        const Code code = b.cu.address_reserve(&address, 256 * kGiB, 0, 0, 0);
        return Both(code, b.cu.address_free(address, 256 * kGiB));
      },
      [](Bench& b) -> Status {
        KEEL_ASSIGN(const DeviceAddress address,
                    b.device->ReserveAddress(Bytes(256 * kGiB), Bytes(0), {}));
        return b.device->FreeAddress(address, Bytes(256 * kGiB));
      },
      {.calls = 2});

  const Bytes size(2 * kMiB);
  const hal::MemoryHandle memory =
      Must(bench->device->CreateMemory(size, {.exportable = true}), "physical memory");
  const DeviceAddress at = Must(bench->device->ReserveAddress(size, Bytes(0), {}), "addresses");
  const std::array grants = {hal::AccessGrant{bench->device->id(), hal::Access::kReadWrite}};
  if (!bench->device->Map(at, size, Offset(0), memory).ok() ||
      !bench->device->SetAccess(at, size, grants).ok()) {
    std::exit(1);
  }
  Operation(
      "SetAccess again",
      [=](Bench& b) {
        abi::AccessDesc access;
        access.flags = 3;
        return b.raw.set_access(at.value(), size.count(), &access, 1);
      },
      [=](Bench& b) { return b.device->SetAccess(at, size, grants); });
  Operation(
      "GetAccess",
      [=](Bench& b) {
        unsigned long long flags = 0;
        const abi::Location location;
        return b.raw.get_access(&flags, &location, at.value());
      },
      [=](Bench& b) { return b.device->GetAccess(at, b.device->id()); });
  Operation(
      "ExportMemory",
      [=](Bench& b) {
        int descriptor = -1;
        const Code code =
            b.raw.export_handle(&descriptor, memory.value, abi::kHandlePosixDescriptor, 0);
        close(descriptor);
        return code;
      },
      [=](Bench& b) { return b.device->ExportMemory(memory); });
  static const UniqueFd exported = Must(bench->device->ExportMemory(memory), "a descriptor");
  Operation(
      "ImportMemory + ReleaseMemory",
      [](Bench& b) {
        std::uint64_t handle = 0;
        const Code code =
            b.raw.import_handle(&handle, Pointer(static_cast<std::uint64_t>(exported.get())),
                                abi::kHandlePosixDescriptor);
        return Both(code, b.cu.memory_release(handle));
      },
      [size](Bench& b) -> Status {
        KEEL_ASSIGN(const hal::MemoryHandle handle, b.device->ImportMemory(exported.get(), size));
        return b.device->ReleaseMemory(handle);
      },
      {.calls = 2});
}

void StreamsAndEvents() {
  Operation(
      "CreateStream + DestroyStream",
      [](Bench& b) {
        void* stream = nullptr;
        const Code code = b.raw.stream_create(&stream, abi::kStreamNonBlocking, 0);
        return Both(code, b.cu.stream_destroy(stream));
      },
      [](Bench& b) -> Status {
        KEEL_ASSIGN(const hal::StreamHandle stream, b.device->CreateStream({}));
        return b.device->DestroyStream(stream);
      },
      {.calls = 2});
  Operation(
      "BorrowStream",
      [](Bench& b) {
        void* context = nullptr;
        return b.cu.stream_context(Pointer(b.stream.value), &context);
      },
      [](Bench& b) { return b.device->BorrowStream(b.stream.value); });
  Operation(
      "QueryStream", [](Bench& b) { return b.cu.stream_query(Pointer(b.stream.value)); },
      [](Bench& b) { return b.device->QueryStream(b.stream); });
  Operation(
      "SynchronizeStream idle",
      [](Bench& b) { return b.raw.stream_synchronize(Pointer(b.stream.value)); },
      [](Bench& b) { return b.device->SynchronizeStream(b.stream, Deadline::Never()); });
  // The library's own wait for a context is not what a library inside a program may call: it breaks
  // every capture that is open there. So both ways ask the streams, one after the other.
  Operation(
      "Synchronize idle, 2 streams",
      [](Bench& b) {
        Code code = vendor::kSuccess;
        for (const hal::StreamHandle stream : {b.stream, b.recording}) {
          int state = 0;
          code = Both(code, b.raw.capture_info(Pointer(stream.value), &state, nullptr, nullptr,
                                               nullptr, nullptr));
          if (state == 0) code = Both(code, b.cu.stream_query(Pointer(stream.value)));
        }
        return Both(code, b.cu.stream_query(Pointer(b.cu.legacy_stream)));
      },
      [](Bench& b) { return b.device->Synchronize(Deadline::Never()); }, {.calls = 5});
  Operation(
      "Synchronize idle, against the library's own", [](Bench& b) { return b.raw.synchronize(); },
      [](Bench& b) { return b.device->Synchronize(Deadline::Never()); });
  Operation(
      "CreateEvent + DestroyEvent",
      [](Bench& b) {
        void* event = nullptr;
        const Code code = b.raw.event_create(&event, abi::kEventDisableTiming);
        return Both(code, b.cu.event_destroy(event));
      },
      [](Bench& b) -> Status {
        KEEL_ASSIGN(const hal::EventHandle event, b.device->CreateEvent({}));
        return b.device->DestroyEvent(event);
      },
      {.calls = 2});
  Operation(
      "RecordEvent",
      [](Bench& b) { return b.cu.event_record(Pointer(b.event.value), Pointer(b.stream.value)); },
      [](Bench& b) { return b.device->RecordEvent(b.event, b.stream); }, {.clock = Clock::kQueue});
  Operation(
      "WaitEvent",
      [](Bench& b) {
        return b.cu.stream_wait_event(Pointer(b.stream.value), Pointer(b.event.value), 0);
      },
      [](Bench& b) { return b.device->WaitEvent(b.stream, b.event); }, {.clock = Clock::kQueue});
  Operation(
      "QueryEvent", [](Bench& b) { return b.cu.event_query(Pointer(b.event.value)); },
      [](Bench& b) { return b.device->QueryEvent(b.event); });
  Operation(
      "SynchronizeEvent done",
      [](Bench& b) { return b.raw.event_synchronize(Pointer(b.event.value)); },
      [](Bench& b) { return b.device->SynchronizeEvent(b.event, Deadline::Never()); });
  for (const hal::EventHandle event : {bench->event, bench->later}) {
    if (!bench->device->RecordEvent(event, bench->stream).ok()) std::exit(1);
  }
  Operation(
      "ElapsedMilliseconds",
      [](Bench& b) {
        float milliseconds = 0;
        return b.cu.event_elapsed(&milliseconds, Pointer(b.event.value), Pointer(b.later.value));
      },
      [](Bench& b) { return b.device->ElapsedMilliseconds(b.event, b.later); });
}

// A copy, until it is queued or until it is done.
void CopyOperation(const std::string& name, std::size_t size, Code (*direct)(Bench&, std::size_t),
                   hal::Copy (*copy)(Bench&), Clock clock) {
  const bool wait = clock == Clock::kCall;
  Operation(
      fmt::format("{} {}{}", name, ToString(Bytes(size)), wait ? ", wait" : ""),
      [=](Bench& b) {
        const Code code = direct(b, size);
        return wait ? Both(code, b.raw.stream_synchronize(Pointer(b.stream.value))) : code;
      },
      [=](Bench& b) -> Status {
        hal::Copy what = copy(b);
        what.size = Bytes(size);
        KEEL_TRY(b.device->EnqueueCopy(b.stream, what));
        return wait ? b.device->SynchronizeStream(b.stream, Deadline::Never()) : OkStatus();
      },
      {.clock = clock, .calls = wait ? 2 : 1});
}

void Copies() {
  const auto within = [](Bench& b, std::size_t size) {
    return b.cu.copy_within(b.memory.value() + kGiB, b.memory.value(), size,
                            Pointer(b.stream.value));
  };
  const auto within_copy = [](Bench& b) {
    return hal::Copy{b.on_device(kGiB), b.on_device(), Bytes(0)};
  };
  const auto in = [](Bench& b, std::size_t size) {
    return b.cu.copy_in(b.memory.value(), b.pinned, size, Pointer(b.stream.value));
  };
  const auto in_copy = [](Bench& b) {
    return hal::Copy{b.on_device(), hal::Location::Host(b.pinned), Bytes(0)};
  };
  const auto out = [](Bench& b, std::size_t size) {
    return b.cu.copy_out(b.pinned, b.memory.value(), size, Pointer(b.stream.value));
  };
  const auto out_copy = [](Bench& b) {
    return hal::Copy{hal::Location::Host(b.pinned), b.on_device(), Bytes(0)};
  };
  const auto pageable = [](Bench& b, std::size_t size) {
    return b.cu.copy_in(b.memory.value(), b.pageable.data(), size, Pointer(b.stream.value));
  };
  const auto pageable_copy = [](Bench& b) {
    return hal::Copy{b.on_device(), hal::Location::Host(b.pageable.data()), Bytes(0)};
  };
  CopyOperation("Copy D2D", kMiB, within, within_copy, Clock::kQueue);
  CopyOperation("Copy H2D pinned", 64 * kKiB, in, in_copy, Clock::kQueue);
  CopyOperation("Copy D2H pinned", 64 * kKiB, out, out_copy, Clock::kQueue);
  CopyOperation("Copy D2D", kGiB, within, within_copy, Clock::kCall);
  for (const std::size_t size : {64 * kKiB, kMiB, 256 * kMiB}) {
    CopyOperation("Copy H2D pinned", size, in, in_copy, Clock::kCall);
    CopyOperation("Copy H2D pageable", size, pageable, pageable_copy, Clock::kCall);
  }
}

void Commands() {
  Operation(
      "Fill 1 MiB",
      [](Bench& b) { return b.cu.fill32(b.memory.value(), 7, kMiB / 4, Pointer(b.stream.value)); },
      [](Bench& b) {
        return b.device->EnqueueFill(
            b.stream, {.destination = b.memory, .value = 7, .width = 4, .count = kMiB / 4});
      },
      {.clock = Clock::kQueue});
  Operation(
      "WriteValue",
      [](Bench& b) { return b.cu.write_value(Pointer(b.stream.value), b.memory.value(), 7, 0); },
      [](Bench& b) {
        return b.device->WriteValue(b.stream, {.destination = b.memory, .value = 7});
      },
      {.clock = Clock::kQueue});
  Operation(
      "WaitValue",
      [](Bench& b) {
        return b.raw.wait_value(Pointer(b.stream.value), b.memory.value(), 0, abi::kWaitGeq);
      },
      [](Bench& b) { return b.device->WaitValue(b.stream, {.source = b.memory, .value = 0}); },
      {.clock = Clock::kQueue});
  static constexpr auto kNothing = [](void*) {};
  Operation(
      "CallHost",
      [](Bench& b) { return b.cu.call_host(Pointer(b.stream.value), kNothing, nullptr); },
      [](Bench& b) {
        return b.device->CallHost(b.stream, {.function = kNothing, .data = nullptr});
      },
      {.clock = Clock::kQueue});
  static const std::string image(reinterpret_cast<const char*>(bench->source.image.data()),
                                 bench->source.image.size());
  Operation(
      "LoadModule + UnloadModule",
      [](Bench& b) {
        void* module = nullptr;
        const Code code = b.cu.module_load(&module, image.c_str());
        return Both(code, b.cu.module_unload(module));
      },
      [](Bench& b) -> Status {
        KEEL_ASSIGN(const hal::ModuleHandle module, b.device->LoadModule(b.source));
        return b.device->UnloadModule(module);
      },
      {.calls = 2});
  Operation(
      "FindKernel",
      [](Bench& b) {
        static const std::string name(hal::kernels::kFill);
        void* kernel = nullptr;
        return b.cu.module_kernel(&kernel, Pointer(b.module.value), name.c_str());
      },
      [](Bench& b) { return b.device->FindKernel(b.module, hal::kernels::kFill); });
  Operation(
      "LaunchKernel", [](Bench& b) { return b.Launch(Pointer(b.stream.value)); },
      [](Bench& b) { return b.device->LaunchKernel(b.stream, b.launch()); },
      {.clock = Clock::kQueue});
}

// Records `count` kernels, both ways.
Code CaptureDirect(Bench& b, std::size_t count, void** graph) {
  void* const stream = Pointer(b.recording.value);
  Code code = b.cu.capture_begin(stream, static_cast<int>(hal::CaptureMode::kThreadLocal));
  for (std::size_t i = 0; i < count; ++i) code = Both(code, b.Launch(stream));
  return Both(code, b.cu.capture_end(stream, graph));
}
Result<hal::GraphHandle> CaptureDevice(Bench& b, std::size_t count) {
  KEEL_TRY(b.device->BeginCapture(b.recording, hal::CaptureMode::kThreadLocal));
  for (std::size_t i = 0; i < count; ++i) {
    KEEL_TRY(b.device->LaunchKernel(b.recording, b.launch()));
  }
  return b.device->EndCapture(b.recording);
}

void Captures() {
  for (const std::size_t count : {std::size_t{0}, kNodes}) {
    Operation(
        count == 0 ? "BeginCapture + EndCapture" : "Capture of 100 kernels",
        [count](Bench& b) {
          void* graph = nullptr;
          const Code code = CaptureDirect(b, count, &graph);
          return Both(code, b.cu.graph_destroy(graph));
        },
        [count](Bench& b) -> Status {
          KEEL_ASSIGN(const hal::GraphHandle graph, CaptureDevice(b, count));
          return b.device->DestroyGraph(graph);
        },
        {.calls = static_cast<int>(count) + 3});
  }
  Operation(
      "Capture + UpdateExec, 100 kernels",
      [](Bench& b) {
        void* graph = nullptr;
        abi::UpdateResultInfo info;
        Code code = CaptureDirect(b, kNodes, &graph);
        code = Both(code, b.raw.exec_update(Pointer(b.exec.value), graph, &info));
        return Both(code, b.cu.graph_destroy(graph));
      },
      [](Bench& b) -> Status {
        KEEL_ASSIGN(const hal::GraphHandle graph, CaptureDevice(b, kNodes));
        KEEL_TRY(b.device->UpdateExec(b.exec, graph).status());
        return b.device->DestroyGraph(graph);
      },
      {.calls = static_cast<int>(kNodes) + 4});
  // A stream that captures from the first look at it to the program's end.
  static constexpr auto kOpen = [](Bench& b) {
    static const hal::StreamHandle open = [&] {
      const hal::StreamHandle stream = Must(b.device->CreateStream({}), "a stream");
      if (!b.device->BeginCapture(stream, hal::CaptureMode::kRelaxed).ok() ||
          !b.device->LaunchKernel(stream, b.launch()).ok()) {
        std::exit(1);
      }
      return stream;
    }();
    return open;
  };
  Operation(
      "GetCaptureState",
      [](Bench& b) {
        int state = 0;
        return b.raw.capture_info(Pointer(kOpen(b).value), &state, nullptr, nullptr, nullptr,
                                  nullptr);
      },
      [](Bench& b) { return b.device->GetCaptureState(kOpen(b)); });
  Operation(
      "GetCaptureFrontier",
      [](Bench& b) {
        int state = 0;
        void* const* nodes = nullptr;
        std::size_t count = 0;
        return b.raw.capture_info(Pointer(kOpen(b).value), &state, nullptr, nullptr, &nodes,
                                  &count);
      },
      [](Bench& b) { return b.device->GetCaptureFrontier(kOpen(b)); });
}

Code ListDirect(Bench& b) {
  std::size_t count = 0;
  void* const graph = Pointer(b.graph.value);
  Code code = b.cu.graph_nodes(graph, nullptr, &count);
  std::vector<void*> nodes(count);
  code = Both(code, b.cu.graph_nodes(graph, nodes.data(), &count));
  for (void* node : nodes) {
    int type = 0;
    code = Both(code, b.raw.node_type(node, &type));
    std::size_t before = 0;
    code = Both(code, b.cu.node_dependencies(node, nullptr, &before));
    std::vector<void*> dependencies(before);
    if (before > 0) {
      code = Both(code, b.cu.node_dependencies(node, dependencies.data(), &before));
    }
  }
  return code;
}

void Graphs() {
  Operation(
      "CreateGraph + DestroyGraph",
      [](Bench& b) {
        void* graph = nullptr;
        const Code code = b.cu.graph_create(&graph, 0);
        return Both(code, b.cu.graph_destroy(graph));
      },
      [](Bench& b) -> Status {
        KEEL_ASSIGN(const hal::GraphHandle graph, b.device->CreateGraph());
        return b.device->DestroyGraph(graph);
      },
      {.calls = 2});
  Operation(
      "AddNode, 100 kernels",
      [](Bench& b) {
        void* graph = nullptr;
        Code code = b.cu.graph_create(&graph, 0);
        const abi::KernelNodeParams params = b.params();
        for (std::size_t i = 0; i < kNodes; ++i) {
          void* node = nullptr;
          code = Both(code, b.raw.add_kernel(&node, graph, nullptr, 0, &params));
        }
        return Both(code, b.cu.graph_destroy(graph));
      },
      [](Bench& b) -> Status {
        KEEL_ASSIGN(const hal::GraphHandle graph, b.device->CreateGraph());
        for (std::size_t i = 0; i < kNodes; ++i) {
          KEEL_TRY(b.device->AddNode(graph, {}, b.launch()).status());
        }
        return b.device->DestroyGraph(graph);
      },
      {.calls = 102});
  Operation("GetNodes, 100 kernels", ListDirect,
            [](Bench& b) { return b.device->GetNodes(b.graph); },
            {.calls = 2 + 3 * static_cast<int>(kNodes)});
  Operation(
      "Instantiate + DestroyExec, 100 kernels",
      [](Bench& b) {
        void* exec = nullptr;
        const Code code = b.cu.instantiate(&exec, Pointer(b.graph.value), 0);
        return Both(code, b.cu.exec_destroy(exec));
      },
      [](Bench& b) -> Status {
        KEEL_ASSIGN(const hal::ExecHandle exec, b.device->Instantiate(b.graph));
        return b.device->DestroyExec(exec);
      },
      {.calls = 2});
  Operation(
      "UpdateExec, 100 kernels",
      [](Bench& b) {
        abi::UpdateResultInfo info;
        return b.raw.exec_update(Pointer(b.exec.value), Pointer(b.graph.value), &info);
      },
      [](Bench& b) { return b.device->UpdateExec(b.exec, b.graph); });
  Operation(
      "SetNodeParams",
      [](Bench& b) {
        const abi::KernelNodeParams params = b.params();
        return b.raw.set_kernel(Pointer(b.exec.value), Pointer(b.nodes[50].value), &params);
      },
      [](Bench& b) { return b.device->SetNodeParams(b.exec, b.nodes[50], b.launch()); });
  Operation(
      "LaunchGraph, 100 kernels",
      [](Bench& b) { return b.cu.graph_launch(Pointer(b.exec.value), Pointer(b.stream.value)); },
      [](Bench& b) { return b.device->LaunchGraph(b.exec, b.stream); }, {.clock = Clock::kQueue});
  Operation(
      "LaunchGraph, 100 kernels, wait",
      [](Bench& b) {
        const Code code = b.cu.graph_launch(Pointer(b.exec.value), Pointer(b.stream.value));
        return Both(code, b.raw.stream_synchronize(Pointer(b.stream.value)));
      },
      [](Bench& b) -> Status {
        KEEL_TRY(b.device->LaunchGraph(b.exec, b.stream));
        return b.device->SynchronizeStream(b.stream, Deadline::Never());
      },
      {.calls = 2});
  Operation(
      "100 kernels without a graph, wait",
      [](Bench& b) {
        Code code = vendor::kSuccess;
        for (std::size_t i = 0; i < kNodes; ++i)
          code = Both(code, b.Launch(Pointer(b.stream.value)));
        return Both(code, b.raw.stream_synchronize(Pointer(b.stream.value)));
      },
      [](Bench& b) -> Status {
        for (std::size_t i = 0; i < kNodes; ++i) {
          KEEL_TRY(b.device->LaunchKernel(b.stream, b.launch()));
        }
        return b.device->SynchronizeStream(b.stream, Deadline::Never());
      },
      {.calls = 101});
}

// From the call until the host reads the value.
void WriteUntilSeen() {
  static auto* const word = static_cast<std::uint64_t*>(bench->pinned);
  static const DeviceAddress at = Must(bench->device->GetHostAddress(word), "an address");
  static std::uint64_t next = 0;
  const auto await = [] {
    while (std::atomic_ref(*word).load(std::memory_order_acquire) != next) {
    }
  };
  Operation(
      "WriteValue, until the host sees it",
      [=](Bench& b) {
        const Code code = b.cu.write_value(Pointer(b.stream.value), at.value(), ++next, 0);
        if (code == vendor::kSuccess) await();
        return code;
      },
      [=](Bench& b) {
        Status status = b.device->WriteValue(b.stream, {.destination = at, .value = ++next});
        if (status.ok()) await();
        return status;
      });
}

int Main(int argc, char** argv) {
  const auto driver = hal::Registry::Global().Find("cuda");
  const auto devices = (*driver)->Enumerate();
  if (!devices.ok() || devices->empty()) {
    std::fprintf(stderr, "cuda_bench: nothing to measure: %s\n",
                 devices.ok() ? "no CUDA device" : devices.status().ToString().c_str());
    return 0;
  }
  const VendorApi* const api = Must(LoadApi(), "the library");
  static Bench the_bench{*api, Must(Raw::Load(), "the library"), Must((*driver)->Open(0), "open")};
  bench = &the_bench;
  // The device has retained it: this only asks which one it is.
  if (api->context_retain(&bench->context, 0) != vendor::kSuccess) return 1;

  Memory();
  VirtualMemory();
  StreamsAndEvents();
  Copies();
  Commands();
  WriteUntilSeen();
  Graphs();
  Captures();

  // Short turns, many of them; what the caller says comes later and wins.
  std::string time = "--benchmark_min_time=0.02";
  std::vector<char*> arguments = {argv[0], time.data()};
  arguments.insert(arguments.end(), argv + 1, argv + argc);
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  // The process's end gives everything back at once, an open capture too.
  std::fflush(nullptr);
  std::_Exit(0);
}

}  // namespace
}  // namespace keel::cuda

int main(int argc, char** argv) { return keel::cuda::Main(argc, argv); }
