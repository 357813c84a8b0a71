#include "bench_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <span>

#include "format.h"
#include "keel/hal/event.h"
#include "keel/hal/instrumented.h"
#include "keel/hal/module.h"
#include "keel/hal/standard_kernels.h"
#include "keel/hal/stream.h"

namespace keel::cli {
namespace {

using hal::KernelArg;
using Clock = std::chrono::steady_clock;

constexpr std::pair<Moving, std::string_view> kMovings[] = {
    {Moving::kNone, "none"}, {Moving::kOne, "one"}, {Moving::kHalf, "half"}, {Moving::kAll, "all"}};
constexpr std::pair<Way, std::string_view> kWays[] = {{Way::kBare, "bare"},
                                                      {Way::kBareCopies, "bare-copies"},
                                                      {Way::kEager, "eager"},
                                                      {Way::kRerecord, "re-record"},
                                                      {Way::kUpdate, "update"},
                                                      {Way::kResident, "resident"},
                                                      {Way::kInPlace, "in-place"},
                                                      {Way::kCopy, "copy"},
                                                      {Way::kCopyTable, "copy-table"},
                                                      {Way::kPatch, "patch"},
                                                      {Way::kRemap, "remap"},
                                                      {Way::kRetrace, "retrace"},
                                                      {Way::kAuto, "auto"}};

constexpr std::uint64_t kBatch = kGraphSlots;
// Fewer than a device's queue holds; beyond that a launch waits.
constexpr std::uint64_t kMostLaunches = 900;
constexpr std::uint64_t kWarmUp = kGraphSlots + 2;
constexpr std::uint64_t kAutoWarmUp = 96;                   // then it has chosen
constexpr std::uint64_t kRetraceWarmUp = 10 * kGraphSlots;  // then the caches of traces are full
constexpr std::uint64_t kCountedSteps = 2 * kBatch;
// What a kernel takes depends on where its bytes lie: on a real device two sets of addresses differ
// by a hundredth and more, so each way is measured with several.
constexpr int kPlacements = 5;
constexpr int kTurns = 5;                // of all placements together
constexpr std::size_t kLeastRounds = 2;  // of a turn
constexpr std::size_t kMostRounds = 2000;
constexpr std::uint64_t kSpinMicros = 20'000;

// A runner, and how far it is.
class Trial {
 public:
  static Result<std::unique_ptr<Trial>> Create(std::shared_ptr<GraphPlace> place,
                                               const GraphShape& shape,
                                               const GraphBuffers& buffers) {
    auto trial = std::make_unique<Trial>();
    trial->place_ = std::move(place);
    KEEL_ASSIGN(trial->runner_, MakeRunner(trial->place_, shape, buffers));
    const std::uint64_t launches = shape.way == Way::kEager ? shape.commands : 1;
    trial->batch_ = std::clamp<std::uint64_t>(kMostLaunches / launches, 1, kBatch);
    const std::uint64_t steps = shape.way == Way::kAuto      ? kAutoWarmUp
                                : shape.way == Way::kRetrace ? kRetraceWarmUp
                                                             : kWarmUp;
    for (std::uint64_t i = 0; i < steps; i += trial->batch_) KEEL_TRY(trial->Batch());
    return trial;
  }

  // Queues some steps, and waits until they are done.
  Status Batch() {
    KEEL_TRY(Queue());
    return place_->stream.Synchronize(Patience());
  }

  // Until the time is up: what the calling thread took for a step of each batch.
  Status HostRounds(std::chrono::microseconds budget, std::vector<double>& us) {
    return Rounds(budget, us, [&]() -> Result<double> {
      const Clock::time_point begin = Clock::now();
      KEEL_TRY(Queue());
      const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
      KEEL_TRY(place_->stream.Synchronize(Patience()));
      return took.count() / static_cast<double>(batch_);
    });
  }

  // And what the device took. A kernel keeps it from beginning until all of a batch is queued, so
  // that it never waits for the host.
  Status DeviceRounds(std::chrono::microseconds budget, std::vector<double>& us) {
    const std::shared_ptr<hal::Device>& device = place_->device;
    const hal::StreamHandle stream = place_->stream.get();
    const bool timing = device->capabilities().event_timing;
    KEEL_ASSIGN(const hal::HostMemory flag, hal::HostMemory::Create(device, 8_B));
    KEEL_ASSIGN(const DeviceAddress flag_address, flag.address());
    KEEL_ASSIGN(const hal::Event begin, hal::Event::Create(device, {.timing = timing}));
    KEEL_ASSIGN(const hal::Event end, hal::Event::Create(device, {.timing = timing}));
    const std::atomic_ref open(*static_cast<std::uint64_t*>(flag.data()));
    const std::array args = {KernelArg::InOut(flag_address, 8_B),
                             KernelArg::Value(std::uint64_t{1}), KernelArg::Value(kSpinMicros)};
    return Rounds(budget, us, [&]() -> Result<double> {
      open.store(0);
      KEEL_TRY(device->LaunchKernel(stream, {.kernel = place_->spin, .args = args}));
      KEEL_TRY(begin.Record(stream));
      Status queued = Queue();
      if (queued.ok()) queued = end.Record(stream);
      const Clock::time_point released = Clock::now();
      open.store(1);
      KEEL_TRY(queued);
      KEEL_TRY(place_->stream.Synchronize(Patience()));
      const std::chrono::duration<double, std::micro> took = Clock::now() - released;
      double step_us = took.count();
      if (timing) {
        KEEL_ASSIGN(const double ms, device->ElapsedMilliseconds(begin.get(), end.get()));
        step_us = ms * 1000;
      }
      return step_us / static_cast<double>(batch_);
    });
  }

  // `counted` is what the steps' calls go through.
  Status Count(hal::InstrumentedDevice& counted, GraphCost& cost) {
    const std::uint64_t first = step_;
    double copied = 0;
    std::array<std::uint64_t, hal::kPrimitiveCount> calls{};
    while (step_ - first < kCountedSteps) {
      const std::uint64_t before = step_;
      counted.ResetCounts();
      KEEL_TRY(Queue());
      for (std::size_t i = 0; i < calls.size(); ++i) {
        calls[i] += counted.calls(static_cast<hal::Primitive>(i));
      }
      copied += static_cast<double>((runner_->copied() * (step_ - before)).count());
      KEEL_TRY(place_->stream.Synchronize(Patience()));
    }
    const auto steps = static_cast<double>(step_ - first);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (calls[i] == 0) continue;
      cost.driver_calls.emplace_back(hal::PrimitiveName(static_cast<hal::Primitive>(i)),
                                     static_cast<double>(calls[i]) / steps);
    }
    cost.bytes_copied = copied / steps;
    return OkStatus();
  }

 private:
  Status Queue() {
    for (std::uint64_t i = 0; i < batch_; ++i) KEEL_TRY(runner_->Step(step_++));
    return OkStatus();
  }

  // The first brings back what others have driven out of the caches meanwhile.
  template <class Round>
  static Status Rounds(std::chrono::microseconds budget, std::vector<double>& us, Round round) {
    KEEL_TRY(round().status());
    const Clock::time_point until = Clock::now() + budget;
    for (std::size_t i = 0; i < kLeastRounds || (i < kMostRounds && Clock::now() < until); ++i) {
      KEEL_ASSIGN(const double value, round());
      us.push_back(value);
    }
    return OkStatus();
  }

  std::shared_ptr<GraphPlace> place_;
  std::unique_ptr<GraphRunner> runner_;
  std::uint64_t batch_ = 1;
  std::uint64_t step_ = 0;
};

// The ways of a group with one set of buffers: what works where the caller's buffers are does so at
// the same addresses.
class Placement {
 public:
  static Result<std::unique_ptr<Placement>> Create(const std::shared_ptr<GraphPlace>& place,
                                                   const std::vector<GraphShape>& shapes) {
    auto made = std::make_unique<Placement>();
    for (const GraphShape& shape : shapes) {
      GraphBuffers& buffers = shape.way == Way::kRemap ? made->physical_ : made->buffers_;
      if (buffers.empty()) KEEL_TRY(buffers.Allocate(place, shape));
      KEEL_ASSIGN(made->trials_.emplace_back(), Trial::Create(place, shape, buffers));
    }
    return made;
  }
  Trial& at(std::size_t i) { return *trials_[i]; }

 private:
  GraphBuffers buffers_;
  GraphBuffers physical_;  // those that are remapped
  std::vector<std::unique_ptr<Trial>> trials_;
};

// Two places: calls are counted apart from what is timed.
struct Setup {
  std::shared_ptr<GraphPlace> timed;
  std::shared_ptr<GraphPlace> counted;
  std::shared_ptr<hal::InstrumentedDevice> counter;
  std::chrono::microseconds budget{0};
};

// All ways to run one program with one set of buffers. They take turns, because no machine is the
// same for seconds: what is compared was measured side by side.
class Group {
 public:
  Group(Setup setup, std::vector<GraphShape> shapes)
      : setup_(std::move(setup)), shapes_(std::move(shapes)) {}

  // The first call measures all.
  Result<GraphCost> Cost(std::size_t i) {
    if (costs_.empty()) {
      const Status status = Measure();
      if (!status.ok()) {
        costs_.clear();
        return status;
      }
    }
    return costs_[i];
  }

 private:
  Status Measure() {
    {
      KEEL_ASSIGN(const auto counted, Placement::Create(setup_.counted, shapes_));
      for (std::size_t i = 0; i < shapes_.size(); ++i) {
        const GraphShape& shape = shapes_[i];
        GraphCost& cost = costs_.emplace_back(GraphCost{.commands = shape.commands,
                                                        .moving = shape.moving,
                                                        .bytes = shape.bytes,
                                                        .traced = shape.traced,
                                                        .way = shape.way});
        KEEL_TRY(counted->at(i).Count(*setup_.counter, cost));
      }
    }
    // All are kept, so that each has addresses of its own.
    std::vector<std::unique_ptr<Placement>> placements;
    std::vector<std::vector<double>> host(shapes_.size());
    const int count = setup_.timed->device->info().simulated ? 1 : kPlacements;
    for (int p = 0; p < count; ++p) {
      KEEL_ASSIGN(placements.emplace_back(), Placement::Create(setup_.timed, shapes_));
      std::vector<std::vector<double>> device(shapes_.size());
      for (int turn = p; turn < kTurns; turn += count) {
        for (std::size_t k = 0; k < shapes_.size(); ++k) {
          const std::size_t i = turn % 2 == 0 ? k : shapes_.size() - 1 - k;
          Trial& trial = placements.back()->at(i);
          KEEL_TRY(trial.HostRounds(setup_.budget / kTurns, host[i]));
          KEEL_TRY(trial.DeviceRounds(setup_.budget / kTurns, device[i]));
        }
      }
      for (std::size_t i = 0; i < shapes_.size(); ++i) {
        costs_[i].device_us += Median(std::move(device[i])) / count;
      }
    }
    for (std::size_t i = 0; i < shapes_.size(); ++i) costs_[i].host_us = Median(std::move(host[i]));
    return OkStatus();
  }

  const Setup setup_;
  const std::vector<GraphShape> shapes_;
  std::vector<GraphCost> costs_;
};

bool MakesSense(const GraphShape& shape, const hal::Capabilities& can) {
  const std::uint32_t moving = shape.moving_bindings();
  switch (shape.way) {
    case Way::kResident:
    case Way::kInPlace:
      return moving == 0;
    case Way::kBareCopies:
      return moving != 0;
    case Way::kCopyTable:
      return shape.bindings() == kMostBindings;
    case Way::kUpdate:
      return can.graph_update;
    case Way::kPatch:
      return !shape.traced && can.node_update;
    case Way::kRemap:
      return moving != 0 && shape.bytes == kLargeBuffer && can.virtual_memory;
    case Way::kRetrace:
      return shape.traced;
    case Way::kBare:
    case Way::kEager:
    case Way::kRerecord:
    case Way::kCopy:
    case Way::kAuto:
      break;
  }
  return true;
}

template <class T>
bool Wanted(const std::vector<T>& wanted, const T& value) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

template <class T, std::size_t N>
std::string_view NameIn(const std::pair<T, std::string_view> (&list)[N], T value) {
  const auto* found = std::find_if(std::begin(list), std::end(list),
                                   [&](const auto& each) { return each.first == value; });
  return found->second;
}

template <class T, std::size_t N>
std::vector<std::string> NamesIn(const std::pair<T, std::string_view> (&list)[N]) {
  std::vector<std::string> names;
  for (const auto& [value, name] : list) names.emplace_back(name);
  return names;
}

}  // namespace

std::string_view MovingName(Moving moving) { return NameIn(kMovings, moving); }
std::string_view WayName(Way way) { return NameIn(kWays, way); }
std::vector<std::string> MovingNames() { return NamesIn(kMovings); }
std::vector<std::string> WayNames() { return NamesIn(kWays); }

Result<std::vector<GraphCase>> GraphCases(const BenchSetting& setting,
                                          const GraphBenchOptions& options) {
  const hal::Capabilities& can = setting.device->capabilities();
  if (!can.kernels || !can.graphs) {
    return Unimplemented(fmt::format("this device has no {}", can.kernels ? "graphs" : "kernels"));
  }
  Setup setup{.budget = std::chrono::milliseconds(options.quick ? 4 : 30)};
  KEEL_ASSIGN(setup.timed, GraphPlace::Create(setting.device, setting.config));
  setup.counter = hal::Instrumented(setting.device);
  KEEL_ASSIGN(setup.counted, GraphPlace::Create(setup.counter, setting.config));
  std::vector<GraphCase> cases;
  for (const bool traced : {false, true}) {
    for (const std::uint32_t commands : kGraphCommands) {
      const bool long_one = commands > 100 && options.commands.empty();
      if (!Wanted(options.commands, commands) || (options.quick && long_one)) continue;
      for (const Bytes bytes : {kSmallBuffer, kLargeBuffer}) {
        if (options.quick && bytes == kLargeBuffer) continue;
        for (const auto& [moving, moving_name] : kMovings) {
          if (!Wanted(options.moving, std::string(moving_name))) continue;
          std::vector<GraphShape> shapes;
          for (const auto& [way, way_name] : kWays) {
            const GraphShape shape{commands, moving, bytes, traced, way};
            if (!Wanted(options.ways, std::string(way_name)) || !MakesSense(shape, can)) continue;
            shapes.push_back(shape);
          }
          const auto group = std::make_shared<Group>(setup, shapes);
          for (std::size_t i = 0; i < shapes.size(); ++i) {
            cases.push_back({fmt::format("{} {} commands, {} moving, {}, {}", FormatCount(commands),
                                         traced ? "traced" : "explicit", moving_name,
                                         ToString(bytes), WayName(shapes[i].way)),
                             [group, i] { return group->Cost(i); }});
          }
        }
      }
    }
  }
  return cases;
}

}  // namespace keel::cli
