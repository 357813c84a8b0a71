// What cuda_bench measures with: the device and the library side by side, and how an operation is
// timed in both ways.
//
//   <operation>/direct   libcuda's entry points
//   <operation>/device   hal::Device
//
// Both ways use the same device, context and sizes, on a thread that has the context current (what
// direct calls need; where nothing is current Keel sets it, and puts it back, around the calls that
// need it), and take turns: direct, device, direct, ... (the number behind the name). The figures
// to compare are the medians of the turns. Commands are timed as the caller sees them: until they
// are queued, unless the operation says "wait". `calls` is how many calls of the library one
// iteration of the direct way makes.
#pragma once

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drivers/cuda/abi.h"
#include "drivers/shared/current_scope.h"
#include "drivers/shared/vendor_api.h"
#include "keel/hal/device.h"
#include "keel/hal/standard_kernels.h"

namespace keel::cuda::benchmarks {

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

  static Result<Raw> Load();
};

template <class T>
T Must(Result<T> result, const char* what) {
  if (result.ok()) return *std::move(result);
  std::fprintf(stderr, "cuda_bench: %s: %s\n", what, result.status().ToString().c_str());
  std::exit(1);
}

inline void* Pointer(std::uint64_t value) { return reinterpret_cast<void*>(value); }

inline constexpr std::size_t kNodes = 100;
inline constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;
// The largest buffers that copies use.
inline constexpr std::size_t kHostBytes = 256 * kMiB;

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

inline Bench* bench = nullptr;

// --- Measuring ---------------------------------------------------------------------------------

inline bool Ok(State& state, Code code) {
  if (code == vendor::kSuccess) return true;
  state.SkipWithError(fmt::format("the library returned {}", code).c_str());
  return false;
}
inline bool Ok(State& state, const Status& status) {
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
  // Why the two ways are not the same work: such an operation is shown, and held to no budget.
  const char* unlike = nullptr;
};

// Registers an operation in its two ways.
template <class Direct, class Device>
void Operation(const std::string& name, Direct direct, Device device, Options options = {}) {
  constexpr int kTurns = 17;  // many and short: the two ways of a turn see the same machine
  const auto add = [&](const char* way, int turn, auto call) {
    const auto run = [call, options](State& state) mutable {
      vendor::CurrentScope scope(bench->cu, bench->context);
      if (options.clock == Clock::kQueue) {
        MeasureQueued(state, call);
      } else {
        Measure(state, call);
      }
      state.counters["calls"] = options.calls;
      if (options.unlike != nullptr) state.SetLabel(options.unlike);
    };
    benchmark::RegisterBenchmark(fmt::format("{}/{}/{}", name, way, turn).c_str(), run);
  };
  for (int turn = 0; turn < kTurns; ++turn) {
    // Who goes first alternates, so that what a turn's first part costs is nobody's.
    if (turn % 2 == 0) add("direct", turn, direct);
    add("device", turn, device);
    if (turn % 2 != 0) add("direct", turn, direct);
  }
}

// Both calls, and the first failure.
inline Code Both(Code first, Code second) { return first != vendor::kSuccess ? first : second; }

inline std::string Sized(const char* name, std::size_t size) {
  return fmt::format("{} {}", name, ToString(Bytes(size)));
}

// The operations, each group in a file of its own. Called once, before anything is measured.
void AddMemory();
void AddWork();
void AddGraphs();

}  // namespace keel::cuda::benchmarks
