#include "keel/memory/host_allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <limits>
#include <system_error>
#include <thread>

#include "base/fork.h"
#include "keel/base/log.h"
#include "keel/base/mutex.h"
#include "keel/hal/memory.h"
#include "memory/deferred_blocks.h"
#include "memory/host_segments.h"
#include "memory/numa_policy.h"

namespace keel::memory {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = HostSegments::Kind;

constexpr std::uint64_t kPage = HostSegments::kPage;
// A segment for small requests is an eighth of what they have, within these.
constexpr std::uint64_t kLeastSegment = std::uint64_t{1} << 20;
constexpr std::uint64_t kMostSegment = std::uint64_t{16} << 20;

// Bits of Block::mark.
constexpr std::uint8_t kUsed = 1;      // streams were recorded
constexpr std::uint8_t kCaptured = 2;  // one of them while it was capturing
constexpr std::uint8_t kOnce = 4;      // of a segment that is not kept

std::uint64_t RoundToPages(std::uint64_t size) { return (size + kPage - 1) / kPage * kPage; }

// Bytes too few to be worth a driver call: what the cache may hold beyond its budget.
constexpr std::uint64_t kSlack = std::uint64_t{2} << 20;

std::int64_t Signed(std::uint64_t value) { return static_cast<std::int64_t>(value); }
std::uint64_t Unsigned(std::int64_t value) { return static_cast<std::uint64_t>(value); }

std::int64_t Microseconds(Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

}  // namespace

class HostAllocator::State {
 public:
  State(std::shared_ptr<hal::Device> device, const HostAllocatorOptions& options);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const std::shared_ptr<hal::Device>& device() const { return device_; }
  bool here() const { return fork_generation_ == ForkGeneration(); }
  // For calls that need no device: OK, or what a forked child is told.
  Status Usable() const { return here() ? OkStatus() : device_->Health(); }

  Result<void*> Allocate(Bytes size, Bytes alignment) KEEL_EXCLUDES(mutex_);
  Status RecordUse(const void* pointer, hal::StreamHandle stream) KEEL_EXCLUDES(mutex_);
  Status Free(void* pointer) KEEL_EXCLUDES(mutex_);
  Status FreeAll(std::span<void* const> pointers) KEEL_EXCLUDES(mutex_);
  Result<HostBlock> Find(const void* pointer) const KEEL_EXCLUDES(mutex_);
  Status Trim(Bytes target) KEEL_EXCLUDES(mutex_);
  Status ReleaseCaptured() KEEL_EXCLUDES(mutex_);
  void SetLimit(Bytes limit) KEEL_EXCLUDES(mutex_);
  HostAllocatorStats stats() const KEEL_EXCLUDES(mutex_);
  void ResetPeakStats() KEEL_EXCLUDES(mutex_);
  void ResetAccumulatedStats() KEEL_EXCLUDES(mutex_);

 private:
  using Memories = std::vector<hal::HostMemory>;

  // A request on its way through the ladder.
  struct Request {
    Bytes size;
    std::uint64_t rounded = 0;
    std::uint64_t alignment = 0;
    bool small = false;
    // What it would ask the driver for.
    std::uint64_t growth = 0;
    Kind kind = Kind::kLarge;
    // The driver had no memory: whatever is free is given back, and it asks for no more than it
    // needs.
    bool desperate = false;
    // What the driver refused, since anything changed.
    static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t refused = kNever;
  };
  enum class Step { kTaken, kGrow, kRelease, kWait };

  Block* TakeLocked(const Request& request) KEEL_REQUIRES(mutex_) {
    if (!options_.cache) return nullptr;
    return request.small ? segments_.TakeSmall(request.rounded, request.alignment)
                         : segments_.TakeLarge(request.rounded);
  }
  void* HandOutLocked(Block* block, Bytes size) KEEL_REQUIRES(mutex_);
  Result<void*> AllocateSlowly(Request request) KEEL_EXCLUDES(mutex_);
  // What to do next. With kTaken there is a block; with kGrow the growth is accounted for already;
  // with kRelease there is memory to give back.
  Step NextStepLocked(Request& request, Block** block, Memories* released) KEEL_REQUIRES(mutex_);
  void PlanGrowthLocked(Request& request) KEEL_REQUIRES(mutex_);
  bool FitsLocked(std::uint64_t growth) const KEEL_REQUIRES(mutex_) {
    return limit_.empty() || held_ + growth <= limit_.count();
  }
  bool KeptLocked(std::uint64_t growth) const KEEL_REQUIRES(mutex_) {
    return options_.cache_limit.empty() || held_ + growth <= options_.cache_limit.count();
  }
  Status ExhaustedLocked(const Request& request) KEEL_REQUIRES(mutex_);
  // Takes free segments out, those that suffice to bring `excess` bytes back with the least of
  // them.
  void ReleaseLocked(std::uint64_t excess, Memories* released) KEEL_REQUIRES(mutex_);
  void GiveLocked(Block* block, Memories* released) KEEL_REQUIRES(mutex_);
  Status CollectLocked(Memories* released) KEEL_REQUIRES(mutex_);
  void RetireLocked(Block* block) KEEL_REQUIRES(mutex_);
  void PutAwayLocked(std::span<Block* const> blocks, Memories* released) KEEL_REQUIRES(mutex_);

  // The driver. None of these is called with the lock held.
  // Adds a segment whose bytes are accounted for already; on an error they are not any more. With a
  // request, cuts its block and hands that out.
  Result<void*> Grow(std::uint64_t growth, Kind kind, const Request* request) KEEL_EXCLUDES(mutex_);
  Status GiveBack(Memories memories) KEEL_EXCLUDES(mutex_);
  Status WaitFor(const DeferredBlocks::Waiting& waiting) KEEL_EXCLUDES(mutex_);

  void Background() KEEL_EXCLUDES(mutex_);
  void WakeBackgroundLocked() KEEL_REQUIRES(mutex_) {
    if (segments_.small_free_bytes() < options_.background_reserve.count()) grow_.NotifyOne();
  }

  const std::shared_ptr<hal::Device> device_;
  const HostAllocatorOptions options_;
  const int numa_node_;
  const std::uint64_t fork_generation_ = ForkGeneration();

  mutable Mutex mutex_;
  Bytes limit_ KEEL_GUARDED_BY(mutex_);
  HostSegments segments_ KEEL_GUARDED_BY(mutex_);
  DeferredBlocks pending_ KEEL_GUARDED_BY(mutex_);
  std::vector<Block*> captured_ KEEL_GUARDED_BY(mutex_);
  // From the driver, with what is being asked for and what is being given back.
  std::uint64_t held_ KEEL_GUARDED_BY(mutex_) = 0;
  std::uint64_t most_requested_ KEEL_GUARDED_BY(mutex_) = 0;
  HostAllocatorStats stats_ KEEL_GUARDED_BY(mutex_);

  CondVar grow_;
  bool stopping_ KEEL_GUARDED_BY(mutex_) = false;
  std::thread background_;
};

HostAllocator::State::State(std::shared_ptr<hal::Device> device,
                            const HostAllocatorOptions& options)
    : device_(std::move(device)),
      options_(options),
      numa_node_(options.numa_node.value_or(device_->info().numa_node)),
      limit_(options.limit),
      pending_(device_, std::max<std::size_t>(options.event_batch, 1)) {
  if (!options_.cache || options_.background_reserve.empty()) return;
  try {
    background_ = std::thread([this] { Background(); });
  } catch (const std::system_error& error) {
    // It grows when asked, then.
    Log(LogLevel::kInfo, fmt::format("HostAllocator: no background thread: {}", error.what()));
  }
}

HostAllocator::State::~State() {
  if (background_.joinable()) {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      grow_.NotifyAll();
    }
    background_.join();
  }
  // A wait that fails once may work the next time; on a lost device there is nothing to wait for.
  for (int failures = 0; failures < 2;) {
    DeferredBlocks::Waiting waiting;
    Memories released;
    {
      MutexLock lock(mutex_);
      static_cast<void>(CollectLocked(&released));
      waiting = pending_.Oldest();
    }
    static_cast<void>(GiveBack(std::move(released)));
    if (waiting.batch == nullptr) break;
    if (!WaitFor(waiting).ok()) ++failures;
  }
  Memories all;
  std::int64_t live = 0;
  {
    MutexLock lock(mutex_);
    live = stats_.memory.active_requests.current;
    all = segments_.RemoveAll();
  }
  if (live > 0) {
    Log(LogLevel::kWarn,
        fmt::format("HostAllocator: destroyed with {} blocks that were not freed", live));
  }
  static_cast<void>(GiveBack(std::move(all)));
}

// --- Allocating --------------------------------------------------------------------------------

void* HostAllocator::State::HandOutLocked(Block* block, Bytes size) {
  block->requested = size.count();
  stats_.memory.active_requests.Increase(1);
  stats_.memory.active_bytes.Increase(Signed(block->size));
  stats_.requested_bytes.Increase(Signed(size.count()));
  most_requested_ = std::max(most_requested_, Unsigned(stats_.requested_bytes.current));
  segments_.Show(block);
  WakeBackgroundLocked();
  return HostSegments::PointerTo(block);
}

Result<void*> HostAllocator::State::Allocate(Bytes size, Bytes alignment) {
  KEEL_TRY(device_->Health());
  if (size.empty() || size.count() > std::numeric_limits<std::int64_t>::max()) {
    return InvalidArgument(fmt::format("pinned memory of {} bytes", size.count()));
  }
  if (!IsPowerOfTwo(alignment) || alignment > kMostAlignment) {
    return InvalidArgument(
        fmt::format("pinned memory aligned to {}; a power of two up to {} can be",
                    alignment.count(), kMostAlignment.count()));
  }
  Request request{.size = size, .small = size <= options_.small_limit};
  request.alignment = std::max(alignment.count(), kQuantum);
  request.rounded = request.small ? RoundToQuantum(size.count()) : RoundToPages(size.count());
  {
    MutexLock lock(mutex_);
    if (Block* const block = TakeLocked(request)) return HandOutLocked(block, size);
  }
  return AllocateSlowly(request);
}

void HostAllocator::State::PlanGrowthLocked(Request& request) {
  request.kind = request.small ? Kind::kSmall : Kind::kLarge;
  request.growth = RoundToPages(request.rounded);
  if (request.small && !request.desperate) {
    const std::uint64_t segment =
        std::clamp(segments_.small_bytes() / 8 / kPage * kPage, kLeastSegment, kMostSegment);
    if (FitsLocked(segment)) request.growth = std::max(request.growth, segment);
  }
  if (!options_.cache || !KeptLocked(request.growth)) {
    request.kind = Kind::kDirect;
    request.growth = RoundToPages(request.rounded);
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
      kSlack + static_cast<std::uint64_t>(static_cast<double>(used) * (1.0 + options_.overhead));
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
      const Status waited =
          waiting.batch == nullptr ? FailedPrecondition("nothing to wait for") : WaitFor(waiting);
      if (waited.code() == StatusCode::kFailedPrecondition) {
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

Result<void*> HostAllocator::State::Grow(std::uint64_t growth, Kind kind, const Request* request) {
  const Clock::time_point start = Clock::now();
  Result<hal::HostMemory> memory = [&] {
    const ScopedNumaNode node(numa_node_);
    return hal::HostMemory::Create(device_, Bytes(growth), options_.host);
  }();
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

// --- Freeing -----------------------------------------------------------------------------------

void HostAllocator::State::RetireLocked(Block* block) {
  stats_.memory.active_requests.Decrease(1);
  stats_.memory.active_bytes.Decrease(Signed(block->size));
  stats_.requested_bytes.Decrease(Signed(block->requested));
}

void HostAllocator::State::GiveLocked(Block* block, Memories* released) {
  const bool once = (block->mark & kOnce) != 0;
  Block* const free = HostSegments::Give(block);
  if (once) released->push_back(segments_.Remove(free));
}

Status HostAllocator::State::Free(void* pointer) {
  KEEL_TRY(Usable());
  {
    MutexLock lock(mutex_);
    Block* const block = segments_.Find(pointer);
    if (block != nullptr && block->mark == 0) {
      segments_.Hide(block);
      RetireLocked(block);
      HostSegments::Give(block);
      return OkStatus();
    }
  }
  return FreeAll({&pointer, 1});
}

Status HostAllocator::State::FreeAll(std::span<void* const> pointers) {
  KEEL_TRY(Usable());
  Memories released;
  {
    MutexLock lock(mutex_);
    std::vector<Block*> blocks;
    for (void* const pointer : pointers) {
      Block* const block = segments_.Find(pointer);
      if (block == nullptr) {
        for (Block* const hidden : blocks) segments_.Show(hidden);
        return InvalidArgument(fmt::format(
            "{} is not what Allocate returned, or was freed already; nothing was freed", pointer));
      }
      // Hidden at once, so that one that is listed twice is seen.
      segments_.Hide(block);
      blocks.push_back(block);
    }
    for (Block* const block : blocks) RetireLocked(block);
    PutAwayLocked(blocks, &released);
  }
  return GiveBack(std::move(released));
}

// Blocks that were handed out and are not any more: to the pool, or to where they wait.
void HostAllocator::State::PutAwayLocked(std::span<Block* const> blocks, Memories* released) {
  std::vector<Block*> used;
  for (Block* const block : blocks) {
    if ((block->mark & kCaptured) != 0) {
      captured_.push_back(block);
      stats_.captured_bytes += Signed(block->size);
    } else if ((block->mark & kUsed) != 0) {
      used.push_back(block);
      stats_.pending_bytes += Signed(block->size);
    } else {
      GiveLocked(block, released);
    }
  }
  if (!used.empty()) pending_.Defer(used);
}

Status HostAllocator::State::CollectLocked(Memories* released) {
  if (pending_.empty()) return OkStatus();
  std::vector<Block*> done;
  Status status = pending_.Collect(&done);
  for (Block* const block : done) {
    stats_.pending_bytes -= Signed(block->size);
    GiveLocked(block, released);
  }
  return status;
}

Status HostAllocator::State::RecordUse(const void* pointer, hal::StreamHandle stream) {
  KEEL_ASSIGN(const hal::CaptureState state, device_->GetCaptureState(stream));
  MutexLock lock(mutex_);
  Block* const block = segments_.FindInside(pointer);
  if (block == nullptr) {
    return InvalidArgument(fmt::format("{} is in no block that is handed out", pointer));
  }
  pending_.AddUse(block, stream);
  block->mark |= state == hal::CaptureState::kNone ? kUsed : kUsed | kCaptured;
  return OkStatus();
}

Status HostAllocator::State::ReleaseCaptured() {
  KEEL_TRY(Usable());
  Memories released;
  {
    MutexLock lock(mutex_);
    const std::vector<Block*> blocks = std::exchange(captured_, {});
    stats_.captured_bytes = 0;
    for (Block* const block : blocks) block->mark &= static_cast<std::uint8_t>(~kCaptured);
    PutAwayLocked(blocks, &released);
  }
  return GiveBack(std::move(released));
}

// --- The driver --------------------------------------------------------------------------------

Status HostAllocator::State::GiveBack(Memories memories) {
  Status first;
  for (hal::HostMemory& memory : memories) {
    if (!memory) continue;
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

Status HostAllocator::State::WaitFor(const DeferredBlocks::Waiting& waiting) {
  // Not the queues, which the lock guards: the device and what `waiting` keeps.
  KEEL_TRY(DeferredBlocks::Wait(*device_, waiting, Deadline::Never()));
  MutexLock lock(mutex_);
  waiting.batch->reached = true;
  return OkStatus();
}

Status HostAllocator::State::Trim(Bytes target) {
  KEEL_TRY(Usable());
  Memories released;
  Status first;
  {
    MutexLock lock(mutex_);
    first = CollectLocked(&released);
    std::vector<Block*> whole = segments_.WholeBlocks();
    std::sort(whole.begin(), whole.end(),
              [](const Block* a, const Block* b) { return a->size > b->size; });
    std::uint64_t held = held_;
    for (const hal::HostMemory& memory : released) held -= memory.size().count();
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

void HostAllocator::State::Background() {
  const std::uint64_t reserve = options_.background_reserve.count();
  const std::uint64_t growth = std::max(RoundToPages(reserve), kLeastSegment);
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
    refused = !Grow(growth, Kind::kSmall, nullptr).ok();
  }
}

// --- Looking -----------------------------------------------------------------------------------

Result<HostBlock> HostAllocator::State::Find(const void* pointer) const {
  KEEL_TRY(Usable());
  MutexLock lock(mutex_);
  const Block* const block = segments_.FindInside(pointer);
  if (block == nullptr) {
    return NotFound(fmt::format("{} is in no block that is handed out", pointer));
  }
  return HostBlock{HostSegments::PointerTo(block), Bytes(block->size), Bytes(block->requested)};
}

void HostAllocator::State::SetLimit(Bytes limit) {
  MutexLock lock(mutex_);
  limit_ = limit;
}

HostAllocatorStats HostAllocator::State::stats() const {
  if (!here()) return {};
  MutexLock lock(mutex_);
  HostAllocatorStats stats = stats_;
  stats.record_failures = static_cast<std::int64_t>(pending_.record_failures());
  return stats;
}

void HostAllocator::State::ResetPeakStats() {
  if (!here()) return;
  MutexLock lock(mutex_);
  stats_.memory.ResetPeak();
  stats_.requested_bytes.ResetPeak();
  most_requested_ = Unsigned(stats_.requested_bytes.current);
}

void HostAllocator::State::ResetAccumulatedStats() {
  if (!here()) return;
  MutexLock lock(mutex_);
  stats_.memory.ResetAccumulated();
  stats_.requested_bytes.ResetAccumulated();
}

// --- HostAllocator -----------------------------------------------------------------------------

HostAllocator::HostAllocator(std::shared_ptr<hal::Device> device,
                             const HostAllocatorOptions& options)
    : state_(std::make_unique<State>(std::move(device), options)) {}

HostAllocator::~HostAllocator() {
  // For ever: the parent's memory, and perhaps a lock that nobody gives back.
  if (!state_->here()) {
    [[maybe_unused]] const State* const parents = state_.release();
  }
}

const std::shared_ptr<hal::Device>& HostAllocator::device() const { return state_->device(); }

Result<void*> HostAllocator::Allocate(Bytes size, Bytes alignment) {
  return state_->Allocate(size, alignment);
}
Status HostAllocator::RecordUse(const void* pointer, hal::StreamHandle stream) {
  return state_->RecordUse(pointer, stream);
}
Status HostAllocator::Free(void* pointer) { return state_->Free(pointer); }
Status HostAllocator::FreeAll(std::span<void* const> pointers) { return state_->FreeAll(pointers); }
Result<HostBlock> HostAllocator::Find(const void* pointer) const { return state_->Find(pointer); }
Status HostAllocator::Trim(Bytes target) { return state_->Trim(target); }
Status HostAllocator::ReleaseCaptured() { return state_->ReleaseCaptured(); }
Status HostAllocator::SetLimit(Bytes limit) {
  KEEL_TRY(state_->Usable());
  state_->SetLimit(limit);
  return OkStatus();
}
HostAllocatorStats HostAllocator::stats() const { return state_->stats(); }
void HostAllocator::ResetPeakStats() { state_->ResetPeakStats(); }
void HostAllocator::ResetAccumulatedStats() { state_->ResetAccumulatedStats(); }

}  // namespace keel::memory
