// Machine: what the simulated devices of one driver share: memory files, address spaces, pinned
// host memory, captures, the tables behind handles, and who can reach whom.
//
// Devices are opened and closed; the machine stays while any is open. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "drivers/sim/address_space.h"
#include "drivers/sim/capture.h"
#include "drivers/sim/graph.h"
#include "drivers/sim/handle_table.h"
#include "drivers/sim/host_memory.h"
#include "drivers/sim/physical_memory.h"
#include "drivers/sim/stream.h"
#include "keel/base/mutex.h"
#include "keel/base/result.h"
#include "keel/drivers/sim.h"

namespace keel::sim {

// A range that the device with this ordinal is going to use: an address of its space, or of pinned
// host memory.
struct MemoryUse {
  int ordinal = 0;
  std::uint64_t address = 0;
  Bytes size;
  hal::Access access = hal::Access::kNone;
};

// What keeps the memory of a running operation where it is.
struct HeldMemory {
  AddressSpace::Pins pins;
  std::vector<std::shared_ptr<HostRange>> host;
};

// Handles that are looked up by device: each object knows whose it is.
struct MemoryObject {
  std::shared_ptr<PhysicalBlock> block;
  int ordinal;
};
struct ModuleObject {
  int ordinal;
  std::vector<std::pair<std::string, std::uint64_t>> kernels;  // name, handle
};
struct KernelObject {
  std::shared_ptr<const Kernel> kernel;
  int ordinal;
};
struct GraphObject {
  std::shared_ptr<SimGraph> graph;
  int ordinal;
};
struct ExecObject {
  explicit ExecObject(SimGraph::Snapshot content, int device)
      : exec(std::move(content)), ordinal(device) {}
  SimExec exec;
  int ordinal;
};

class Machine {
 public:
  static Result<std::shared_ptr<Machine>> Create(const SimConfig& config);

  const SimConfig& config() const { return config_; }

  AddressSpace& SpaceOf(int ordinal) {
    return *spaces_[config_.unified ? 0 : static_cast<std::size_t>(ordinal)];
  }
  // The number of the device's arena within its space.
  int ArenaOf(int ordinal) const { return config_.unified ? ordinal : 0; }
  const std::shared_ptr<MemoryFile>& FileOf(int ordinal) const {
    return files_[static_cast<std::size_t>(ordinal)];
  }
  std::size_t host_mappings() const { return budget_.used.load(); }

  // Which open device has this id; null if none.
  SimDevice* FindDevice(hal::DeviceId id) KEEL_EXCLUDES(mutex_);
  void Attach(SimDevice& device) KEEL_EXCLUDES(mutex_);
  // The device closes: everything that it still has on the machine goes.
  void Detach(SimDevice& device) KEEL_EXCLUDES(mutex_);

  bool CanAccess(int ordinal, int peer) const;
  void SetPeer(int ordinal, int peer, bool allowed);

  // Whether the range may be used now; the error names the address.
  Status Check(const MemoryUse& use);
  // A launch on the device with this ordinal, with copies of all it refers to; kInvalidArgument
  // names what is wrong with it.
  Result<StoredKernel> StoreKernel(int ordinal, const hal::KernelLaunch& launch);
  // Pins all of them, or none, and returns where their bytes are. `may_wait`: for pins of
  // operations that still run on what was mapped there before.
  Result<std::vector<std::byte*>> PinAll(std::span<const MemoryUse> uses, HeldMemory& held,
                                         bool may_wait);

  HandleTable<SimStream, HandleKind::kStream> streams;
  HandleTable<SimEvent, HandleKind::kEvent> events;
  HandleTable<MemoryObject, HandleKind::kMemory> memories;
  HandleTable<ModuleObject, HandleKind::kModule> modules;
  HandleTable<KernelObject, HandleKind::kKernel> kernels;
  HandleTable<GraphObject, HandleKind::kGraph> graphs;
  HandleTable<ExecObject, HandleKind::kExec> execs;
  HostMemoryTable host;
  CaptureRegistry captures;

 private:
  Machine(const SimConfig& config, HostReservation arena);

  const SimConfig config_;
  const HostReservation arena_;
  MappingBudget budget_;
  std::vector<std::shared_ptr<MemoryFile>> files_;
  std::vector<std::unique_ptr<AddressSpace>> spaces_;
  std::array<std::atomic<std::uint64_t>, kMaxDevices> peers_{};  // by device: whom it can access

  Mutex mutex_;
  std::array<SimDevice*, kMaxDevices> devices_ KEEL_GUARDED_BY(mutex_){};
};

}  // namespace keel::sim
