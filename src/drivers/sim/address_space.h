// AddressSpace: addresses that devices understand, what is mapped at each, and who may use it.
//
// The host cannot touch a device address: the arenas where addresses are handed out are mapped
// without any access. Beside them, at a constant distance, lies the shadow, where the host kernel
// really maps the bytes. Only the devices' own streams go there, through Pin, which checks the
// page table first.
//
//      arena of device 0   |  arena of device 1   |      PROT_NONE: a host access faults
//      ------ constant distance ------>
//      shadow of device 0  |  shadow of device 1  |      shared mappings of the memory files
//
// At the start each shadow maps its device's memory file from end to end, byte i of the arena to
// byte i of the file: one mapping of the host kernel, which allows about 65,000. Physical memory
// takes the place in the file that equals the address where it is first mapped, so the usual
// mapping changes the page table and nothing else. Only memory whose place in the file is another
// (an alias, a remap, an import) is really mapped over the shadow, and counted.
//
// Unmap does not wait. An operation that is running on a mapping holds a pin on it: the page table
// forgets the mapping at once, the bytes stay where they are until the last pin goes. Something
// else may be mapped there meanwhile; it becomes visible to operations when the pins are gone.
//
// Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "drivers/sim/interval_allocator.h"
#include "drivers/sim/physical_memory.h"
#include "keel/base/bytes.h"
#include "keel/base/mutex.h"
#include "keel/base/result.h"
#include "keel/hal/types.h"

namespace keel::sim {

inline constexpr int kMaxDevices = 64;

// A piece of host address space, given back when it goes.
class HostReservation {
 public:
  // `size` bytes without access, aligned to 1 GiB.
  static Result<HostReservation> Create(Bytes size);
  HostReservation(HostReservation&& other) noexcept;
  HostReservation& operator=(HostReservation&&) = delete;
  ~HostReservation();

  std::uint64_t start() const { return start_; }
  Bytes size() const { return size_; }

 private:
  HostReservation(std::uint64_t whole, Bytes whole_size, std::uint64_t start, Bytes size)
      : whole_(whole), whole_size_(whole_size), start_(start), size_(size) {}
  std::uint64_t whole_;
  Bytes whole_size_;
  std::uint64_t start_;
  Bytes size_;
};

// How many mappings of the host kernel the shadows of one machine may take.
struct MappingBudget {
  std::size_t limit = 0;
  std::string limit_name;  // "vm.max_map_count is 65530"
  std::atomic<std::size_t> used{0};
};

class AddressSpace {
 public:
  struct Mapping;

  // What an operation uses while it runs. Unpins when it goes.
  class Pins {
   public:
    Pins() = default;
    Pins(const Pins&) = delete;
    Pins& operator=(const Pins&) = delete;
    ~Pins() { Clear(); }
    void Clear();
    // Takes over the pins of another.
    void Take(Pins& other);

   private:
    friend class AddressSpace;
    struct Pin {
      AddressSpace* space;
      std::shared_ptr<Mapping> mapping;
    };
    std::vector<Pin> pins_;
  };

  // Arenas of `arena` bytes one after the other from `start`, one per file. The addresses are the
  // caller's reservation; several spaces may use the same.
  static Result<std::unique_ptr<AddressSpace>> Create(
      std::uint64_t start, Bytes arena, std::vector<std::shared_ptr<MemoryFile>> files,
      Bytes granularity, MappingBudget* budget);
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  bool Contains(std::uint64_t address) const {
    return address - start_ < arena_size_ * arenas_.size();
  }

  Result<DeviceAddress> Reserve(int arena, Bytes size, Bytes alignment, DeviceAddress hint)
      KEEL_EXCLUDES(mutex_);
  Status FreeReservation(DeviceAddress address, Bytes size) KEEL_EXCLUDES(mutex_);

  Status Map(DeviceAddress address, std::shared_ptr<PhysicalBlock> block) KEEL_EXCLUDES(mutex_);
  Status Unmap(DeviceAddress address, Bytes size) KEEL_EXCLUDES(mutex_);
  // Grants by ordinal.
  struct Grant {
    int ordinal;
    hal::Access access;
  };
  // `can_access(device, owner)`: whether the device can be given access to the owner's memory.
  Status SetAccess(DeviceAddress address, Bytes size, std::span<const Grant> grants,
                   const std::function<bool(int, int)>& can_access) KEEL_EXCLUDES(mutex_);
  Result<hal::Access> GetAccess(DeviceAddress address, int ordinal) KEEL_EXCLUDES(mutex_);

  // Plain memory: address and bytes in one step.
  Result<DeviceAddress> MapPlain(int arena, int owner, std::shared_ptr<PhysicalBlock> block)
      KEEL_EXCLUDES(mutex_);
  Status UnmapPlain(DeviceAddress address, int owner) KEEL_EXCLUDES(mutex_);
  // Whether `ordinal` may use the plain memory of `owner`.
  void SetPlainAccess(int owner, int ordinal, bool allowed) KEEL_EXCLUDES(mutex_);

  // Removes every mapping and reservation of an arena: its device is closed.
  void Clear(int arena) KEEL_EXCLUDES(mutex_);

  // Whether the device may do that with the whole range now. The error says what is wrong at which
  // address.
  Status Check(int ordinal, std::uint64_t address, Bytes size, hal::Access access)
      KEEL_EXCLUDES(mutex_);
  // The same, and pins the range; its bytes are then at the pointer until the pins go.
  // kUnavailable: an operation still holds what was mapped there before; wait (WaitForUnpin) and
  // try again.
  Result<std::byte*> Pin(int ordinal, std::uint64_t address, Bytes size, hal::Access access,
                         Pins& pins) KEEL_EXCLUDES(mutex_);
  // Until a pin goes, or a short time has passed.
  void WaitForUnpin() KEEL_EXCLUDES(mutex_);

 private:
  struct Arena {
    std::shared_ptr<MemoryFile> file;
    IntervalAllocator reservations;
    IntervalAllocator plain;
  };
  // A stretch of the shadow that does not map the arena's own file at the same offset.
  struct Overlay {
    std::uint64_t end;
    FilePlace place;
  };
  using Table = std::map<std::uint64_t, std::shared_ptr<Mapping>>;

  AddressSpace(std::uint64_t start, Bytes arena, Bytes granularity, HostReservation shadow,
               MappingBudget* budget);

  std::size_t ArenaOf(std::uint64_t address) const { return (address - start_) / arena_size_; }
  FilePlace IdentityPlace(std::uint64_t address) const;

  bool InOneReservationLocked(std::uint64_t start, std::uint64_t size) const KEEL_REQUIRES(mutex_);
  // The mapping that the address lies in; null if none.
  const Mapping* FindLocked(std::uint64_t address) const KEEL_REQUIRES(mutex_);
  Status InsertLocked(std::uint64_t address, std::shared_ptr<PhysicalBlock> block, int plain_owner)
      KEEL_REQUIRES(mutex_);
  void RemoveLocked(Table::iterator entry) KEEL_REQUIRES(mutex_);
  // The mappings that tile [address, address + size) exactly, or an error that says why not.
  Result<std::vector<Table::iterator>> WholeMappingsLocked(DeviceAddress address, Bytes size,
                                                           std::string_view what)
      KEEL_REQUIRES(mutex_);
  Result<std::vector<std::shared_ptr<Mapping>>> CheckLocked(int ordinal, std::uint64_t address,
                                                            Bytes size, hal::Access access)
      KEEL_REQUIRES(mutex_);
  bool AllowedLocked(const Mapping& mapping, int ordinal, hal::Access access) const
      KEEL_REQUIRES(mutex_);
  bool HasStaleLocked(std::uint64_t start, std::uint64_t end) const KEEL_REQUIRES(mutex_);
  void UnpinLocked(const std::shared_ptr<Mapping>& mapping) KEEL_REQUIRES(mutex_);

  // Makes the shadow of [start, end) show `place`.
  Status SetShadowLocked(std::uint64_t start, std::uint64_t end, FilePlace place)
      KEEL_REQUIRES(mutex_);
  // What the shadow shows at `address`: equal for two neighbours means one host mapping.
  FilePlace ShadowPlaceLocked(std::uint64_t address) const KEEL_REQUIRES(mutex_);
  bool SplitsLocked(std::uint64_t boundary) const KEEL_REQUIRES(mutex_);

  const std::uint64_t start_;
  const std::uint64_t arena_size_;
  const Bytes granularity_;
  const HostReservation shadow_;
  const std::uint64_t shadow_distance_;  // shadow address = device address + this
  MappingBudget* const budget_;

  Mutex mutex_;
  CondVar unpinned_;
  std::vector<Arena> arenas_;  // the vector is fixed after Create; its allocators are guarded
  std::map<std::uint64_t, std::uint64_t> reservations_ KEEL_GUARDED_BY(mutex_);  // start -> size
  Table table_ KEEL_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Overlay> overlays_ KEEL_GUARDED_BY(mutex_);  // start -> stretch
  std::list<std::shared_ptr<Mapping>> stale_ KEEL_GUARDED_BY(mutex_);  // unmapped, still pinned
  // By owner of the plain memory: the set of devices that may use it.
  std::array<std::uint64_t, kMaxDevices> plain_access_ KEEL_GUARDED_BY(mutex_){};
};

}  // namespace keel::sim
