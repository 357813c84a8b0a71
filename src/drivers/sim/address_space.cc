#include "drivers/sim/address_space.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <utility>

#include "keel/base/log.h"

namespace keel::sim {

using hal::Access;

// Guarded by the mutex of its space, but for what never changes.
struct AddressSpace::Mapping {
  const std::uint64_t address;
  const std::uint64_t end;
  const std::shared_ptr<PhysicalBlock> block;
  const FilePlace place;
  const int plain_owner;  // -1: virtual memory
  std::uint64_t readers = 0;
  std::uint64_t writers = 0;
  int pins = 0;
  bool visible = false;  // the shadow shows it
};

namespace {

constexpr std::uint64_t Bit(int ordinal) { return std::uint64_t{1} << ordinal; }

const char* Verb(Access access) { return access == Access::kRead ? "read" : "write"; }

}  // namespace

Result<HostReservation> HostReservation::Create(Bytes size) {
  const Bytes whole = size + 1_GiB;
  void* start =
      mmap(nullptr, whole.count(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) {
    return SystemError(
        fmt::format(
            "reserving {} of addresses for simulated devices (KEEL_SIM arena: makes it less)",
            ToString(whole)),
        errno);
  }
  const auto address = reinterpret_cast<std::uint64_t>(start);
  const Bytes aligned = *AlignUp(Bytes(address), 1_GiB);
  return HostReservation(address, whole, aligned.count(), size);
}

HostReservation::HostReservation(HostReservation&& other) noexcept
    : whole_(std::exchange(other.whole_, 0)),
      whole_size_(other.whole_size_),
      start_(other.start_),
      size_(other.size_) {}

HostReservation::~HostReservation() {
  if (whole_ != 0) munmap(reinterpret_cast<void*>(whole_), whole_size_.count());
}

void AddressSpace::Pins::Clear() {
  for (Pin& pin : pins_) {
    MutexLock lock(pin.space->mutex_);
    pin.space->UnpinLocked(pin.mapping);
  }
  // The last reference to a block may go here: outside of the lock.
  pins_.clear();
}

void AddressSpace::Pins::Take(Pins& other) {
  std::move(other.pins_.begin(), other.pins_.end(), std::back_inserter(pins_));
  other.pins_.clear();
}

Result<std::unique_ptr<AddressSpace>> AddressSpace::Create(
    std::uint64_t start, Bytes arena, std::vector<std::shared_ptr<MemoryFile>> files,
    Bytes granularity, MappingBudget* budget) {
  KEEL_ASSIGN(HostReservation shadow, HostReservation::Create(arena * files.size()));
  std::unique_ptr<AddressSpace> space(
      new AddressSpace(start, arena, granularity, std::move(shadow), budget));
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::uint64_t first = start + i * arena.count();
    void* shadow_at = reinterpret_cast<void*>(first + space->shadow_distance_);
    if (mmap(shadow_at, arena.count(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
             files[i]->descriptor(), 0) == MAP_FAILED) {
      return SystemError("mapping a device's memory file", errno);
    }
    // Plain memory has a part of its own, so that it never sits in the way of a large reservation.
    const std::uint64_t plain = AlignDown(Bytes(arena.count() / 4 * 3), granularity).count();
    space->arenas_.push_back({std::move(files[i]), IntervalAllocator(first, first + plain),
                              IntervalAllocator(first + plain, first + arena.count())});
  }
  budget->used += space->arenas_.size();
  return space;
}

AddressSpace::AddressSpace(std::uint64_t start, Bytes arena, Bytes granularity,
                           HostReservation shadow, MappingBudget* budget)
    : start_(start),
      arena_size_(arena.count()),
      granularity_(granularity),
      shadow_(std::move(shadow)),
      shadow_distance_(shadow_.start() - start),
      budget_(budget) {}

AddressSpace::~AddressSpace() = default;

Result<DeviceAddress> AddressSpace::Reserve(int arena, Bytes size, Bytes alignment,
                                            DeviceAddress hint) {
  if (size.empty() || !IsAligned(size, granularity_)) {
    return InvalidArgument(fmt::format("the size of a reservation must be a multiple of {}, not {}",
                                       ToString(granularity_), size.count()));
  }
  if (!alignment.empty() && !IsPowerOfTwo(alignment)) {
    return InvalidArgument(fmt::format(
        "the alignment of a reservation must be a power of two, not {}", alignment.count()));
  }
  const Bytes align = std::max(alignment, granularity_);
  MutexLock lock(mutex_);
  IntervalAllocator& free = arenas_[static_cast<std::size_t>(arena)].reservations;
  std::optional<std::uint64_t> address;
  if (hint && IsAligned(hint, align) && free.AllocateAt(hint.value(), size.count())) {
    address = hint.value();
  } else {
    address = free.Allocate(size.count(), align.count());
  }
  if (!address) {
    return ResourceExhausted(
        fmt::format("device {} has no {} of addresses free in one piece; its arena is {} "
                    "(KEEL_SIM arena: makes it larger)",
                    arena, ToString(size), ToString(Bytes(arena_size_))));
  }
  reservations_.emplace(*address, size.count());
  return DeviceAddress(*address);
}

Status AddressSpace::FreeReservation(DeviceAddress address, Bytes size) {
  MutexLock lock(mutex_);
  const auto reservation = reservations_.find(address.value());
  if (reservation == reservations_.end()) {
    return InvalidArgument(fmt::format("{} is not the start of a reservation", ToString(address)));
  }
  if (reservation->second != size.count()) {
    return InvalidArgument(fmt::format("the reservation at {} has {}, not {}", ToString(address),
                                       ToString(Bytes(reservation->second)), ToString(size)));
  }
  const auto mapped = table_.lower_bound(address.value());
  if (mapped != table_.end() && mapped->first < address.value() + size.count()) {
    return FailedPrecondition(fmt::format("the reservation at {} still has a mapping at {}",
                                          ToString(address),
                                          ToString(DeviceAddress(mapped->first))));
  }
  reservations_.erase(reservation);
  arenas_[ArenaOf(address.value())].reservations.Free(address.value(), size.count());
  return OkStatus();
}

Status AddressSpace::Map(DeviceAddress address, std::shared_ptr<PhysicalBlock> block) {
  if (!IsAligned(address, granularity_)) {
    return InvalidArgument(fmt::format("{} is not aligned to the granularity of {}",
                                       ToString(address), ToString(granularity_)));
  }
  MutexLock lock(mutex_);
  const std::uint64_t start = address.value();
  if (!InOneReservationLocked(start, block->size().count())) {
    return InvalidArgument(fmt::format("{} at {} do not lie in one reservation",
                                       ToString(block->size()), ToString(address)));
  }
  auto next = table_.lower_bound(start);
  const bool over_next = next != table_.end() && next->first < start + block->size().count();
  const bool over_previous = next != table_.begin() && std::prev(next)->second->end > start;
  if (over_next || over_previous) {
    return FailedPrecondition(fmt::format("something is mapped in {} at {} already",
                                          ToString(block->size()), ToString(address)));
  }
  return InsertLocked(start, std::move(block), /*plain_owner=*/-1);
}

bool AddressSpace::InOneReservationLocked(std::uint64_t start, std::uint64_t size) const {
  auto reservation = reservations_.upper_bound(start);
  if (reservation == reservations_.begin()) return false;
  --reservation;
  const std::uint64_t before = start - reservation->first;
  return before < reservation->second && size <= reservation->second - before;
}

const AddressSpace::Mapping* AddressSpace::FindLocked(std::uint64_t address) const {
  auto entry = table_.upper_bound(address);
  if (entry == table_.begin()) return nullptr;
  --entry;
  return address < entry->second->end ? entry->second.get() : nullptr;
}

Status AddressSpace::InsertLocked(std::uint64_t address, std::shared_ptr<PhysicalBlock> block,
                                  int plain_owner) {
  const Arena& arena = arenas_[ArenaOf(address)];
  std::optional<std::uint64_t> wish;
  if (arena.file->ordinal() == block->ordinal()) wish = IdentityPlace(address).offset;
  KEEL_ASSIGN(const FilePlace place, block->Place(wish));
  const std::uint64_t end = address + block->size().count();
  std::shared_ptr<Mapping> mapping(new Mapping{address, end, std::move(block), place, plain_owner});
  if (!HasStaleLocked(address, end)) {
    KEEL_TRY(SetShadowLocked(address, end, place));
    mapping->visible = true;
  }
  table_.emplace(address, std::move(mapping));
  return OkStatus();
}

Result<std::vector<AddressSpace::Table::iterator>> AddressSpace::WholeMappingsLocked(
    DeviceAddress address, Bytes size, std::string_view what) {
  std::vector<Table::iterator> found;
  const std::uint64_t start = address.value();
  if (size.empty() || size.count() > ~std::uint64_t{0} - start) {
    return InvalidArgument(
        fmt::format("{} of {} at {}: not a range", what, size.count(), ToString(address)));
  }
  std::uint64_t at = start;
  for (auto entry = table_.find(start); at < start + size.count(); ++entry) {
    if (entry == table_.end() || entry->first != at || entry->second->plain_owner >= 0) {
      return InvalidArgument(
          fmt::format("{} of {} at {}: no mapping starts at {}; only whole mappings can be changed",
                      what, ToString(size), ToString(address), ToString(DeviceAddress(at))));
    }
    if (entry->second->end > start + size.count()) {
      return InvalidArgument(fmt::format(
          "{} of {} at {} covers a part of the mapping of {} at {}; only whole mappings can be "
          "changed",
          what, ToString(size), ToString(address), ToString(entry->second->block->size()),
          ToString(DeviceAddress(at))));
    }
    at = entry->second->end;
    found.push_back(entry);
  }
  return found;
}

Status AddressSpace::Unmap(DeviceAddress address, Bytes size) {
  // Blocks whose last reference goes are destroyed after the lock.
  std::vector<std::shared_ptr<Mapping>> keep;
  MutexLock lock(mutex_);
  KEEL_ASSIGN(const auto mappings, WholeMappingsLocked(address, size, "unmapping"));
  for (const auto& entry : mappings) {
    keep.push_back(entry->second);
    RemoveLocked(entry);
  }
  return OkStatus();
}

void AddressSpace::RemoveLocked(Table::iterator entry) {
  std::shared_ptr<Mapping> mapping = entry->second;
  table_.erase(entry);
  mapping->readers = mapping->writers = 0;
  if (mapping->pins > 0) {
    stale_.push_back(std::move(mapping));
    return;
  }
  if (!mapping->visible) return;
  // Failing to restore costs a host mapping and nothing else: the page table says who may look.
  Status restored =
      SetShadowLocked(mapping->address, mapping->end, IdentityPlace(mapping->address));
  if (!restored.ok()) Log(LogLevel::kDebug, restored.ToString());
}

Status AddressSpace::SetAccess(DeviceAddress address, Bytes size, std::span<const Grant> grants,
                               const std::function<bool(int, int)>& can_access) {
  MutexLock lock(mutex_);
  KEEL_ASSIGN(const auto mappings, WholeMappingsLocked(address, size, "setting access"));
  for (const auto& entry : mappings) {
    const int owner = entry->second->block->ordinal();
    for (const Grant& grant : grants) {
      if (grant.access == Access::kNone || can_access(grant.ordinal, owner)) continue;
      return FailedPrecondition(
          fmt::format("device {} cannot be given access to memory of device {}; ask CanAccessPeer "
                      "first",
                      grant.ordinal, owner));
    }
  }
  for (const auto& entry : mappings) {
    for (const Grant& grant : grants) {
      Mapping& mapping = *entry->second;
      mapping.readers &= ~Bit(grant.ordinal);
      mapping.writers &= ~Bit(grant.ordinal);
      if (Allows(grant.access, Access::kRead)) mapping.readers |= Bit(grant.ordinal);
      if (Allows(grant.access, Access::kWrite)) mapping.writers |= Bit(grant.ordinal);
    }
  }
  return OkStatus();
}

Result<Access> AddressSpace::GetAccess(DeviceAddress address, int ordinal) {
  MutexLock lock(mutex_);
  const Mapping* mapping = FindLocked(address.value());
  if (mapping == nullptr) {
    return InvalidArgument(fmt::format("nothing is mapped at {}", ToString(address)));
  }
  const bool read = AllowedLocked(*mapping, ordinal, Access::kRead);
  const bool write = AllowedLocked(*mapping, ordinal, Access::kWrite);
  return write ? Access::kReadWrite : read ? Access::kRead : Access::kNone;
}

Result<DeviceAddress> AddressSpace::MapPlain(int arena, int owner,
                                             std::shared_ptr<PhysicalBlock> block) {
  MutexLock lock(mutex_);
  IntervalAllocator& free = arenas_[static_cast<std::size_t>(arena)].plain;
  const Bytes size = block->size();
  const std::optional<std::uint64_t> address = free.Allocate(size.count(), 4096);
  if (!address) {
    return ResourceExhausted(
        fmt::format("device {} has no {} of addresses free in one piece", arena, ToString(size)));
  }
  if (Status status = InsertLocked(*address, std::move(block), owner); !status.ok()) {
    free.Free(*address, size.count());
    return status;
  }
  return DeviceAddress(*address);
}

Status AddressSpace::UnmapPlain(DeviceAddress address, int owner) {
  std::shared_ptr<Mapping> keep;
  MutexLock lock(mutex_);
  const auto entry = table_.find(address.value());
  if (entry == table_.end() || entry->second->plain_owner != owner) {
    return InvalidArgument(fmt::format("{} is not plain memory of device {}, or was freed already",
                                       ToString(address), owner));
  }
  keep = entry->second;
  RemoveLocked(entry);
  arenas_[ArenaOf(address.value())].plain.Free(keep->address, keep->end - keep->address);
  return OkStatus();
}

void AddressSpace::SetPlainAccess(int owner, int ordinal, bool allowed) {
  MutexLock lock(mutex_);
  std::uint64_t& devices = plain_access_[static_cast<std::size_t>(owner)];
  devices = allowed ? devices | Bit(ordinal) : devices & ~Bit(ordinal);
}

void AddressSpace::Clear(int arena) {
  std::vector<std::shared_ptr<Mapping>> keep;
  const std::uint64_t first = start_ + static_cast<std::uint64_t>(arena) * arena_size_;
  MutexLock lock(mutex_);
  for (auto entry = table_.lower_bound(first);
       entry != table_.end() && entry->first - first < arena_size_;
       entry = table_.lower_bound(first)) {
    const std::shared_ptr<Mapping>& mapping = keep.emplace_back(entry->second);
    if (mapping->plain_owner >= 0) {
      arenas_[static_cast<std::size_t>(arena)].plain.Free(mapping->address,
                                                          mapping->end - mapping->address);
    }
    RemoveLocked(entry);
  }
  for (auto reservation = reservations_.lower_bound(first);
       reservation != reservations_.end() && reservation->first - first < arena_size_;) {
    arenas_[static_cast<std::size_t>(arena)].reservations.Free(reservation->first,
                                                               reservation->second);
    reservation = reservations_.erase(reservation);
  }
}

bool AddressSpace::AllowedLocked(const Mapping& mapping, int ordinal, Access access) const {
  if (mapping.plain_owner >= 0) {
    return mapping.plain_owner == ordinal ||
           (plain_access_[static_cast<std::size_t>(mapping.plain_owner)] & Bit(ordinal)) != 0;
  }
  const bool read = !Allows(access, Access::kRead) || (mapping.readers & Bit(ordinal)) != 0;
  const bool write = !Allows(access, Access::kWrite) || (mapping.writers & Bit(ordinal)) != 0;
  return read && write;
}

Result<std::vector<std::shared_ptr<AddressSpace::Mapping>>> AddressSpace::CheckLocked(
    int ordinal, std::uint64_t address, Bytes size, Access access) {
  std::vector<std::shared_ptr<Mapping>> found;
  if (size.count() > ~std::uint64_t{0} - address) {
    return InvalidArgument(
        fmt::format("{} at {} is not a range", size.count(), ToString(DeviceAddress(address))));
  }
  const std::uint64_t end = address + size.count();
  for (std::uint64_t at = address; at < end;) {
    const Mapping* mapping = FindLocked(at);
    if (mapping == nullptr) {
      return InvalidArgument(fmt::format("{} is not mapped", ToString(DeviceAddress(at))));
    }
    if (!AllowedLocked(*mapping, ordinal, access)) {
      return InvalidArgument(fmt::format("device {} has no {} access at {}", ordinal, Verb(access),
                                         ToString(DeviceAddress(at))));
    }
    found.push_back(table_.find(mapping->address)->second);
    at = mapping->end;
  }
  return found;
}

Status AddressSpace::Check(int ordinal, std::uint64_t address, Bytes size, Access access) {
  MutexLock lock(mutex_);
  return CheckLocked(ordinal, address, size, access).status();
}

Result<std::byte*> AddressSpace::Pin(int ordinal, std::uint64_t address, Bytes size, Access access,
                                     Pins& pins) {
  MutexLock lock(mutex_);
  KEEL_ASSIGN(const auto mappings, CheckLocked(ordinal, address, size, access));
  for (const auto& mapping : mappings) {
    if (mapping->visible) continue;
    if (HasStaleLocked(mapping->address, mapping->end)) {
      return Unavailable(fmt::format("what was mapped at {} before is still in use",
                                     ToString(DeviceAddress(mapping->address))));
    }
    KEEL_TRY(SetShadowLocked(mapping->address, mapping->end, mapping->place));
    mapping->visible = true;
  }
  for (const auto& mapping : mappings) {
    ++mapping->pins;
    pins.pins_.push_back({this, mapping});
  }
  return reinterpret_cast<std::byte*>(address + shadow_distance_);
}

void AddressSpace::WaitForUnpin() {
  MutexLock lock(mutex_);
  unpinned_.WaitUntil(mutex_, std::chrono::steady_clock::now() + std::chrono::milliseconds(1));
}

bool AddressSpace::HasStaleLocked(std::uint64_t start, std::uint64_t end) const {
  return std::any_of(stale_.begin(), stale_.end(), [&](const std::shared_ptr<Mapping>& mapping) {
    return mapping->address < end && start < mapping->end;
  });
}

void AddressSpace::UnpinLocked(const std::shared_ptr<Mapping>& mapping) {
  if (--mapping->pins > 0) return;
  const auto stale = std::find(stale_.begin(), stale_.end(), mapping);
  if (stale == stale_.end()) return;
  stale_.erase(stale);
  if (!HasStaleLocked(mapping->address, mapping->end)) {
    Status restored =
        SetShadowLocked(mapping->address, mapping->end, IdentityPlace(mapping->address));
    if (!restored.ok()) Log(LogLevel::kDebug, restored.ToString());
  }
  unpinned_.NotifyAll();
}

FilePlace AddressSpace::IdentityPlace(std::uint64_t address) const {
  const std::size_t arena = ArenaOf(address);
  return {arenas_[arena].file->descriptor(), address - start_ - arena * arena_size_};
}

FilePlace AddressSpace::ShadowPlaceLocked(std::uint64_t address) const {
  auto overlay = overlays_.upper_bound(address);
  if (overlay == overlays_.begin()) return IdentityPlace(address);
  --overlay;
  if (address >= overlay->second.end) return IdentityPlace(address);
  return {overlay->second.place.descriptor,
          overlay->second.place.offset + (address - overlay->first)};
}

bool AddressSpace::SplitsLocked(std::uint64_t boundary) const {
  // The edge of an arena is a boundary whatever is mapped there, and counted with the arena.
  if ((boundary - start_) % arena_size_ == 0) return false;
  const FilePlace before = ShadowPlaceLocked(boundary - 1);
  const FilePlace after = ShadowPlaceLocked(boundary);
  return before.descriptor != after.descriptor || before.offset + 1 != after.offset;
}

Status AddressSpace::SetShadowLocked(std::uint64_t start, std::uint64_t end, FilePlace place) {
  // What lies there now: overlays that reach into the range, and how often the host kernel's
  // mapping is split in it.
  auto first = overlays_.upper_bound(start);
  if (first != overlays_.begin() && std::prev(first)->second.end > start) --first;
  const bool overlaid = first != overlays_.end() && first->first < end;
  const bool identity = place == IdentityPlace(start);
  if (identity && !overlaid) return OkStatus();

  std::size_t splits_before = 0;
  for (std::uint64_t at = start; at < end;) {
    splits_before += SplitsLocked(at) ? 1 : 0;
    auto next = overlays_.upper_bound(at);
    std::uint64_t step = next == overlays_.end() ? end : std::min(end, next->first);
    if (next != overlays_.begin() && std::prev(next)->second.end > at) {
      step = std::min(step, std::prev(next)->second.end);
    }
    at = step;
  }
  splits_before += SplitsLocked(end) ? 1 : 0;

  // Inside there will be none; at the two ends there is one unless the neighbour continues it.
  std::size_t splits_after = 0;
  if ((start - start_) % arena_size_ != 0) {
    const FilePlace before = ShadowPlaceLocked(start - 1);
    splits_after += before == FilePlace{place.descriptor, place.offset - 1} ? 0 : 1;
  }
  if ((end - start_) % arena_size_ != 0) {
    const FilePlace after = ShadowPlaceLocked(end);
    splits_after += after == FilePlace{place.descriptor, place.offset + (end - start)} ? 0 : 1;
  }

  if (splits_after > splits_before &&
      budget_->used + (splits_after - splits_before) > budget_->limit) {
    return ResourceExhausted(fmt::format(
        "the simulated devices would need more than {} memory mappings of the host ({}); map "
        "memory in larger pieces, or raise the limit",
        budget_->limit, budget_->limit_name));
  }
  if (mmap(reinterpret_cast<void*>(start + shadow_distance_), end - start, PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_FIXED, place.descriptor,
           static_cast<off_t>(place.offset)) == MAP_FAILED) {
    const int error = errno;
    return std::move(SystemError("mapping simulated memory", error))
        .Annotate(fmt::format("{} host mappings are in use; {}", budget_->used.load(),
                              budget_->limit_name));
  }
  budget_->used += splits_after;
  budget_->used -= splits_before;

  // Cut the range out of the overlays.
  while (first != overlays_.end() && first->first < end) {
    const std::uint64_t from = first->first;
    const Overlay old = first->second;
    first = overlays_.erase(first);
    if (from < start) overlays_.emplace(from, Overlay{start, old.place});
    if (old.end > end) {
      overlays_.emplace(end,
                        Overlay{old.end, {old.place.descriptor, old.place.offset + (end - from)}});
      break;
    }
  }
  if (!identity) overlays_.emplace(start, Overlay{end, place});
  return OkStatus();
}

}  // namespace keel::sim
