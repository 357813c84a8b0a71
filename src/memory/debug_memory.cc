#include "memory/debug_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string_view>

#include "keel/base/log.h"
#include "keel/hal/capture_mode.h"

namespace keel::memory {
namespace {

// How long to wait for a stream before a block goes on without being looked at.
constexpr std::chrono::seconds kPatience{10};
constexpr std::size_t kMostFrames = 24;

std::string StackText(telemetry::StackId id) {
  const std::vector<telemetry::Frame> frames = telemetry::ReadStack(id);
  if (frames.empty()) return "    (not known)\n";
  std::string text;
  for (std::size_t i = 0; i < std::min(frames.size(), kMostFrames); ++i) {
    text += fmt::format("    #{} {} ({}+{:#x})\n", i,
                        frames[i].function.empty() ? "?" : frames[i].function, frames[i].object,
                        frames[i].offset);
  }
  return text;
}

std::string Describe(const DebugMemory::Allocation& allocation) {
  return fmt::format("{} ({} bytes, {})", ToString(DeviceAddress(allocation.address)),
                     allocation.requested,
                     allocation.tag == telemetry::TagId::kNone
                         ? std::string("no tag")
                         : fmt::format("tag '{}'", telemetry::TagName(allocation.tag)));
}

std::string Stacks(const DebugMemory::Allocation& allocation) {
  std::string text = "  allocated at:\n" + StackText(allocation.allocated);
  if (!allocation.live) text += "  freed at:\n" + StackText(allocation.freed);
  text.pop_back();  // the last line's end
  return text;
}

std::string WhyNotLive(DeviceAddress address, const std::optional<DebugMemory::Allocation>& other) {
  if (!other) {
    return fmt::format(
        "no live block begins at {}: it was never allocated here, or freed too long ago to be "
        "remembered",
        ToString(address));
  }
  std::string text = Describe(*other);
  if (other->address != address.value()) {
    text = fmt::format("{} is byte {} of {}, which", ToString(address),
                       static_cast<std::int64_t>(address.value() - other->address), text);
  }
  return fmt::format(
      "{} {}\n{}", text,
      other->live ? "is live: only its first byte stands for it" : "was freed before",
      Stacks(*other));
}

// The first error, where one call makes several.
void Keep(Status& first, Status next) {
  if (first.ok()) first = std::move(next);
}

}  // namespace

// --- Bytes ------------------------------------------------------------------------------------

void DebugMemory::Damage::Look(std::span<const std::uint8_t> bytes, std::int64_t offset) {
  if (bytes.empty()) return;
  if (bytes[0] == expected && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0) {
    return;
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == expected) continue;
    last = offset + static_cast<std::int64_t>(i);
    if (count++ == 0) {
      first = last;
      found = bytes[i];
    }
  }
}

DebugMemory::Range DebugMemory::BackGuard(const Allocation& allocation) {
  return {static_cast<std::int64_t>(allocation.requested),
          static_cast<std::int64_t>(RoundToQuantum(allocation.requested) + kGuardBytes)};
}

DebugMemory::Range DebugMemory::Whole(const Allocation& allocation) {
  if (!allocation.guarded) return {0, static_cast<std::int64_t>(allocation.requested)};
  return {FrontGuard().begin, BackGuard(allocation).end};
}

Result<hal::StreamHandle> DebugMemory::StreamOf(const Allocation& allocation) {
  const MutexLock lock(mutex_);
  return StreamOfLocked(allocation);
}

Result<hal::StreamHandle> DebugMemory::StreamOfLocked(const Allocation& allocation) {
  const StreamClock& clock = Arena::Of(*allocation.block).clock;
  if (clock.retired()) {
    if (!own_stream_) {
      KEEL_ASSIGN(own_stream_, hal::Stream::Create(device_));
    }
    return own_stream_.get();
  }
  KEEL_ASSIGN(const hal::CaptureState state, device_->GetCaptureState(clock.stream()));
  if (state != hal::CaptureState::kNone) return FailedPrecondition("its stream is being captured");
  return clock.stream();
}

Status DebugMemory::EnqueueFill(const Allocation& allocation, hal::StreamHandle stream,
                                const Range& range, std::uint8_t value) {
  return device_->EnqueueFill(
      stream,
      {.destination = DeviceAddress(allocation.address + static_cast<std::uint64_t>(range.begin)),
       .value = value,
       .width = 1,
       .count = range.size()});
}

Status DebugMemory::Window::Read(const Allocation& allocation, hal::StreamHandle stream,
                                 const Range& range, std::uint64_t at) {
  const DeviceAddress source(allocation.address + static_cast<std::uint64_t>(range.begin));
  busy_ = stream;
  return owner_.device_->EnqueueCopy(
      stream, {.destination = hal::Location::Host(static_cast<std::uint8_t*>(memory_.data()) + at),
               .source = hal::Location::On(owner_.device_->id(), source),
               .size = Bytes(range.size())});
}

Status DebugMemory::Window::Wait() {
  KEEL_TRY(owner_.device_->SynchronizeStream(busy_, Deadline::After(kPatience)));
  busy_ = {};
  return OkStatus();
}

Result<hal::HostMemory> DebugMemory::Take() {
  {
    const MutexLock lock(mutex_);
    if (!windows_.empty()) {
      hal::HostMemory memory = std::move(windows_.back());
      windows_.pop_back();
      return memory;
    }
  }
  return hal::HostMemory::Create(device_, Bytes(kWindow));
}

void DebugMemory::Give(hal::HostMemory memory, hal::StreamHandle busy) {
  const MutexLock lock(mutex_);
  if (busy) {
    busy_windows_.push_back({std::move(memory), busy});
  } else {
    windows_.push_back(std::move(memory));
  }
}

DebugMemory::~DebugMemory() {
  const hal::ScopedCaptureMode relaxed(hal::CaptureMode::kRelaxed);
  for (const BusyWindow& window : busy_windows_) {
    const Status waited = device_->SynchronizeStream(window.stream, Deadline::After(kPatience));
    if (waited.ok() || waited.code() == StatusCode::kDeviceLost) continue;
    Log(LogLevel::kWarn, fmt::format("debug mode: a stream is not done: {}", waited.ToString()));
  }
}

// --- The program's calls ----------------------------------------------------------------------

DebugMemory::Layout DebugMemory::LayOut(std::uint64_t size, std::uint64_t alignment) const {
  if (!options_.guards) return {.size = size, .alignment = alignment, .front = 0, .usable = size};
  const std::uint64_t front = std::max(alignment, kGuardBytes);
  return {
      .size = front + size + kGuardBytes, .alignment = alignment, .front = front, .usable = size};
}

Result<DeviceAddress> DebugMemory::Add(Block* block, const Layout& layout, Bytes requested,
                                       telemetry::TagId tag, telemetry::StackId stack) {
  Allocation allocation{.block = block,
                        .begin = block->address,
                        .address = block->address + layout.front,
                        .usable = layout.usable,
                        .requested = requested.count(),
                        .tag = tag,
                        .allocated = stack};
  const hal::StreamHandle stream = Arena::Of(*block).clock.stream();
  // In a capture a fill would be a part of the graph, and happen at every replay.
  KEEL_ASSIGN(const hal::CaptureState state, device_->GetCaptureState(stream));
  if (state == hal::CaptureState::kNone) {
    if (options_.guards) {
      KEEL_TRY(EnqueueFill(allocation, stream, FrontGuard(), kGuard));
      KEEL_TRY(EnqueueFill(allocation, stream, BackGuard(allocation), kGuard));
      allocation.guarded = true;
    }
    if (options_.poison) {
      const Range contents{0, static_cast<std::int64_t>(allocation.requested)};
      KEEL_TRY(EnqueueFill(allocation, stream, contents, kNew));
    }
  } else {
    CountUnchecked(allocation, FailedPrecondition("its stream is being captured"));
  }
  const DeviceAddress address(allocation.address);
  const MutexLock lock(mutex_);
  allocation.serial = ++serials_;
  allocations_.emplace(block->address, std::move(allocation));
  return address;
}

Result<DebugMemory::Allocation> DebugMemory::Claim(DeviceAddress address, const Bytes* size,
                                                   telemetry::StackId stack) {
  std::optional<Allocation> other;  // that it belongs to, or did
  {
    const MutexLock lock(mutex_);
    const auto found = FindLocked(address.value());
    const bool begins = found != allocations_.end() && found->second.live &&
                        found->second.address == address.value();
    if (begins && (size == nullptr || size->count() == found->second.requested)) {
      found->second.live = false;
      found->second.freed = stack;
      return found->second;
    }
    other = BelongsToLocked(address.value());
  }
  std::string wrong = other && other->live && other->address == address.value()
                          ? fmt::format("{} is freed with {} bytes\n{}", Describe(*other),
                                        size->count(), Stacks(*other))
                          : WhyNotLive(address, other);
  return Found(StatusCode::kInvalidArgument,
               fmt::format("{}\n  freed now at:\n{}", wrong, StackText(stack)));
}

Status DebugMemory::AddUse(DeviceAddress address, StreamClock& clock) {
  std::optional<Allocation> other;
  {
    const MutexLock lock(mutex_);
    const auto found = FindLocked(address.value());
    if (found != allocations_.end() && found->second.live &&
        found->second.address == address.value()) {
      if (&clock == &Arena::Of(*found->second.block).clock) return OkStatus();  // ordered anyway
      std::vector<StreamClock*>& uses = found->second.uses;
      if (std::find(uses.begin(), uses.end(), &clock) == uses.end()) uses.push_back(&clock);
      return OkStatus();
    }
    other = BelongsToLocked(address.value());
  }
  return Found(StatusCode::kInvalidArgument,
               fmt::format("RecordUse comes before Free: {}", WhyNotLive(address, other)));
}

Status DebugMemory::Compare(const Allocation& allocation) {
  if (!allocation.guarded) return OkStatus();
  return Judge(allocation, LookAtGuards(allocation));
}

Status DebugMemory::Retire(Block* block) {
  Allocation allocation;
  {
    const MutexLock lock(mutex_);
    allocation = allocations_.at(block->address);
  }
  // What other streams wrote since it was freed.
  Status first = allocation.uses.empty() ? OkStatus() : Compare(allocation);
  // A graph writes to the freed blocks of its pool at every replay, and may.
  bool keep =
      options_.poison && block->size <= options_.quarantine && Arena::Of(*block).pool.load() == 0;
  if (keep) {
    if (const Status filled = Poison(allocation); !filled.ok()) {
      CountUnchecked(allocation, filled);
      keep = false;
    }
  }
  if (!keep) {
    Keep(first, Drop(allocation));
    return first;
  }
  {
    const MutexLock lock(mutex_);
    Allocation& kept = allocations_.at(block->address);
    kept.order = ++frees_;
    KeepLocked(kept);
  }
  Keep(first, Shrink(options_.quarantine));
  return first;
}

// --- Looking ----------------------------------------------------------------------------------

Status DebugMemory::ReadGuards(const Allocation& allocation, hal::StreamHandle stream,
                               Window& window) {
  KEEL_TRY(window.Read(allocation, stream, FrontGuard(), 0));
  return window.Read(allocation, stream, BackGuard(allocation), kGuardBytes);
}

Result<DebugMemory::Damage> DebugMemory::LookAtGuards(const Allocation& allocation,
                                                      Window& window) {
  KEEL_TRY(window.Wait());
  const Range back = BackGuard(allocation);
  Damage damage{.expected = kGuard};
  damage.Look(window.bytes(0, kGuardBytes), FrontGuard().begin);
  damage.Look(window.bytes(kGuardBytes, back.size()), back.begin);
  return damage;
}

Result<DebugMemory::Damage> DebugMemory::LookAtGuards(const Allocation& allocation) {
  const hal::ScopedCaptureMode relaxed(hal::CaptureMode::kRelaxed);
  KEEL_ASSIGN(const hal::StreamHandle stream, StreamOf(allocation));
  KEEL_ASSIGN(hal::HostMemory memory, Take());
  Window window(*this, std::move(memory));
  KEEL_TRY(ReadGuards(allocation, stream, window));
  return LookAtGuards(allocation, window);
}

Result<DebugMemory::Damage> DebugMemory::LookAtContents(const Allocation& allocation) {
  const hal::ScopedCaptureMode relaxed(hal::CaptureMode::kRelaxed);
  KEEL_ASSIGN(const hal::StreamHandle stream, StreamOf(allocation));
  KEEL_ASSIGN(hal::HostMemory memory, Take());
  Window window(*this, std::move(memory));
  Damage damage{.expected = kFreed};
  const Range whole = Whole(allocation);
  for (Range part{whole.begin, whole.begin}; part.begin < whole.end; part.begin = part.end) {
    part.end = std::min(part.begin + static_cast<std::int64_t>(kWindow), whole.end);
    KEEL_TRY(window.Read(allocation, stream, part, 0));
    KEEL_TRY(window.Wait());
    damage.Look(window.bytes(0, part.size()), part.begin);
  }
  return damage;
}

Status DebugMemory::Poison(const Allocation& allocation) {
  const hal::ScopedCaptureMode relaxed(hal::CaptureMode::kRelaxed);
  KEEL_ASSIGN(const hal::StreamHandle stream, StreamOf(allocation));
  KEEL_TRY(EnqueueFill(allocation, stream, Whole(allocation), kFreed));
  if (stream == Arena::Of(*allocation.block).clock.stream()) return OkStatus();
  // Nobody else knows of our stream.
  return device_->SynchronizeStream(stream, Deadline::After(kPatience));
}

Status DebugMemory::Judge(const Allocation& allocation, const Result<Damage>& damage) {
  if (!damage.ok()) {
    CountUnchecked(allocation, damage.status());
    return OkStatus();
  }
  if (damage->count == 0) return OkStatus();
  const std::string where =
      damage->first == damage->last
          ? fmt::format("byte {}", damage->first)
          : fmt::format("{} bytes of {} to {}", damage->count, damage->first, damage->last);
  const bool freed = damage->expected == kFreed;
  const std::string_view what = freed               ? "a write after the free of"
                                : damage->first < 0 ? "a write before the first byte of"
                                                    : "a write past the last byte of";
  std::string message =
      fmt::format("{} {}: {} changed, the first from {:#04x} to {:#04x}\n{}", what,
                  Describe(allocation), where, damage->expected, damage->found, Stacks(allocation));
  {
    const MutexLock lock(mutex_);
    const auto found = allocations_.find(allocation.begin);
    if (found != allocations_.end() && found->second.serial == allocation.serial &&
        std::exchange(found->second.reported, true) && !freed) {
      return {StatusCode::kOutOfRange, std::move(message)};  // said before
    }
  }
  return Found(StatusCode::kOutOfRange, std::move(message));
}

void DebugMemory::CountUnchecked(const Allocation& allocation, const Status& why) {
  {
    const MutexLock lock(mutex_);
    ++unchecked_;
  }
  if (why.code() == StatusCode::kFailedPrecondition || why.code() == StatusCode::kDeviceLost)
    return;
  Log(LogLevel::kWarn, fmt::format("debug mode: {} could not be looked at: {}",
                                   Describe(allocation), why.ToString()));
}

Status DebugMemory::Found(StatusCode code, std::string message) {
  Log(LogLevel::kError, message);
  const MutexLock lock(mutex_);
  ++found_;
  if (reports_.size() < kMostReports) reports_.push_back(message);
  return {code, std::move(message)};
}

// --- All blocks -------------------------------------------------------------------------------

void DebugMemory::KeepLocked(const Allocation& allocation) {
  kept_.emplace(allocation.order, allocation.block->address);
  kept_bytes_ += allocation.block->size;
}

DebugMemory::Allocation DebugMemory::TakeKeptLocked(Kept::iterator kept) {
  const Allocation& allocation = allocations_.at(kept->second);
  kept_bytes_ -= allocation.block->size;
  kept_.erase(kept);
  return allocation;
}

bool DebugMemory::OwnStreamIsIdle() {
  const hal::ScopedCaptureMode relaxed(hal::CaptureMode::kRelaxed);
  hal::StreamHandle stream;
  {
    const MutexLock lock(mutex_);
    if (!own_stream_) return true;
    stream = own_stream_.get();
  }
  const Status waited = device_->SynchronizeStream(stream, Deadline::After(kPatience));
  return waited.ok() || waited.code() == StatusCode::kDeviceLost;
}

Status DebugMemory::Drop(const Allocation& allocation) {
  Block* const block = allocation.block;
  if (!OwnStreamIsIdle()) {
    // Who gets the block would not come after what we have put there, so it stays ours.
    CountUnchecked(allocation, DeadlineExceeded("it cannot be told whether it is still read"));
    return OkStatus();
  }
  {
    // Before the release, after which another allocation may have the address.
    const MutexLock lock(mutex_);
    allocations_.erase(block->address);
    gone_.push_back(allocation);
    gone_.back().block = nullptr;
    if (gone_.size() > kRemembered) gone_.pop_front();
  }
  return release_(block);
}

Status DebugMemory::Shrink(std::uint64_t most) {
  Status first;
  while (true) {
    Allocation oldest;
    {
      const MutexLock lock(mutex_);
      if (kept_bytes_ <= most) return first;
      oldest = TakeKeptLocked(kept_.begin());
    }
    Keep(first, Judge(oldest, LookAtContents(oldest)));
    Keep(first, Drop(oldest));
  }
}

Status DebugMemory::CheckKept() {
  Status first;
  for (std::uint64_t last = 0;;) {
    Allocation next;
    {
      const MutexLock lock(mutex_);
      const auto kept = kept_.upper_bound(last);
      if (kept == kept_.end()) return first;
      last = kept->first;
      next = TakeKeptLocked(kept);
    }
    const Status found = Judge(next, LookAtContents(next));
    if (found.ok()) {
      const MutexLock lock(mutex_);
      KeepLocked(next);
    } else {
      Keep(first, found);
      Keep(first, Drop(next));
    }
  }
}

Status DebugMemory::CheckLive() {
  const hal::ScopedCaptureMode relaxed(hal::CaptureMode::kRelaxed);
  Status first;
  for (std::uint64_t at = 0;;) {
    KEEL_ASSIGN(hal::HostMemory memory, Take());
    Window window(*this, std::move(memory));
    Allocation next;
    Result<hal::StreamHandle> stream = hal::StreamHandle();
    {
      const MutexLock lock(mutex_);
      auto found = allocations_.lower_bound(at);
      const auto skip = [](const Allocation& each) { return !each.live || !each.guarded; };
      while (found != allocations_.end() && skip(found->second)) ++found;
      if (found == allocations_.end()) return first;
      at = found->first + 1;
      next = found->second;
      stream = StreamOfLocked(next);
      // Under the lock, so that the read comes before everything that follows the block's free.
      if (stream.ok()) {
        if (Status read = ReadGuards(next, *stream, window); !read.ok()) stream = std::move(read);
      }
    }
    Keep(first,
         Judge(next, stream.ok() ? LookAtGuards(next, window) : Result<Damage>(stream.status())));
  }
}

Status DebugMemory::CheckAll() {
  Status first = CheckLive();
  Keep(first, CheckKept());
  return first;
}

// --- What is known ----------------------------------------------------------------------------

DebugMemory::Allocations::iterator DebugMemory::FindLocked(std::uint64_t address) {
  auto found = allocations_.upper_bound(address);
  if (found == allocations_.begin()) return allocations_.end();
  --found;
  return address < found->second.block->end() ? found : allocations_.end();
}

std::optional<DebugMemory::Allocation> DebugMemory::BelongsToLocked(std::uint64_t address) {
  if (const auto found = FindLocked(address); found != allocations_.end()) return found->second;
  for (auto each = gone_.rbegin(); each != gone_.rend(); ++each) {
    if (address - each->address < each->usable) return *each;
  }
  return std::nullopt;
}

Result<DebugMemory::Allocation> DebugMemory::Find(DeviceAddress address) {
  const MutexLock lock(mutex_);
  const auto found = FindLocked(address.value());
  if (found == allocations_.end() || !found->second.live ||
      address.value() - found->second.address >= found->second.usable) {
    return NotFound(fmt::format("no live block has the byte at {}", ToString(address)));
  }
  return found->second;
}

std::uint64_t DebugMemory::FrontOf(const Block& block) {
  const MutexLock lock(mutex_);
  const auto found = allocations_.find(block.address);
  return found == allocations_.end() ? 0 : found->second.address - block.address;
}

DebugFindings DebugMemory::findings() {
  const MutexLock lock(mutex_);
  return {.found = found_,
          .reports = reports_,
          .unchecked = unchecked_,
          .kept_blocks = kept_.size(),
          .kept = Bytes(kept_bytes_)};
}

}  // namespace keel::memory
