#include "drivers/sim/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <utility>

#include "drivers/sim/sim_device.h"

namespace keel::sim {
namespace {

#if defined(__SANITIZE_THREAD__)
#define KEEL_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define KEEL_THREAD_SANITIZER 1
#endif
#endif

Bytes ChooseArena(const SimConfig& config) {
  const auto devices = static_cast<std::uint64_t>(config.devices);
  // With separate spaces the arenas lie over each other, but each has a shadow of its own.
#ifdef KEEL_THREAD_SANITIZER
  // Its own shadow memory leaves room for little more.
  const Bytes chosen = 128_GiB / devices;
#else
  const Bytes chosen = std::min(4_TiB, 32_TiB / devices);
#endif
  const Bytes step = std::max(config.granularity, 4_MiB);
  return AlignDown(config.arena.empty() ? chosen : config.arena, step);
}

std::size_t MaxMapCount() {
  std::size_t count = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> count;
  return count == 0 ? 65530 : count;
}

}  // namespace

Result<std::shared_ptr<Machine>> Machine::Create(const SimConfig& given) {
  SimConfig config = given;
  config.arena = ChooseArena(given);
  const auto devices = static_cast<std::size_t>(config.devices);
  KEEL_ASSIGN(HostReservation arena,
              HostReservation::Create(config.arena * (config.unified ? devices : 1)));
  std::shared_ptr<Machine> machine(new Machine(config, std::move(arena)));

  const std::size_t max_map_count = MaxMapCount();
  if (config.mappings > 0) {
    machine->budget_.limit = static_cast<std::size_t>(config.mappings);
    machine->budget_.limit_name = fmt::format("KEEL_SIM mappings:{}", config.mappings);
  } else {
    // The rest is for the program itself: its libraries, stacks and large allocations.
    machine->budget_.limit = max_map_count - max_map_count / 8;
    machine->budget_.limit_name = fmt::format("vm.max_map_count is {}", max_map_count);
  }
  for (int i = 0; i < config.devices; ++i) {
    KEEL_ASSIGN(auto file, MemoryFile::Create(i, config.arena, config.memory));
    machine->files_.push_back(std::move(file));
    const std::uint64_t others =
        config.devices == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << config.devices) - 1;
    machine->peers_[static_cast<std::size_t>(i)] =
        config.peers && config.unified ? others : std::uint64_t{1} << i;
  }
  if (config.unified) {
    KEEL_ASSIGN(auto space,
                AddressSpace::Create(machine->arena_.start(), config.arena, machine->files_,
                                     config.granularity, &machine->budget_));
    machine->spaces_.push_back(std::move(space));
  } else {
    for (const std::shared_ptr<MemoryFile>& file : machine->files_) {
      KEEL_ASSIGN(auto space, AddressSpace::Create(machine->arena_.start(), config.arena, {file},
                                                   config.granularity, &machine->budget_));
      machine->spaces_.push_back(std::move(space));
    }
  }
  return machine;
}

Machine::Machine(const SimConfig& config, HostReservation arena)
    : config_(config), arena_(std::move(arena)) {}

SimDevice* Machine::FindDevice(hal::DeviceId id) {
  MutexLock lock(mutex_);
  for (SimDevice* device : devices_) {
    if (device != nullptr && device->id() == id) return device;
  }
  return nullptr;
}

void Machine::Attach(SimDevice& device) {
  MutexLock lock(mutex_);
  devices_[static_cast<std::size_t>(device.ordinal())] = &device;
}

void Machine::Detach(SimDevice& device) {
  const int ordinal = device.ordinal();
  captures.Forget(device);
  const auto of_device = [&](const auto& object) { return object.ordinal == ordinal; };
  execs.RemoveIf(of_device);
  graphs.RemoveIf(of_device);
  modules.RemoveIf(of_device);
  kernels.RemoveIf(of_device);
  events.RemoveIf([&](const SimEvent& event) { return &event.device == &device; });
  memories.RemoveIf(of_device);
  SpaceOf(ordinal).Clear(ArenaOf(ordinal));
  for (int other = 0; other < config_.devices; ++other) {
    SpaceOf(other).SetPlainAccess(other, ordinal, false);
    SpaceOf(ordinal).SetPlainAccess(ordinal, other, false);
  }
  MutexLock lock(mutex_);
  devices_[static_cast<std::size_t>(ordinal)] = nullptr;
}

bool Machine::CanAccess(int ordinal, int peer) const {
  return ((peers_[static_cast<std::size_t>(ordinal)].load() >> peer) & 1) != 0;
}

void Machine::SetPeer(int ordinal, int peer, bool allowed) {
  std::atomic<std::uint64_t>& reach = peers_[static_cast<std::size_t>(ordinal)];
  const std::uint64_t bit = std::uint64_t{1} << peer;
  if (allowed) {
    reach.fetch_or(bit);
  } else {
    reach.fetch_and(~bit);
  }
}

Status Machine::Check(const MemoryUse& use) {
  AddressSpace& space = SpaceOf(use.ordinal);
  if (space.Contains(use.address)) {
    return space.Check(use.ordinal, use.address, use.size, use.access);
  }
  if (host.Contains(use.address, use.size)) return OkStatus();
  return InvalidArgument(fmt::format("{} at {} are neither mapped nor pinned host memory",
                                     ToString(use.size), ToString(DeviceAddress(use.address))));
}

Result<StoredKernel> Machine::StoreKernel(int ordinal, const hal::KernelLaunch& launch) {
  const std::shared_ptr<KernelObject> found = kernels.Find(launch.kernel.value);
  if (found == nullptr || found->ordinal != ordinal) {
    return InvalidArgument(
        fmt::format("{:#x} is not the handle of a kernel of device {}, or its module was unloaded",
                    launch.kernel.value, ordinal));
  }
  KEEL_TRY(CheckArguments(*found->kernel, launch));
  StoredKernel stored{
      found->kernel, launch.dims, {launch.args.begin(), launch.args.end()}, nullptr};
  std::size_t large = 0;
  for (const hal::KernelArg& arg : launch.args) {
    if (arg.size() > hal::KernelArg::kMaxValue) large += arg.size();
  }
  if (large == 0) return stored;
  const auto values = std::make_shared<std::byte[]>(large);
  std::byte* at = values.get();
  for (hal::KernelArg& arg : stored.args) {
    if (arg.size() <= hal::KernelArg::kMaxValue) continue;
    std::memcpy(at, arg.data(), arg.size());
    arg = hal::KernelArg::ValueAt(at, arg.size());
    at += arg.size();
  }
  stored.values = values;
  return stored;
}

Result<std::vector<std::byte*>> Machine::PinAll(std::span<const MemoryUse> uses, HeldMemory& held,
                                                bool may_wait) {
  for (;;) {
    std::vector<std::byte*> pointers;
    HeldMemory taken;
    AddressSpace* busy = nullptr;
    for (const MemoryUse& use : uses) {
      if (use.size.empty()) {
        pointers.push_back(nullptr);
        continue;
      }
      AddressSpace& space = SpaceOf(use.ordinal);
      if (!space.Contains(use.address)) {
        std::shared_ptr<HostRange> range = host.Use(use.address, use.size);
        if (range == nullptr) return Check(use);
        taken.host.push_back(std::move(range));
        pointers.push_back(reinterpret_cast<std::byte*>(use.address));
        continue;
      }
      auto pointer = space.Pin(use.ordinal, use.address, use.size, use.access, taken.pins);
      if (!pointer.ok()) {
        if (!may_wait || pointer.status().code() != StatusCode::kUnavailable) {
          return pointer.status();
        }
        busy = &space;
        break;
      }
      pointers.push_back(*pointer);
    }
    if (busy == nullptr) {
      held.pins.Take(taken.pins);
      std::move(taken.host.begin(), taken.host.end(), std::back_inserter(held.host));
      return pointers;
    }
    // Nothing may be held while waiting: two operations could wait for each other's pins.
    taken.pins.Clear();
    busy->WaitForUnpin();
  }
}

}  // namespace keel::sim
