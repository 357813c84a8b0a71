// Pinned host memory and pageable copies, on the default device (KEEL_DRIVER chooses).
//
//   pinned ...            HostAllocator: Allocate and Free of one size
//     /cached             from the cache
//     /used               the same, with a stream recorded: an event for each Free
//     /driver             with the cache off: the driver's own calls
//   waste ...             the most held over the most asked for, on odd sizes of random lifetime
//   to device, to host    a copy of pageable memory, until its bytes are there
//     /own                the device's own copy
//     /staged             Staging
// Ways take turns (the number behind the name); the table at the end has their medians.
//
// Own options, to find the best settings of a machine: --threshold --least-chunk --most-chunk
// --pieces --buffers --threads --share --slice --inline-limit --linger (microseconds).
// --json prints JSON and no table. All others are those of Google Benchmark.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "keel/hal/driver.h"
#include "keel/hal/memory.h"
#include "keel/hal/stream.h"
#include "keel/memory/host_allocator.h"
#include "keel/memory/parallel_copy.h"
#include "keel/memory/staging.h"

namespace keel::memory {
namespace {

using benchmark::State;

constexpr int kTurns = 5;
constexpr Bytes kLargestCopy = 256_MiB;

[[noreturn]] void Fail(const std::string& problem) {
  std::fprintf(stderr, "host_bench: %s\n", problem.c_str());
  std::exit(1);
}

template <class T>
T Must(Result<T> result) {
  if (!result.ok()) Fail(result.status().ToString());
  return *std::move(result);
}

bool Check(State& state, const Status& status) {
  if (status.ok()) return true;
  state.SkipWithError(status.ToString().c_str());
  return false;
}

struct Settings {
  StagingOptions staging;
  ParallelCopyOptions copy;
  bool json = false;
};

// Made once, for all.
struct Bench {
  explicit Bench(const Settings& settings)
      : copy(std::make_shared<ParallelCopy>(settings.copy)),
        staging({.allocator = allocator, .copy = copy}, settings.staging) {
    std::memset(pageable.data(), 1, pageable.size());
  }

  std::shared_ptr<hal::Device> device = Must(hal::Registry::Global().OpenDefault());
  std::shared_ptr<HostAllocator> allocator = std::make_shared<HostAllocator>(device);
  HostAllocator uncached{device, {.cache = false}};
  std::shared_ptr<ParallelCopy> copy;
  Staging staging;
  hal::Stream stream = Must(hal::Stream::Create(device));
  hal::PlainMemory memory = Must(hal::PlainMemory::Create(device, kLargestCopy));
  std::vector<std::byte> pageable = std::vector<std::byte>(kLargestCopy.count());
};
Bench* bench = nullptr;

// --- Pinned memory -----------------------------------------------------------------------------

void Pair(State& state, HostAllocator& allocator, Bytes size) {
  for (auto _ : state) {
    const Result<void*> pointer = allocator.Allocate(size);
    if (!pointer.ok() || !allocator.Free(*pointer).ok()) {
      Check(state, pointer.status());
      return;
    }
  }
}

void UsedPair(State& state, Bytes size) {
  for (auto _ : state) {
    const Result<void*> pointer = bench->allocator->Allocate(size);
    if (!Check(state, pointer.status())) return;
    if (!Check(state, bench->allocator->RecordUse(*pointer, bench->stream.get()))) return;
    if (!Check(state, bench->allocator->Free(*pointer))) return;
  }
}

// Sizes of all magnitudes, evenly, each for a random time.
void Waste(State& state, std::size_t most_live) {
  for (auto _ : state) {
    HostAllocator allocator(bench->device);
    std::mt19937_64 random(most_live);
    std::uniform_real_distribution<double> exponent(std::log(1024.0), std::log(64.0 * 1048576));
    std::vector<void*> live;
    const auto drop = [&] {
      std::swap(live[random() % live.size()], live.back());
      void* const pointer = live.back();
      live.pop_back();
      return allocator.Free(pointer);
    };
    for (std::size_t turn = 0; turn < most_live * 20; ++turn) {
      while (live.size() >= most_live ||
             (!live.empty() && random() % (2 * most_live) < live.size())) {
        if (!Check(state, drop())) return;
      }
      const Result<void*> pointer =
          allocator.Allocate(Bytes(static_cast<std::uint64_t>(std::exp(exponent(random)))));
      if (!Check(state, pointer.status())) return;
      live.push_back(*pointer);
    }
    while (!live.empty()) {
      if (!Check(state, drop())) return;
    }
    const HostAllocatorStats stats = allocator.stats();
    state.counters["held_over_requested"] = static_cast<double>(stats.memory.allocated_bytes.peak) /
                                            static_cast<double>(stats.requested_bytes.peak);
    state.counters["requests"] = static_cast<double>(stats.memory.active_requests.allocated);
    state.counters["driver_allocations"] = static_cast<double>(stats.memory.num_host_alloc);
    state.counters["driver_frees"] = static_cast<double>(stats.memory.num_host_free);
  }
}

void AddPinned() {
  for (const Bytes size : {512_B, 64_KiB, 1_MiB, 16_MiB}) {
    const std::string name = "pinned " + ToString(size);
    benchmark::RegisterBenchmark((name + "/cached").c_str(),
                                 [size](State& state) { Pair(state, *bench->allocator, size); });
    benchmark::RegisterBenchmark((name + "/cached").c_str(), [size](State& state) {
      Pair(state, *bench->allocator, size);
    })->Threads(4);
    benchmark::RegisterBenchmark((name + "/used").c_str(),
                                 [size](State& state) { UsedPair(state, size); });
    benchmark::RegisterBenchmark((name + "/driver").c_str(), [size](State& state) {
      Pair(state, bench->uncached, size);
    })->Iterations(20);
  }
  for (const std::size_t live : {20, 80, 300}) {
    benchmark::RegisterBenchmark(fmt::format("waste {} live", live).c_str(),
                                 [live](State& state) { Waste(state, live); })
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  }
}

// --- Copies ------------------------------------------------------------------------------------

template <class Copy>
void Measure(State& state, Bytes size, Copy copy) {
  for (auto _ : state) {
    if (!Check(state, copy(size))) return;
    if (!Check(state, bench->stream.Synchronize())) return;
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(size.count()));
}

void AddCopies() {
  const auto own_to_device = [](Bytes size) {
    return bench->device->EnqueueCopy(
        bench->stream.get(),
        {.destination = hal::Location::On(bench->device->id(), bench->memory.address()),
         .source = hal::Location::Host(bench->pageable.data()),
         .size = size});
  };
  const auto staged_to_device = [](Bytes size) {
    return bench->staging.CopyToDevice(bench->stream.get(), bench->memory.address(),
                                       bench->pageable.data(), size);
  };
  const auto own_to_host = [](Bytes size) {
    return bench->device->EnqueueCopy(
        bench->stream.get(),
        {.destination = hal::Location::Host(bench->pageable.data()),
         .source = hal::Location::On(bench->device->id(), bench->memory.address()),
         .size = size});
  };
  const auto staged_to_host = [](Bytes size) {
    return bench->staging.CopyToHost(bench->stream.get(), bench->pageable.data(),
                                     bench->memory.address(), size);
  };
  const auto add = [](const std::string& name, int turn, Bytes size, auto copy) {
    benchmark::RegisterBenchmark(fmt::format("{}/{}", name, turn).c_str(),
                                 [size, copy](State& s) { Measure(s, size, copy); })
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond);
  };
  for (Bytes size = 4_KiB; size <= kLargestCopy; size = size * 2) {
    for (int turn = 0; turn < kTurns; ++turn) {
      add("to device " + ToString(size) + "/own", turn, size, own_to_device);
      add("to device " + ToString(size) + "/staged", turn, size, staged_to_device);
    }
  }
  for (Bytes size = 4_KiB; size <= kLargestCopy; size = size * 2) {
    for (int turn = 0; turn < kTurns; ++turn) {
      add("to host " + ToString(size) + "/own", turn, size, own_to_host);
      add("to host " + ToString(size) + "/staged", turn, size, staged_to_host);
    }
  }
}

// --- Reporting ---------------------------------------------------------------------------------

// Keeps the bandwidths of copies beside what it prints, for the table.
class TableReporter : public benchmark::ConsoleReporter {
 public:
  TableReporter() : ConsoleReporter(OO_None) {}

  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      const auto rate = run.counters.find("bytes_per_second");
      if (rate == run.counters.end()) continue;
      const std::string name = run.run_name.function_name;
      const std::size_t turn = name.rfind('/');
      const std::size_t way = name.rfind('/', turn - 1);
      const std::string operation = name.substr(0, way);
      if (rates_.count(operation) == 0) operations_.push_back(operation);
      rates_[operation][name.substr(way + 1, turn - way - 1)].push_back(rate->second.value);
    }
  }

  void Print() {
    if (operations_.empty()) return;
    fmt::print("\n{:<22} {:>12} {:>12} {:>8}\n", "GB/s", "own", "staged", "ratio");
    for (const std::string& operation : operations_) {
      const double own = Median(rates_[operation]["own"]) / 1e9;
      const double staged = Median(rates_[operation]["staged"]) / 1e9;
      fmt::print("{:<22} {:>12.2f} {:>12.2f} {:>8.2f}\n", operation, own, staged, staged / own);
    }
  }

 private:
  static double Median(std::vector<double> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  }

  std::vector<std::string> operations_;
  std::map<std::string, std::map<std::string, std::vector<double>>> rates_;
};

// Takes what is ours out of the arguments; "--name=value" or "--name value".
Settings TakeSettings(std::vector<char*>& arguments) {
  Settings settings;
  std::vector<char*> others = {arguments[0]};
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view text = arguments[i];
    const std::string_view name = text.substr(0, text.find('='));
    const auto value = [&]() -> std::string {
      if (name.size() < text.size()) return std::string(text.substr(name.size() + 1));
      if (i + 1 == arguments.size()) Fail(std::string(name) + " needs a value");
      return arguments[++i];
    };
    const auto bytes = [&] { return Must(ParseBytes(value())); };
    const auto number = [&] { return std::atoi(value().c_str()); };
    if (name == "--json") {
      settings.json = true;
    } else if (name == "--threshold") {
      settings.staging.to_device_threshold = settings.staging.to_host_threshold = bytes();
    } else if (name == "--least-chunk") {
      settings.staging.least_chunk = bytes();
    } else if (name == "--most-chunk") {
      settings.staging.most_chunk = bytes();
    } else if (name == "--pieces") {
      settings.staging.pieces = number();
    } else if (name == "--buffers") {
      settings.staging.buffers = number();
    } else if (name == "--threads") {
      settings.copy.threads = number();
    } else if (name == "--share") {
      settings.copy.share = bytes();
    } else if (name == "--slice") {
      settings.copy.slice = bytes();
    } else if (name == "--inline-limit") {
      settings.copy.inline_limit = bytes();
    } else if (name == "--linger") {
      settings.copy.linger = std::chrono::microseconds(number());
    } else {
      others.push_back(arguments[i]);
    }
  }
  arguments = others;
  return settings;
}

int Main(int argc, char** argv) {
  std::vector<char*> arguments(argv, argv + argc);
  const Settings settings = TakeSettings(arguments);
  // Short turns, several of them; what the caller says comes later and wins.
  std::string time = "--benchmark_min_time=0.05";
  arguments.insert(arguments.begin() + 1, time.data());
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 1;

  static Bench the_bench(settings);
  bench = &the_bench;
  AddPinned();
  AddCopies();
  if (settings.json) {
    benchmark::JSONReporter reporter;
    benchmark::RunSpecifiedBenchmarks(&reporter);
  } else {
    TableReporter reporter;
    benchmark::RunSpecifiedBenchmarks(&reporter);
    reporter.Print();
  }
  benchmark::Shutdown();
  return 0;
}

}  // namespace
}  // namespace keel::memory

int main(int argc, char** argv) { return keel::memory::Main(argc, argv); }
