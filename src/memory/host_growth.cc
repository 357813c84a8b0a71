// Segments of pinned memory: which to take from the driver when no block is free, and which to give
// back.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/ranges.h"
#include "keel/base/log.h"
#include "memory/host_state.h"

namespace keel::memory {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint64_t kPage = HostSegments::kPage;
// A segment for small requests is an eighth of what they have, within these.
constexpr std::uint64_t kLeastSegment = std::uint64_t{1} << 20;
constexpr std::uint64_t kMostSegment = std::uint64_t{16} << 20;

// Bytes too few to be worth a driver call: what the cache may hold beyond its budget.
constexpr std::uint64_t kSlack = std::uint64_t{2} << 20;

// How long the thread that collects waits for one stream before it looks at the others.
constexpr std::chrono::milliseconds kLook{1};

// With streams that are not done, where the alternative is to fail.
constexpr std::chrono::seconds kPatience{60};

std::int64_t Microseconds(Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

}  // namespace

void HostAllocator::State::PlanGrowthLocked(Request& request) {
  request.kind = request.small ? Kind::kSmall : Kind::kLarge;
  request.growth = HostSegments::RoundToPages(request.rounded);
  if (request.small && !request.desperate) {
    const std::uint64_t segment =
        std::clamp(segments_.small_bytes() / 8 / kPage * kPage, kLeastSegment, kMostSegment);
    if (FitsLocked(segment)) request.growth = std::max(request.growth, segment);
  }
  if (!options_.cache || !KeptLocked(request.growth)) {
    request.kind = Kind::kDirect;
    request.growth = HostSegments::RoundToPages(request.rounded);
  }
}

void HostAllocator::State::ReleaseLocked(std::uint64_t excess, Memories* released) {
  std::vector<Block*> whole = segments_.WholeBlocks();
  std::sort(whole.begin(), whole.end(),
            [](const Block* a, const Block* b) { return a->size < b->size; });
  while (excess > 0 && !whole.empty()) {
    // The smallest that suffices, else the largest.
    auto at = std::find_if(whole.begin(), whole.end(),
                           [excess](const Block* block) { return block->size >= excess; });
    if (at == whole.end()) --at;
    excess -= std::min(excess, (*at)->size);
    released->push_back(segments_.Remove(*at));
    whole.erase(at);
  }
}

HostAllocator::State::Step HostAllocator::State::NextStepLocked(Request& request, Block** block,
                                                                Memories* released) {
  *block = TakeLocked(request);
  if (*block != nullptr) return Step::kTaken;
  PlanGrowthLocked(request);

  std::uint64_t releasable = 0;
  for (const Block* const whole : segments_.WholeBlocks()) releasable += whole->size;
  const std::uint64_t wanted = held_ + request.growth;
  const std::uint64_t used =
      std::max(most_requested_, Unsigned(stats_.requested_bytes.current) + request.size.count());
  const std::uint64_t budget =
      kSlack + segments_.reserve_bytes() +
      static_cast<std::uint64_t>(static_cast<double>(used) * (1.0 + options_.overhead));
  const std::uint64_t limit =
      limit_.empty() ? std::numeric_limits<std::uint64_t>::max() : limit_.count();
  const bool refused = wanted > limit && wanted - limit > releasable;
  // Beyond the budget, and nothing can be given back that would help: what is there must do.
  const bool scarce = !request.small && wanted > budget && wanted - budget > releasable;
  if (options_.cache && (refused || scarce || request.desperate)) {
    *block = segments_.TakeAny(request.rounded, request.alignment);
    if (*block != nullptr) return Step::kTaken;
  }
  if (refused) return Step::kWait;
  const std::uint64_t bound = request.desperate ? 0 : std::min(limit, budget);
  if (wanted > bound) ReleaseLocked(wanted - bound, released);
  if (!released->empty()) return Step::kRelease;
  if (request.growth >= request.refused) return Step::kWait;
  held_ += request.growth;
  return Step::kGrow;
}

Result<void*> HostAllocator::State::AllocateSlowly(Request request) {
  TakeReserve();
  const Deadline patience = Deadline::After(kPatience);
  const Deadline deadline = std::min(request.deadline, patience,
                                     [](Deadline a, Deadline b) { return a.when() < b.when(); });
  Status no_memory;  // the driver's word
  for (;;) {
    Memories released;
    DeferredBlocks::Waiting waiting;
    Step step = Step::kTaken;
    Block* block = nullptr;
    {
      MutexLock lock(mutex_);
      // An event's error is no reason to refuse memory that is there; a loss is, and the device
      // says so itself.
      static_cast<void>(CollectLocked(&released));
      step = NextStepLocked(request, &block, &released);
      if (block != nullptr) HandOutLocked(block, request.size);
      if (step == Step::kWait) waiting = pending_.Oldest();
    }
    // What fails here is on the retry list, and logged.
    const bool gave_back = !released.empty();
    static_cast<void>(GiveBack(std::move(released)));
    if (step == Step::kTaken) return HostSegments::PointerTo(block);
    if (gave_back) {
      request.refused = Request::kNever;
      continue;
    }
    if (step == Step::kWait) {
      const Status waited = waiting.batch == nullptr ? FailedPrecondition("nothing to wait for")
                                                     : WaitFor(waiting, deadline);
      const bool in_vain =
          waited.code() == StatusCode::kDeadlineExceeded && !request.deadline.Passed();
      if (waited.code() == StatusCode::kFailedPrecondition || in_vain) {
        MutexLock lock(mutex_);
        return no_memory.ok() ? ExhaustedLocked(request) : no_memory;
      }
      KEEL_TRY(waited);
      request.refused = Request::kNever;
      continue;
    }
    Result<void*> pointer = Grow(request.growth, request.kind, &request);
    if (pointer.ok() || pointer.status().code() != StatusCode::kResourceExhausted) return pointer;
    no_memory = pointer.status();
    request.refused = request.growth;
    request.desperate = true;
  }
}

Result<void*> HostAllocator::State::Grow(std::uint64_t growth, Kind kind, const Request* request,
                                         Who who) {
  const Clock::time_point start = Clock::now();
  PinnedOptions options = pinned_;
  // Nobody waits for it: then its pages may as well be there.
  options.prefault = options.prefault || who == Who::kBackground;
  Result<PinnedMemory> memory = PinnedMemory::Create(device_, Bytes(growth), options);
  const Clock::duration took = Clock::now() - start;

  MutexLock lock(mutex_);
  Result<Block*> added = memory.ok() ? segments_.Add(*std::move(memory), kind) : memory.status();
  if (!added.ok()) {
    held_ -= growth;
    return added.status();
  }
  ++stats_.memory.num_host_alloc;
  stats_.memory.host_alloc_time.Add(Microseconds(took));
  stats_.memory.allocations.Increase(1);
  stats_.memory.allocated_bytes.Increase(Signed(growth));
  if (request == nullptr) return nullptr;
  // In the same breath, before others can.
  const bool direct = kind == Kind::kDirect;
  Block* const block = HostSegments::TakeFrom(*added, direct ? growth : request->rounded);
  if (direct) block->mark = kOnce;
  return HandOutLocked(block, request->size);
}

Status HostAllocator::State::ExhaustedLocked(const Request& request) {
  return ResourceExhausted(fmt::format(
      "no pinned memory for {}: {} are held of a limit of {}; {} of them are in use for {} that "
      "were asked for, {} wait for streams and {} for graphs; the largest free block is {}. Raise "
      "the limit, free sooner, or call ReleaseCaptured()",
      ToString(request.size), ToString(Bytes(held_)),
      limit_.empty() ? std::string("none") : ToString(limit_),
      ToString(Bytes(Unsigned(stats_.memory.active_bytes.current))),
      ToString(Bytes(Unsigned(stats_.requested_bytes.current))),
      ToString(Bytes(Unsigned(stats_.pending_bytes))),
      ToString(Bytes(Unsigned(stats_.captured_bytes))), ToString(Bytes(segments_.largest_free()))));
}

// --- The driver --------------------------------------------------------------------------------

Status HostAllocator::State::GiveBack(Memories memories) {
  Status first;
  for (PinnedMemory& memory : memories) {
    if (!memory) continue;
    const ScopedRange range("unpin host memory");
    const std::uint64_t size = memory.size().count();
    const Clock::time_point start = Clock::now();
    Status status = memory.Close();
    // What could not be closed goes on the retry list with its owner.
    memory = {};
    const Clock::duration took = Clock::now() - start;
    if (first.ok() && status.code() != StatusCode::kDeviceLost) first = std::move(status);
    MutexLock lock(mutex_);
    held_ -= size;
    stats_.memory.allocations.Decrease(1);
    stats_.memory.allocated_bytes.Decrease(Signed(size));
    ++stats_.memory.num_host_free;
    stats_.memory.host_free_time.Add(Microseconds(took));
  }
  return first;
}

Status HostAllocator::State::WaitFor(const DeferredBlocks::Waiting& waiting, Deadline deadline) {
  const ScopedRange range("wait for a stream");
  // Not the queues, which the lock guards: the device and what `waiting` keeps.
  KEEL_TRY(DeferredBlocks::Wait(*device_, waiting, deadline));
  MutexLock lock(mutex_);
  waiting.batch->reached = true;
  return OkStatus();
}

Status HostAllocator::State::Trim(Bytes target) {
  KEEL_TRY(Usable());
  const ScopedRange range("trim host memory");
  Memories released;
  Status first;
  {
    MutexLock lock(mutex_);
    first = CollectLocked(&released);
    std::vector<Block*> whole = segments_.WholeBlocks();
    std::sort(whole.begin(), whole.end(),
              [](const Block* a, const Block* b) { return a->size > b->size; });
    std::uint64_t held = held_;
    for (const PinnedMemory& memory : released) held -= memory.size().count();
    for (Block* const block : whole) {
      if (held <= target.count()) break;
      held -= block->size;
      released.push_back(segments_.Remove(block));
    }
  }
  Status given = GiveBack(std::move(released));
  if (first.ok()) first = std::move(given);
  Status drained = device_->retries().Drain();
  return first.ok() ? drained : first;
}

void HostAllocator::State::GrowInBackground() {
  const std::uint64_t reserve = options_.background_reserve.count();
  const std::uint64_t growth = std::max(HostSegments::RoundToPages(reserve), kLeastSegment);
  bool refused = false;
  for (;;) {
    {
      MutexLock lock(mutex_);
      // After a refusal, and at the limit, only when somebody has taken memory again. Whoever needs
      // it and does not get it is told why.
      while (!stopping_ && (refused || segments_.small_free_bytes() >= reserve ||
                            !FitsLocked(growth) || !KeptLocked(growth))) {
        grow_.Wait(mutex_);
        refused = false;
      }
      if (stopping_) return;
      held_ += growth;
    }
    refused = !Grow(growth, Kind::kSmall, nullptr, Who::kBackground).ok();
  }
}

void HostAllocator::State::CollectInBackground() {
  for (;;) {
    Memories released;
    DeferredBlocks::Waiting waiting;
    {
      MutexLock lock(mutex_);
      while (!stopping_ && pending_.empty()) collect_.Wait(mutex_);
      if (stopping_) return;
      static_cast<void>(CollectLocked(&released));  // an error is for whoever needs the memory
      waiting = pending_.Oldest();
    }
    static_cast<void>(GiveBack(std::move(released)));
    if (waiting.batch == nullptr) continue;
    const Status waited = DeferredBlocks::Wait(*device_, waiting, Deadline::After(kLook));
    MutexLock lock(mutex_);
    if (waited.ok()) {
      waiting.batch->reached = true;
    } else if (waited.code() != StatusCode::kDeadlineExceeded && !stopping_) {
      // A capture, or an error: nothing to wait for at this moment.
      collect_.WaitUntil(mutex_, Clock::now() + kLook);
    }
  }
}

void HostAllocator::State::TakeReserve() {
  const std::uint64_t growth = HostSegments::RoundToPages(options_.reserve.count());
  {
    MutexLock lock(mutex_);
    if (growth == 0 || !options_.cache || std::exchange(reserve_taken_, true)) return;
    if (!FitsLocked(growth)) {
      Log(LogLevel::kWarn, fmt::format("HostAllocator: a reserve of {} is more than the limit of "
                                       "{}; there is none",
                                       ToString(Bytes(growth)), ToString(limit_)));
      return;
    }
    held_ += growth;
  }
  if (const Status taken = Grow(growth, Kind::kReserve, nullptr).status(); !taken.ok()) {
    Log(LogLevel::kWarn, fmt::format("HostAllocator: no reserve of {}: {}", ToString(Bytes(growth)),
                                     taken.ToString()));
  }
}

}  // namespace keel::memory
