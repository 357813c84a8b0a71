#include "capi/known_range.h"

#include <map>

#include "base/fork.h"
#include "keel/base/mutex.h"

namespace keel::capi {
namespace {

struct Known {
  Bytes size;
  int times = 0;  // an output may be held more than once
};

struct Ranges {
  SharedMutex mutex;
  // By device, because two of them may have the same addresses.
  std::map<std::pair<const hal::Device*, DeviceAddress>, Known> known KEEL_GUARDED_BY(mutex);
};

Ranges& All() {
  static constinit PerProcess<Ranges> ranges;
  return ranges.Get();
}

}  // namespace

KnownRange::KnownRange(std::shared_ptr<hal::Device> device, AddressSpan span)
    : device_(std::move(device)), address_(span.address) {
  Ranges& all = All();
  const WriterLock lock(all.mutex);
  Known& known = all.known[{device_.get(), span.address}];
  known.size = span.size;
  ++known.times;
}

KnownRange& KnownRange::operator=(KnownRange&& other) noexcept {
  if (this != &other) {
    Forget();
    device_ = std::move(other.device_);
    address_ = other.address_;
  }
  return *this;
}

void KnownRange::Forget() {
  if (device_ == nullptr) return;
  Ranges& all = All();
  const WriterLock lock(all.mutex);
  const auto found = all.known.find({device_.get(), address_});
  // A forked child has none of its parent's.
  if (found != all.known.end() && --found->second.times == 0) all.known.erase(found);
  device_ = nullptr;
}

std::optional<AddressSpan> KnownRange::Find(const hal::Device& device, DeviceAddress address) {
  Ranges& all = All();
  const ReaderLock lock(all.mutex);
  auto after = all.known.upper_bound({&device, address});
  if (after == all.known.begin()) return std::nullopt;
  const auto& [where, known] = *--after;
  if (where.first != &device || address.value() - where.second.value() >= known.size.count()) {
    return std::nullopt;
  }
  return AddressSpan{where.second, known.size};
}

}  // namespace keel::capi
