#include "drivers/shared/address_map.h"

#include <fmt/format.h>

#include <iterator>

namespace keel::vendor {
namespace {

std::string Range(std::uint64_t address, std::uint64_t size) {
  return fmt::format("{} at {:#x}", ToString(Bytes(size)), address);
}

}  // namespace

void AddressMap::AddReservation(hal::DeviceId owner, DeviceAddress address, Bytes size) {
  MutexLock lock(mutex_);
  reservations_[address.value()] = {size.count(), owner};
}

Status AddressMap::TakeReservation(DeviceAddress address, Bytes size) {
  MutexLock lock(mutex_);
  const auto found = reservations_.find(address.value());
  if (found == reservations_.end() || found->second.size != size.count()) {
    return InvalidArgument(
        fmt::format("{} is not a whole reservation", Range(address.value(), size.count())));
  }
  const auto mapping = FirstMappingLocked(address.value());
  if (mapping != mappings_.end() && mapping->first < address.value() + size.count()) {
    return FailedPrecondition(fmt::format("the reservation of {} still holds a mapping of {}",
                                          Range(address.value(), size.count()),
                                          Range(mapping->first, mapping->second.size)));
  }
  reservations_.erase(found);
  return OkStatus();
}

Status AddressMap::AddMapping(hal::DeviceId owner, DeviceAddress address, Bytes size) {
  MutexLock lock(mutex_);
  const std::uint64_t at = address.value();
  auto reservation = reservations_.upper_bound(at);
  const bool inside = reservation != reservations_.begin() && [&] {
    reservation = std::prev(reservation);
    const std::uint64_t offset = at - reservation->first;
    return offset <= reservation->second.size && size.count() <= reservation->second.size - offset;
  }();
  if (!inside || size.empty()) {
    return InvalidArgument(
        fmt::format("{} does not lie in one reservation", Range(at, size.count())));
  }
  const auto mapping = FirstMappingLocked(at);
  if (mapping != mappings_.end() && mapping->first < at + size.count()) {
    return FailedPrecondition(fmt::format("{} is mapped already, by {}", Range(at, size.count()),
                                          Range(mapping->first, mapping->second.size)));
  }
  mappings_[at] = {size.count(), owner};
  return OkStatus();
}

template <class Visit>
Status AddressMap::WalkWholeLocked(DeviceAddress address, Bytes size, Visit visit) const {
  std::uint64_t at = address.value();
  std::uint64_t left = size.count();
  auto mapping = mappings_.find(at);
  while (left > 0 && mapping != mappings_.end() && mapping->first == at &&
         mapping->second.size <= left) {
    visit(Mapped{at, mapping->second.size, mapping->second.owner});
    at += mapping->second.size;
    left -= mapping->second.size;
    ++mapping;
  }
  if (left == 0 && !size.empty()) return OkStatus();
  return InvalidArgument(fmt::format("{} is not one or several whole mappings without a hole",
                                     Range(address.value(), size.count())));
}

Status AddressMap::CheckWhole(DeviceAddress address, Bytes size) const {
  MutexLock lock(mutex_);
  return WalkWholeLocked(address, size, [](const Mapped&) {});
}

Result<std::vector<AddressMap::Mapped>> AddressMap::TakeMappings(DeviceAddress address,
                                                                 Bytes size) {
  MutexLock lock(mutex_);
  std::vector<Mapped> found;
  KEEL_TRY(WalkWholeLocked(address, size, [&](const Mapped& each) { found.push_back(each); }));
  for (const Mapped& mapping : found) mappings_.erase(mapping.address);
  return found;
}

void AddressMap::PutBack(const std::vector<Mapped>& mappings) {
  MutexLock lock(mutex_);
  for (const Mapped& mapping : mappings) {
    mappings_[mapping.address] = {mapping.size, mapping.owner};
  }
}

void AddressMap::Forget(hal::DeviceId owner) {
  MutexLock lock(mutex_);
  const auto owned = [&](const auto& entry) { return entry.second.owner == owner; };
  std::erase_if(mappings_, owned);
  std::erase_if(reservations_, owned);
}

AddressMap::Extents::const_iterator AddressMap::FirstMappingLocked(std::uint64_t address) const {
  auto next = mappings_.upper_bound(address);
  if (next != mappings_.begin()) {
    const auto before = std::prev(next);
    if (address - before->first < before->second.size) return before;
  }
  return next;
}

}  // namespace keel::vendor
