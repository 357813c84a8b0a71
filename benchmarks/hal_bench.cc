// What the device layer costs by itself.
//
// One operation is named <operation>/<way>, and every way does the same work on the same device:
//   direct        the simulated device's own class, which is final: no virtual call
//   device        hal::Device, as every layer above calls it
//   instrumented  the same through hal::Instrumented
//   owner         the owning class (Stream, Event, Mapping, ...)
// So device - direct is what the abstraction costs, and owner - device what ownership does.
//
// Then streams/... and graph/...: how fast commands go through streams.
//
// All run on the default device (KEEL_DRIVER chooses); where that is not simulated, "direct" says
// so and is left out.

#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "drivers/sim/sim_device.h"
#include "keel/drivers/sim.h"
#include "keel/hal/driver.h"
#include "keel/hal/event.h"
#include "keel/hal/graph.h"
#include "keel/hal/instrumented.h"
#include "keel/hal/memory.h"
#include "keel/hal/module.h"
#include "keel/hal/standard_kernels.h"
#include "keel/hal/stream.h"

namespace keel {
namespace {

using benchmark::State;

// A queue that only grows would measure its own memory, and a real device's would be full: so
// that many commands are put on a stream, and then it is waited for with the clock stopped.
constexpr std::int64_t kBatch = 256;

// --- The device --------------------------------------------------------------------------------

const std::shared_ptr<hal::Device>& DefaultDevice() {
  static const std::shared_ptr<hal::Device> device = [] {
    auto opened = hal::Registry::Global().OpenDefault();
    if (!opened.ok()) {
      std::cerr << "hal_bench: " << opened.status().ToString() << "\n";
      std::exit(1);
    }
    return *std::move(opened);
  }();
  return device;
}

const std::shared_ptr<hal::InstrumentedDevice>& InstrumentedDefault() {
  static const std::shared_ptr<hal::InstrumentedDevice> device = hal::Instrumented(DefaultDevice());
  return device;
}

// Null where the default device is not simulated.
sim::SimDevice* SimulatedDefault() {
  hal::Device& inner = DefaultDevice()->Innermost();
  return sim::FindControls(inner) == nullptr ? nullptr : static_cast<sim::SimDevice*>(&inner);
}

// False, and the benchmark is reported as failed, unless `status` is OK.
bool Check(State& state, const Status& status) {
  if (status.ok()) return true;
  state.SkipWithError(status.ToString().c_str());
  return false;
}

template <class T>
bool Check(State& state, const Result<T>& result) {
  if (result.ok()) return true;
  return Check(state, result.status());
}

// Puts a command on a stream, over and over; the time is that of the call.
template <class Enqueue>
void MeasureEnqueue(State& state, hal::Device& device, hal::StreamHandle stream, Enqueue enqueue) {
  while (state.KeepRunningBatch(kBatch)) {
    for (std::int64_t i = 0; i < kBatch; ++i) {
      if (const Status status = enqueue(); !status.ok()) {
        Check(state, status);
        return;
      }
    }
    state.PauseTiming();
    const Status done = device.SynchronizeStream(stream, Deadline::Never());
    state.ResumeTiming();
    if (!Check(state, done)) return;
  }
}

// The smallest kernel there is: it fills one element.
class TinyKernel {
 public:
  static Result<TinyKernel> Create(const std::shared_ptr<hal::Device>& device) {
    TinyKernel kernel;
    KEEL_ASSIGN(kernel.module_, hal::Module::LoadStandard(device));
    KEEL_ASSIGN(kernel.kernel_, kernel.module_.Find(hal::kernels::kFill));
    KEEL_ASSIGN(kernel.memory_, hal::PlainMemory::Create(device, kSize));
    kernel.args_ = {hal::KernelArg::Out(kernel.memory_.address(), kSize),
                    hal::KernelArg::Value(std::uint32_t{1}),
                    hal::KernelArg::Value(std::uint64_t{1})};
    return kernel;
  }
  hal::KernelLaunch launch() const { return {.kernel = kernel_, .dims = {}, .args = args_}; }

 private:
  static constexpr Bytes kSize{sizeof(std::uint32_t)};
  hal::Module module_;
  hal::KernelHandle kernel_;
  hal::PlainMemory memory_;
  std::array<hal::KernelArg, 3> args_;
};

// --- Operations, each as a template over the class that is called
// ---------------------------------- `D` is hal::Device or hal::InstrumentedDevice (a virtual call)
// or sim::SimDevice (none).

struct QueryEvent {
  static constexpr const char* kName = "QueryEvent";
  template <class D>
  static void Run(State& state, D& device) {
    auto event = hal::Event::Create(DefaultDevice());
    if (!Check(state, event)) return;
    const hal::EventHandle handle = event->get();
    for (auto _ : state) {
      if (!Check(state, device.QueryEvent(handle))) return;
    }
  }
  static void RunOwner(State& state) {
    auto event = hal::Event::Create(DefaultDevice());
    if (!Check(state, event)) return;
    for (auto _ : state) {
      if (!Check(state, event->Query())) return;
    }
  }
};

struct RecordEvent {
  static constexpr const char* kName = "RecordEvent";
  template <class D>
  static void Run(State& state, D& device) {
    auto event = hal::Event::Create(DefaultDevice());
    auto stream = hal::Stream::Create(DefaultDevice());
    if (!Check(state, event) || !Check(state, stream)) return;
    const hal::EventHandle handle = event->get();
    const hal::StreamHandle on = stream->get();
    MeasureEnqueue(state, device, on, [&] { return device.RecordEvent(handle, on); });
  }
  static void RunOwner(State& state) {
    auto event = hal::Event::Create(DefaultDevice());
    auto stream = hal::Stream::Create(DefaultDevice());
    if (!Check(state, event) || !Check(state, stream)) return;
    MeasureEnqueue(state, *DefaultDevice(), stream->get(),
                   [&] { return event->Record(stream->get()); });
  }
};

struct GetMemoryInfo {
  static constexpr const char* kName = "GetMemoryInfo";
  template <class D>
  static void Run(State& state, D& device) {
    for (auto _ : state) {
      if (!Check(state, device.GetMemoryInfo())) return;
    }
  }
};

struct LaunchKernel {
  static constexpr const char* kName = "LaunchKernel";
  template <class D>
  static void Run(State& state, D& device) {
    auto kernel = TinyKernel::Create(DefaultDevice());
    auto stream = hal::Stream::Create(DefaultDevice());
    if (!Check(state, kernel) || !Check(state, stream)) return;
    const hal::KernelLaunch launch = kernel->launch();
    MeasureEnqueue(state, device, stream->get(),
                   [&] { return device.LaunchKernel(stream->get(), launch); });
  }
};

struct CreateEvent {
  static constexpr const char* kName = "CreateEvent+DestroyEvent";
  template <class D>
  static void Run(State& state, D& device) {
    for (auto _ : state) {
      auto event = device.CreateEvent({});
      if (!Check(state, event) || !Check(state, device.DestroyEvent(*event))) return;
    }
  }
  static void RunOwner(State& state) {
    for (auto _ : state) {
      auto event = hal::Event::Create(DefaultDevice());
      if (!Check(state, event)) return;
    }
  }
};

struct CreateStream {
  static constexpr const char* kName = "CreateStream+DestroyStream";
  template <class D>
  static void Run(State& state, D& device) {
    for (auto _ : state) {
      auto stream = device.CreateStream({});
      if (!Check(state, stream) || !Check(state, device.DestroyStream(*stream))) return;
    }
  }
  static void RunOwner(State& state) {
    for (auto _ : state) {
      auto stream = hal::Stream::Create(DefaultDevice());
      if (!Check(state, stream)) return;
    }
  }
};

struct CreateMemory {
  static constexpr const char* kName = "CreateMemory+ReleaseMemory";
  template <class D>
  static void Run(State& state, D& device) {
    const Bytes size = device.capabilities().granularity.minimum;
    for (auto _ : state) {
      auto memory = device.CreateMemory(size, {});
      if (!Check(state, memory) || !Check(state, device.ReleaseMemory(*memory))) return;
    }
  }
  static void RunOwner(State& state) {
    const Bytes size = DefaultDevice()->capabilities().granularity.minimum;
    for (auto _ : state) {
      auto memory = hal::PhysicalMemory::Create(DefaultDevice(), size);
      if (!Check(state, memory)) return;
    }
  }
};

struct MapMemory {
  static constexpr const char* kName = "Map+SetAccess+Unmap";
  template <class D>
  static void Run(State& state, D& device) {
    const Bytes size = device.capabilities().granularity.minimum;
    const std::array grants = {hal::AccessGrant{device.id(), hal::Access::kReadWrite}};
    auto memory = hal::PhysicalMemory::Create(DefaultDevice(), size);
    auto range = hal::AddressRange::Create(DefaultDevice(), size);
    if (!Check(state, memory) || !Check(state, range)) return;
    const DeviceAddress at = range->address();
    const hal::MemoryHandle handle = memory->handle();
    for (auto _ : state) {
      if (!Check(state, device.Map(at, size, Offset(0), handle))) return;
      if (!Check(state, device.SetAccess(at, size, grants))) return;
      if (!Check(state, device.Unmap(at, size))) return;
    }
  }
  static void RunOwner(State& state) {
    const Bytes size = DefaultDevice()->capabilities().granularity.minimum;
    const std::array grants = {hal::AccessGrant{DefaultDevice()->id(), hal::Access::kReadWrite}};
    auto memory = hal::PhysicalMemory::Create(DefaultDevice(), size);
    auto range = hal::AddressRange::Create(DefaultDevice(), size);
    if (!Check(state, memory) || !Check(state, range)) return;
    for (auto _ : state) {
      auto mapping = hal::Mapping::Create(*range, Offset(0), *memory, grants);
      if (!Check(state, mapping)) return;
    }
  }
};

// --- Throughput ----------------------------------------------------------------------------------

// Commands per stream and iteration; the streams are fed in turn by one thread, then all are
// waited for.
constexpr std::int64_t kPerStream = 1000;

template <class Enqueue>
void MeasureStreams(State& state, Enqueue enqueue) {
  std::vector<hal::Stream> streams;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    auto stream = hal::Stream::Create(DefaultDevice());
    if (!Check(state, stream)) return;
    streams.push_back(*std::move(stream));
  }
  for (auto _ : state) {
    for (std::int64_t i = 0; i < kPerStream; ++i) {
      for (const hal::Stream& stream : streams) {
        if (!Check(state, enqueue(stream.get()))) return;
      }
    }
    for (const hal::Stream& stream : streams) {
      if (!Check(state, stream.Synchronize())) return;
    }
  }
  state.SetItemsProcessed(state.iterations() * state.range(0) * kPerStream);
}

void StreamsHostCalls(State& state) {
  MeasureStreams(state, [](hal::StreamHandle stream) {
    return DefaultDevice()->CallHost(stream, {.function = [](void*) {}, .data = nullptr});
  });
}

void StreamsKernels(State& state) {
  auto kernel = TinyKernel::Create(DefaultDevice());
  if (!Check(state, kernel)) return;
  const hal::KernelLaunch launch = kernel->launch();
  MeasureStreams(state, [&](hal::StreamHandle stream) {
    return DefaultDevice()->LaunchKernel(stream, launch);
  });
}

// A chain of `nodes` tiny kernels, instantiated.
Result<hal::GraphExec> CreateChain(const TinyKernel& kernel, std::int64_t nodes) {
  KEEL_ASSIGN(const hal::Graph graph, hal::Graph::Create(DefaultDevice()));
  std::vector<hal::NodeHandle> before;
  for (std::int64_t i = 0; i < nodes; ++i) {
    KEEL_ASSIGN(const hal::NodeHandle node,
                DefaultDevice()->AddNode(graph.get(), before, kernel.launch()));
    before = {node};
  }
  return hal::GraphExec::Create(graph);
}

// What the launching thread spends.
void GraphLaunch(State& state) {
  constexpr std::int64_t kLaunches = 16;
  auto kernel = TinyKernel::Create(DefaultDevice());
  auto stream = hal::Stream::Create(DefaultDevice());
  if (!Check(state, kernel) || !Check(state, stream)) return;
  auto exec = CreateChain(*kernel, state.range(0));
  if (!Check(state, exec)) return;
  while (state.KeepRunningBatch(kLaunches)) {
    for (std::int64_t i = 0; i < kLaunches; ++i) {
      if (!Check(state, exec->Launch(stream->get()))) return;
    }
    state.PauseTiming();
    const Status done = stream->Synchronize();
    state.ResumeTiming();
    if (!Check(state, done)) return;
  }
}

// From the launch to the end of the work.
void GraphLaunchAndWait(State& state) {
  auto kernel = TinyKernel::Create(DefaultDevice());
  auto stream = hal::Stream::Create(DefaultDevice());
  if (!Check(state, kernel) || !Check(state, stream)) return;
  auto exec = CreateChain(*kernel, state.range(0));
  if (!Check(state, exec)) return;
  for (auto _ : state) {
    if (!Check(state, exec->Launch(stream->get())) || !Check(state, stream->Synchronize())) return;
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

// --- Registration --------------------------------------------------------------------------------

template <class Operation>
void Register() {
  const std::string name = Operation::kName;
  benchmark::RegisterBenchmark((name + "/direct").c_str(), [](State& state) {
    sim::SimDevice* device = SimulatedDefault();
    if (device == nullptr) {
      state.SkipWithError("the default device is not simulated");
      return;
    }
    Operation::Run(state, *device);
  });
  benchmark::RegisterBenchmark((name + "/device").c_str(),
                               [](State& state) { Operation::Run(state, *DefaultDevice()); });
  benchmark::RegisterBenchmark((name + "/instrumented").c_str(),
                               [](State& state) { Operation::Run(state, *InstrumentedDefault()); });
  if constexpr (requires(State& state) { Operation::RunOwner(state); }) {
    benchmark::RegisterBenchmark((name + "/owner").c_str(), Operation::RunOwner);
  }
}

[[maybe_unused]] const bool kRegistered = [] {
  Register<QueryEvent>();
  Register<RecordEvent>();
  Register<GetMemoryInfo>();
  Register<LaunchKernel>();
  Register<CreateEvent>();
  Register<CreateStream>();
  Register<CreateMemory>();
  Register<MapMemory>();
  using Function = void (*)(State&);
  const std::pair<const char*, Function> throughput[] = {{"streams/host_calls", StreamsHostCalls},
                                                         {"streams/kernels", StreamsKernels}};
  for (const auto& [name, function] : throughput) {
    benchmark::RegisterBenchmark(name, function)
        ->ArgName("streams")
        ->RangeMultiplier(2)
        ->Range(1, 8)
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::RegisterBenchmark("graph/launch", GraphLaunch)->ArgName("nodes")->Arg(100);
  benchmark::RegisterBenchmark("graph/launch_and_wait", GraphLaunchAndWait)
      ->ArgName("nodes")
      ->Arg(100)
      ->UseRealTime();
  return true;
}();

}  // namespace
}  // namespace keel
