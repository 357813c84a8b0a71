#include "keel/memory/registration_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/fork.h"
#include "keel/base/log.h"
#include "keel/base/mutex.h"

namespace keel::memory {

namespace internal {

// Ranges do not overlap; each is under the address where it ends, so that the first one that ends
// after an address is the first that can contain it.
class RegistrationTable {
 public:
  RegistrationTable(std::shared_ptr<hal::Device> device, const RegistrationCacheOptions& options)
      : device_(std::move(device)), options_(options) {}
  RegistrationTable(const RegistrationTable&) = delete;
  RegistrationTable& operator=(const RegistrationTable&) = delete;

  bool here() const { return home_.here(); }
  Status Usable() KEEL_EXCLUDES(mutex_);
  // The key of a pinned range that contains [start, end), with one more user; or nothing.
  std::optional<std::uint64_t> Find(std::uint64_t start, std::uint64_t end) KEEL_EXCLUDES(mutex_);
  bool Overlaps(std::uint64_t start, std::uint64_t end) KEEL_EXCLUDES(mutex_);
  Result<std::uint64_t> Pin(std::uint64_t start, std::uint64_t end) KEEL_EXCLUDES(mutex_);
  bool SeenOften(std::uint64_t start, std::uint64_t end) KEEL_EXCLUDES(mutex_);
  void Release(std::uint64_t key) noexcept KEEL_EXCLUDES(mutex_);
  Status Invalidate(std::uint64_t start, std::uint64_t end) KEEL_EXCLUDES(mutex_);
  Status Maintain() KEEL_EXCLUDES(mutex_);
  Status Trim(Bytes target) KEEL_EXCLUDES(mutex_);
  RegistrationCache::Stats stats() const KEEL_EXCLUDES(mutex_);

 private:
  struct Range {
    std::uint64_t start = 0;
    std::uint64_t last_use = 0;
    int users = 0;
    bool busy = false;    // a driver call on it is under way
    bool marked = false;  // to be unpinned by Maintain
    std::uint64_t size(std::uint64_t end) const { return end - start; }
  };
  using Ranges = std::map<std::uint64_t, Range>;

  static bool Idle(const Range& range) { return range.users == 0 && !range.busy; }
  Ranges::iterator FirstOverlapLocked(std::uint64_t start) KEEL_REQUIRES(mutex_) {
    return ranges_.upper_bound(start);
  }
  // Takes a range out of circulation, for Unpin.
  struct Claim {
    std::uint64_t start = 0;
    std::uint64_t end = 0;
  };
  static Claim Take(Ranges::iterator at) {
    at->second.busy = true;
    return {at->second.start, at->first};
  }
  // Calls the driver without the lock, and forgets the ranges that are no longer pinned. The first
  // error.
  Status Unpin(const std::vector<Claim>& claims) KEEL_EXCLUDES(mutex_);
  void MarkForRoomLocked(std::uint64_t needed) KEEL_REQUIRES(mutex_);
  void ForgetAllLocked() KEEL_REQUIRES(mutex_);

  const std::shared_ptr<hal::Device> device_;
  const RegistrationCacheOptions options_;
  const Home home_;

  mutable Mutex mutex_;
  CondVar changed_;  // a range has lost a user, or is not busy any more
  Ranges ranges_ KEEL_GUARDED_BY(mutex_);
  bool any_marked_ KEEL_GUARDED_BY(mutex_) = false;  // since Maintain looked
  std::uint64_t clock_ KEEL_GUARDED_BY(mutex_) = 0;
  // How often LeaseIfSeen was asked for a range that is not pinned, by a mix of start and end: a
  // collision pins one turn too early, which does no harm.
  std::unordered_map<std::uint64_t, int> seen_ KEEL_GUARDED_BY(mutex_);
  RegistrationCache::Stats stats_ KEEL_GUARDED_BY(mutex_);
};

Status RegistrationTable::Usable() {
  Status health = device_->Health();
  if (!health.ok() && here()) {
    MutexLock lock(mutex_);
    ForgetAllLocked();
  }
  return health;
}

// On a lost device nothing is pinned any more. Ranges that are held stay until their leases go.
void RegistrationTable::ForgetAllLocked() {
  for (auto at = ranges_.begin(); at != ranges_.end();) {
    if (Idle(at->second)) {
      stats_.bytes -= Bytes(at->second.size(at->first));
      at = ranges_.erase(at);
    } else {
      ++at;
    }
  }
}

std::optional<std::uint64_t> RegistrationTable::Find(std::uint64_t start, std::uint64_t end) {
  MutexLock lock(mutex_);
  const auto found = FirstOverlapLocked(start);
  if (found == ranges_.end() || found->second.start > start || found->first < end ||
      found->second.busy) {
    return std::nullopt;
  }
  ++found->second.users;
  found->second.last_use = ++clock_;
  found->second.marked = false;
  ++stats_.hits;
  return found->first;
}

bool RegistrationTable::Overlaps(std::uint64_t start, std::uint64_t end) {
  MutexLock lock(mutex_);
  const auto found = FirstOverlapLocked(start);
  return found != ranges_.end() && found->second.start < end;
}

void RegistrationTable::MarkForRoomLocked(std::uint64_t needed) {
  any_marked_ = true;
  std::vector<Ranges::iterator> idle;
  for (auto at = ranges_.begin(); at != ranges_.end(); ++at) {
    if (Idle(at->second)) idle.push_back(at);
  }
  std::sort(idle.begin(), idle.end(),
            [](auto a, auto b) { return a->second.last_use < b->second.last_use; });
  std::uint64_t room = 0;
  for (const auto at : idle) {
    if (room >= needed) break;
    at->second.marked = true;
    room += at->second.size(at->first);
  }
}

Result<std::uint64_t> RegistrationTable::Pin(std::uint64_t start, std::uint64_t end) {
  std::vector<Claim> replaced;
  {
    MutexLock lock(mutex_);
    if (Bytes(end - start) > options_.limit) {
      return ResourceExhausted(fmt::format("{} cannot be pinned: the limit is {}",
                                           ToString(Bytes(end - start)), ToString(options_.limit)));
    }
    std::uint64_t known = 0;
    std::vector<Ranges::iterator> overlapping;
    for (auto at = FirstOverlapLocked(start); at != ranges_.end() && at->second.start < end; ++at) {
      if (!Idle(at->second)) {
        return Unavailable(
            fmt::format("the range {:#x} to {:#x} overlaps one that is in use, {:#x} to {:#x}; "
                        "copy without pinning, or try again later",
                        start, end, at->second.start, at->first));
      }
      overlapping.push_back(at);
      known += at->second.size(at->first);
    }
    // The union: whatever was pinned of it will be again.
    if (!overlapping.empty()) {
      start = std::min(start, overlapping.front()->second.start);
      end = std::max(end, overlapping.back()->first);
    }
    const std::uint64_t added = end - start - known;
    const Bytes wanted = stats_.bytes + Bytes(added);
    if (wanted > options_.limit || ranges_.size() - overlapping.size() >= options_.max_ranges) {
      MarkForRoomLocked(wanted > options_.limit ? (wanted - options_.limit).count() : 1);
      return ResourceExhausted(
          fmt::format("{} more cannot be pinned: {} are, in {} ranges, and the limit is {} in {}; "
                      "call Maintain() or raise the limit",
                      ToString(Bytes(added)), ToString(stats_.bytes), ranges_.size(),
                      ToString(options_.limit), options_.max_ranges));
    }
    for (const auto at : overlapping) replaced.push_back(Take(at));
    stats_.merges += replaced.size();
    if (replaced.empty()) {
      // The place is taken before the call: nobody else can start to pin the same.
      ranges_[end] = {.start = start, .last_use = ++clock_, .busy = true};
      stats_.bytes += Bytes(added);
      stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.bytes);
    }
  }
  if (!replaced.empty()) {
    KEEL_TRY(Unpin(replaced));
    return Pin(start, end);
  }
  Status status = device_->RegisterHost(reinterpret_cast<void*>(start), Bytes(end - start));
  MutexLock lock(mutex_);
  changed_.NotifyAll();
  if (!status.ok()) {
    ranges_.erase(end);
    stats_.bytes -= Bytes(end - start);
    return status;
  }
  Range& range = ranges_[end];
  range.busy = false;
  range.users = 1;
  ++stats_.registrations;
  return end;
}

bool RegistrationTable::SeenOften(std::uint64_t start, std::uint64_t end) {
  constexpr std::size_t kMostRemembered = 65536;
  MutexLock lock(mutex_);
  if (seen_.size() >= kMostRemembered) seen_.clear();
  const std::uint64_t key = start * 0x9e3779b97f4a7c15U ^ end;
  if (++seen_[key] < options_.pin_after) return false;
  seen_.erase(key);
  return true;
}

void RegistrationTable::Release(std::uint64_t key) noexcept {
  if (!here()) return;
  MutexLock lock(mutex_);
  const auto found = ranges_.find(key);
  if (found == ranges_.end()) return;
  --found->second.users;
  changed_.NotifyAll();
}

Status RegistrationTable::Unpin(const std::vector<Claim>& claims) {
  Status first;
  for (const Claim& claim : claims) {
    Status status = device_->UnregisterHost(reinterpret_cast<void*>(claim.start));
    MutexLock lock(mutex_);
    changed_.NotifyAll();
    const auto found = ranges_.find(claim.end);
    found->second.busy = false;
    if (status.ok() || status.code() == StatusCode::kDeviceLost) {
      stats_.bytes -= Bytes(claim.end - claim.start);
      ++stats_.releases;
      ranges_.erase(found);
    } else {
      any_marked_ = true;  // if it was, the next Maintain tries again
      if (first.ok()) first = std::move(status);
    }
  }
  return first;
}

Status RegistrationTable::Invalidate(std::uint64_t start, std::uint64_t end) {
  std::vector<Claim> claims;
  {
    MutexLock lock(mutex_);
    const auto overlaps = [&](Ranges::iterator at) KEEL_REQUIRES(mutex_) {
      return at != ranges_.end() && at->second.start < end;
    };
    const auto all_idle = [&]() KEEL_REQUIRES(mutex_) {
      for (auto at = FirstOverlapLocked(start); overlaps(at); ++at) {
        if (!Idle(at->second)) return false;
      }
      return true;
    };
    while (!all_idle()) changed_.Wait(mutex_);
    for (auto at = FirstOverlapLocked(start); overlaps(at); ++at) claims.push_back(Take(at));
  }
  return Unpin(claims);
}

Status RegistrationTable::Maintain() {
  std::vector<Claim> claims;
  {
    MutexLock lock(mutex_);
    if (!any_marked_) return OkStatus();
    any_marked_ = false;
    for (auto at = ranges_.begin(); at != ranges_.end(); ++at) {
      // One that somebody holds is left as it is: it was used since.
      if (at->second.marked && Idle(at->second)) claims.push_back(Take(at));
    }
    stats_.evictions += claims.size();
  }
  return Unpin(claims);
}

Status RegistrationTable::Trim(Bytes target) {
  {
    MutexLock lock(mutex_);
    if (stats_.bytes <= target) return OkStatus();
    MarkForRoomLocked((stats_.bytes - target).count());
  }
  return Maintain();
}

RegistrationCache::Stats RegistrationTable::stats() const {
  if (!here()) return {};
  MutexLock lock(mutex_);
  RegistrationCache::Stats stats = stats_;
  stats.ranges = ranges_.size();
  return stats;
}

}  // namespace internal

namespace {

using internal::RegistrationTable;

constexpr std::uint64_t kPage = 4096;

// Whole pages around a range.
struct Pages {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
};

Result<Pages> PagesOf(const void* pointer, Bytes size) {
  const auto start = reinterpret_cast<std::uint64_t>(pointer);
  const std::optional<Bytes> end = CheckedAdd(Bytes(start), size);
  const std::optional<Bytes> rounded = end ? AlignUp(*end, Bytes(kPage)) : std::nullopt;
  if (pointer == nullptr || size.empty() || !rounded) {
    return InvalidArgument(
        fmt::format("{} bytes at {} are not host memory", size.count(), pointer));
  }
  return Pages{AlignDown(Bytes(start), Bytes(kPage)).count(), rounded->count()};
}

// The caches of the process, for MemoryGone and IsLentByACache.
struct Listeners {
  std::atomic<int> count{0};
  Mutex mutex;
  std::vector<std::shared_ptr<RegistrationTable>> tables KEEL_GUARDED_BY(mutex);
};

Listeners& AllListeners() {
  static PerProcess<Listeners> listeners;
  return listeners.Get();
}

}  // namespace

void RegistrationLease::Release() noexcept { table_->Release(key_); }

RegistrationCache::RegistrationCache(std::shared_ptr<hal::Device> device,
                                     const RegistrationCacheOptions& options)
    : table_(MakeSharedHere<RegistrationTable>(std::move(device), options)) {
  Listeners& listeners = AllListeners();
  MutexLock lock(listeners.mutex);
  listeners.tables.push_back(table_);
  listeners.count.fetch_add(1);
}

RegistrationCache::~RegistrationCache() {
  if (!table_->here()) return;  // the parent's pins, and perhaps locks
  {
    Listeners& listeners = AllListeners();
    MutexLock lock(listeners.mutex);
    std::erase(listeners.tables, table_);
    listeners.count.fetch_sub(1);
  }
  Status status = table_->Trim(Bytes(0));
  if (!status.ok()) status = table_->Trim(Bytes(0));
  if (!status.ok()) Log(LogLevel::kWarn, "RegistrationCache: " + status.ToString());
}

Result<RegistrationLease> RegistrationCache::Lease(const void* pointer, Bytes size) {
  KEEL_TRY(table_->Usable());
  KEEL_ASSIGN(const Pages pages, PagesOf(pointer, size));
  if (const auto key = table_->Find(pages.start, pages.end)) return RegistrationLease(table_, *key);
  KEEL_ASSIGN(const std::uint64_t key, table_->Pin(pages.start, pages.end));
  return RegistrationLease(table_, key);
}

RegistrationLease RegistrationCache::Find(const void* pointer, Bytes size) {
  const Result<Pages> pages = PagesOf(pointer, size);
  if (!pages.ok() || !table_->Usable().ok()) return {};
  const auto key = table_->Find(pages->start, pages->end);
  return key ? RegistrationLease(table_, *key) : RegistrationLease();
}

bool RegistrationCache::Overlaps(const void* pointer, Bytes size) {
  const Result<Pages> pages = PagesOf(pointer, size);
  return pages.ok() && table_->here() && table_->Overlaps(pages->start, pages->end);
}

RegistrationLease RegistrationCache::LeaseIfSeen(const void* pointer, Bytes size) {
  const Result<Pages> pages = PagesOf(pointer, size);
  if (!pages.ok() || !table_->Usable().ok()) return {};
  if (const auto key = table_->Find(pages->start, pages->end)) {
    return RegistrationLease(table_, *key);
  }
  if (!table_->SeenOften(pages->start, pages->end)) return {};
  const Result<std::uint64_t> key = table_->Pin(pages->start, pages->end);
  return key.ok() ? RegistrationLease(table_, *key) : RegistrationLease();
}

Status RegistrationCache::Invalidate(const void* pointer, Bytes size) {
  KEEL_TRY(table_->here() ? OkStatus() : table_->Usable());
  KEEL_ASSIGN(const Pages pages, PagesOf(pointer, size));
  return table_->Invalidate(pages.start, pages.end);
}

Status RegistrationCache::Maintain() {
  KEEL_TRY(table_->Usable());
  return table_->Maintain();
}

Status RegistrationCache::Trim(Bytes target) {
  KEEL_TRY(table_->Usable());
  return table_->Trim(target);
}

RegistrationCache::Stats RegistrationCache::stats() const { return table_->stats(); }

bool IsLentByACache(const void* pointer, Bytes size) {
  Listeners& listeners = AllListeners();
  if (listeners.count.load(std::memory_order_acquire) == 0) return false;
  const Result<Pages> pages = PagesOf(pointer, size);
  if (!pages.ok()) return false;
  MutexLock lock(listeners.mutex);
  return std::any_of(listeners.tables.begin(), listeners.tables.end(),
                     [&](const auto& table) { return table->Overlaps(pages->start, pages->end); });
}

Status MemoryGone(const void* pointer, Bytes size) {
  Listeners& listeners = AllListeners();
  if (listeners.count.load(std::memory_order_acquire) == 0) return OkStatus();
  const Result<Pages> pages = PagesOf(pointer, size);
  if (!pages.ok()) return OkStatus();
  std::vector<std::shared_ptr<RegistrationTable>> tables;
  {
    MutexLock lock(listeners.mutex);
    tables = listeners.tables;
  }
  Status first;
  for (const auto& table : tables) {
    Status status = table->Invalidate(pages->start, pages->end);
    if (first.ok()) first = std::move(status);
  }
  return std::move(first).Annotate("memory that goes stays pinned");
}

}  // namespace keel::memory
