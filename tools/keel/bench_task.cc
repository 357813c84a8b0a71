#include "bench_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <utility>

#include "callables.h"
#include "keel/hal/device_name.h"
#include "keel/memory/process_memory.h"
#include "keel/task/mpi_worker.h"
#include "keel/task/orchestrator.h"

namespace keel::cli {
namespace {

using task::Arguments;
using task::Callable;
using task::Image;
using task::Orchestration;
using task::Orchestrator;
using task::TaskHandle;
using task::Transport;

constexpr std::pair<Transport, std::string_view> kTransports[] = {
    {Transport::kThread, "thread"}, {Transport::kProcess, "process"}, {Transport::kMpi, "mpi"}};

constexpr int kTurns = 31;
constexpr std::size_t kInFlight = 1000;
constexpr std::uint32_t kGroup = 2;
constexpr std::uint32_t kTensors = 4;
// So many that each is forgotten before it comes again.
constexpr std::uint32_t kNewImages = 8;

Deadline Patience() { return Deadline::After(std::chrono::seconds(60)); }

// An orchestrator with a callable that does nothing.
struct Place {
  static Result<std::shared_ptr<Place>> Create(const BenchSetting& setting, Transport transport,
                                               Orchestration orchestration, std::uint32_t workers) {
    auto place = std::make_shared<Place>();
    task::OrchestratorOptions options;
    options.transport = transport;
    options.orchestration = orchestration;
    task::WorkerOptions worker;
    const hal::DeviceInfo& info = setting.device->info();
    worker.device = hal::DeviceName{info.driver, info.ordinal}.ToString();
    if (transport == Transport::kThread) {
      KEEL_ASSIGN(worker.memory, memory::DeviceMemory::Create(setting.device, setting.config));
    }
    options.workers.assign(workers, worker);
    KEEL_ASSIGN(place->orchestrator, Orchestrator::Create(std::move(options)));
    KEEL_ASSIGN(const Image image, NoopImage());
    KEEL_ASSIGN(place->noop, place->orchestrator->Register(image));
    return place;
  }

  Status SubmitAndWait(const Arguments& arguments, std::uint64_t count) const {
    const Deadline deadline = Patience();
    for (std::uint64_t i = 0; i < count; ++i) {
      KEEL_ASSIGN(const TaskHandle task, orchestrator->Submit(noop, arguments));
      KEEL_TRY(task.Wait(deadline));
    }
    return OkStatus();
  }

  Status InFlight(std::uint64_t count) const {
    const Deadline deadline = Patience();
    const Arguments none;
    std::vector<TaskHandle> tasks(std::min<std::uint64_t>(count, kInFlight));
    while (count > 0) {
      const auto batch = std::span(tasks).first(std::min<std::uint64_t>(count, kInFlight));
      for (TaskHandle& task : batch) {
        KEEL_ASSIGN(task, orchestrator->Submit(noop, none));
      }
      for (const TaskHandle& task : batch) KEEL_TRY(task.Wait(deadline));
      count -= batch.size();
    }
    return OkStatus();
  }

  Status Groups(std::uint64_t count) const {
    const Deadline deadline = Patience();
    const std::array<Arguments, kGroup> members;
    for (std::uint64_t i = 0; i < count; ++i) {
      KEEL_ASSIGN(const TaskHandle group, orchestrator->SubmitGroup(noop, members));
      KEEL_TRY(group.Wait(deadline));
    }
    return OkStatus();
  }

  // One image after the other, in turn.
  Status Register(std::span<const Image> images, std::uint64_t count) const {
    for (std::uint64_t i = 0; i < count; ++i) {
      KEEL_ASSIGN(const Callable callable, orchestrator->Register(images[i % images.size()]));
      KEEL_TRY(orchestrator->Unregister(callable));
    }
    return OkStatus();
  }

  std::unique_ptr<Orchestrator> orchestrator;
  Callable noop;
};

// The same code with other bytes behind it.
Result<std::vector<Image>> NewImages() {
  KEEL_ASSIGN(const Image noop, NoopImage());
  std::vector<Image> images;
  for (std::uint32_t i = 0; i < kNewImages; ++i) {
    std::vector<std::byte> code(noop.orchestration().begin(), noop.orchestration().end());
    code.push_back(static_cast<std::byte>(i + 1));
    KEEL_ASSIGN(Image image, task::ImageBuilder().SetOrchestration(std::move(code)).Build());
    images.push_back(std::move(image));
  }
  return images;
}

// Resident ones, half of which are written: each task has to wait for the one before it.
Result<Arguments> SomeArguments(const Place& place) {
  constexpr std::array<std::uint32_t, 1> kShape{64};
  Arguments arguments;
  for (std::uint32_t i = 0; i < kTensors; ++i) {
    KEEL_ASSIGN(const DeviceAddress block, place.orchestrator->Malloc(0, 256_B));
    arguments.Add(i % 2 == 0 ? task::Tag::kIn : task::Tag::kInOut,
                  task::Tensor::Resident(block, task::DataType::kFloat32, kShape));
  }
  arguments.AddScalar(1.5F);
  return arguments;
}

using Body = std::function<Status(std::uint64_t count)>;

// What is measured, with what is said about it.
class Rows {
 public:
  Rows(std::string_view transport, Body bare) : transport_(transport), bare_(std::move(bare)) {
    Describe("bare round trip", "", 0);
  }
  void Add(std::string what, std::string_view orchestration, std::uint32_t workers, Body body) {
    Describe(std::move(what), orchestration, workers);
    bodies_.push_back(std::move(body));
  }
  // What was added since the last time, each beside the bare round trip.
  Status Measure() {
    KEEL_ASSIGN(const std::vector<Compared> compared, CompareNs(bare_, bodies_, kTurns));
    const std::size_t first = costs_.size() - compared.size();
    if (first == 1) {
      costs_[0].ns = costs_[0].bare_ns = compared[0].base_ns;
      costs_[0].ratio = 1;
    }
    for (std::size_t i = 0; i < compared.size(); ++i) {
      TaskCost& cost = costs_[first + i];
      cost.ns = compared[i].ns;
      cost.bare_ns = compared[i].base_ns;
      cost.ratio = compared[i].ratio;
    }
    bodies_.clear();
    return OkStatus();
  }
  std::vector<TaskCost> costs() && { return std::move(costs_); }

 private:
  void Describe(std::string what, std::string_view orchestration, std::uint32_t workers) {
    costs_.push_back({.transport = std::string(transport_),
                      .what = std::move(what),
                      .orchestration = std::string(orchestration),
                      .workers = workers});
  }

  const std::string_view transport_;
  const Body bare_;
  std::vector<TaskCost> costs_;
  std::vector<Body> bodies_;
};

Result<Body> Bare(Transport transport, std::shared_ptr<BarePeer> peer) {
  if (transport == Transport::kMpi) {
    constexpr int kRank = 1;  // of worker 0
    return Body([](std::uint64_t count) { return task::MpiRoundTrips(kRank, count, Patience()); });
  }
  if (transport == Transport::kThread) {
    KEEL_ASSIGN(peer, BarePeer::StartThread());
  }
  return Body([peer](std::uint64_t count) { return peer->RoundTrips(count); });
}

// One orchestrator at a time: a rank serves one.
Result<std::vector<TaskCost>> Measure(const BenchSetting& setting, Transport transport,
                                      std::string_view name,
                                      const std::shared_ptr<BarePeer>& process) {
  KEEL_ASSIGN(Body bare, Bare(transport, process));
  Rows rows(name, std::move(bare));
  {
    KEEL_ASSIGN(const auto place, Place::Create(setting, transport, Orchestration::kHost, 1));
    KEEL_ASSIGN(const Arguments arguments, SomeArguments(*place));
    rows.Add("submit and wait", "host", 1,
             [&](std::uint64_t count) { return place->SubmitAndWait(Arguments(), count); });
    rows.Add(fmt::format("{} in flight, each", kInFlight), "host", 1,
             [&](std::uint64_t count) { return place->InFlight(count); });
    rows.Add(fmt::format("submit again, {} tensors", kTensors), "host", 1,
             [&](std::uint64_t count) { return place->SubmitAndWait(arguments, count); });
    KEEL_TRY(rows.Measure());
  }
  {
    KEEL_ASSIGN(const auto place, Place::Create(setting, transport, Orchestration::kHost, kGroup));
    rows.Add(fmt::format("submit a group of {}", kGroup), "host", kGroup,
             [&](std::uint64_t count) { return place->Groups(count); });
    KEEL_TRY(rows.Measure());
  }
  const bool on_device = setting.device->capabilities().orchestration;
  const std::string_view by = on_device ? "device" : "host";
  KEEL_ASSIGN(const auto place,
              Place::Create(setting, transport,
                            on_device ? Orchestration::kDevice : Orchestration::kHost, 1));
  KEEL_ASSIGN(const std::vector<Image> images, NewImages());
  KEEL_ASSIGN(const Image known, NoopImage());
  if (on_device) {
    rows.Add("submit and wait", by, 1,
             [&](std::uint64_t count) { return place->SubmitAndWait(Arguments(), count); });
  }
  rows.Add("register what is known", by, 1,
           [&](std::uint64_t count) { return place->Register({&known, 1}, count); });
  rows.Add("register what is new", by, 1,
           [&](std::uint64_t count) { return place->Register(images, count); });
  KEEL_TRY(rows.Measure());
  return std::move(rows).costs();
}

}  // namespace

std::vector<std::string> TransportNames() {
  std::vector<std::string> names;
  for (const auto& [transport, name] : kTransports) names.emplace_back(name);
  return names;
}

bool IsChosen(std::string_view transport, const std::vector<std::string>& transports) {
  if (transports.empty()) return transport != "mpi";
  return std::ranges::find(transports, transport) != transports.end();
}

std::vector<TaskCase> TaskCases(const BenchSetting& setting,
                                const std::vector<std::string>& transports,
                                const std::shared_ptr<BarePeer>& process) {
  std::vector<TaskCase> cases;
  for (const auto& [transport, name] : kTransports) {
    if (!IsChosen(name, transports)) continue;
    cases.push_back({fmt::format("tasks, {}", name), [=, over = transport, label = name] {
                       return Measure(setting, over, label, process);
                     }});
  }
  return cases;
}

}  // namespace keel::cli
