#include "keel/memory/staging.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "base/ranges.h"
#include "keel/base/log.h"
#include "keel/base/mutex.h"
#include "keel/memory/event_pool.h"
#include "memory/copy_choice.h"
#include "memory/copy_crew.h"

namespace keel::memory {
namespace {

constexpr std::uint64_t kPage = 4096;

struct Chunk {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

// A copy, cut.
class Chunks {
 public:
  Chunks(Bytes size, const StagingOptions& options) : size_(size.count()) {
    const auto pieces = static_cast<std::uint64_t>(std::max(options.pieces, 1));
    const std::uint64_t even = (size_ / pieces + kPage - 1) / kPage * kPage;
    const std::uint64_t least = std::max(options.least_chunk.count(), kPage);
    const std::uint64_t most = std::max(options.most_chunk.count(), least);
    const auto buffers = static_cast<std::uint64_t>(std::max(options.buffers, 1));
    // No buffer is larger than the copy.
    chunk_ = std::min(std::clamp(even, least, most), size_);
    buffered_ = std::clamp<std::uint64_t>(buffers * most / chunk_, 1, count());
  }
  std::uint64_t count() const { return (size_ + chunk_ - 1) / chunk_; }
  std::uint64_t chunk_size() const { return chunk_; }
  // That the buffer has place for, and how large it is then.
  std::uint64_t buffered() const { return buffered_; }
  Bytes buffer_size() const { return Bytes(std::min(buffered_ * chunk_, size_)); }
  // False: it is only one.
  bool HalveBuffer() { return std::exchange(buffered_, (buffered_ + 1) / 2) > 1; }

  Chunk operator[](std::uint64_t index) const {
    const std::uint64_t offset = index * chunk_;
    return {offset, std::min(chunk_, size_ - offset)};
  }

 private:
  std::uint64_t size_;
  std::uint64_t chunk_;
  std::uint64_t buffered_;
};

// If the limit of the cache was in the way of a copy, there is room after it.
class RoomAtEnd {
 public:
  explicit RoomAtEnd(RegistrationCache* cache) : cache_(cache) {}
  RoomAtEnd(const RoomAtEnd&) = delete;
  RoomAtEnd& operator=(const RoomAtEnd&) = delete;
  ~RoomAtEnd() {
    const Status made = cache_ == nullptr ? OkStatus() : cache_->Maintain();
    // With the device its pins are gone.
    if (made.ok() || made.code() == StatusCode::kDeviceLost) return;
    Log(LogLevel::kWarn, "Staging: memory stays pinned: " + made.ToString());
  }

 private:
  RegistrationCache* const cache_;
};

hal::Location At(const hal::Location& side, std::uint64_t offset) {
  return {side.device, side.address + offset};
}

std::byte* HostSide(const hal::Location& side) {
  return reinterpret_cast<std::byte*>(side.address);
}

}  // namespace

class Staging::Line {
 public:
  Line(StagingParts parts, const StagingOptions& options)
      : allocator_(std::move(parts.allocator)),
        copy_(parts.copy != nullptr ? std::move(parts.copy) : ParallelCopy::Shared()),
        registrations_(std::move(parts.registrations)),
        options_(options),
        to_device_(options.to_device_threshold, options.measure),
        to_host_(options.to_host_threshold, options.measure),
        device_(*allocator_->device()),
        events_(allocator_->device()) {}
  ~Line();
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  Status CopyToDevice(hal::StreamHandle stream, DeviceAddress destination, const void* source,
                      Bytes size, Deadline deadline);
  Status CopyToHost(hal::StreamHandle stream, void* destination, DeviceAddress source, Bytes size,
                    Deadline deadline);
  const std::shared_ptr<RegistrationCache>& registrations() const { return registrations_; }
  Stats stats() const {
    return {.staged = staged_.load(std::memory_order_relaxed),
            .direct = direct_.load(std::memory_order_relaxed),
            .pinned = pinned_.load(std::memory_order_relaxed),
            .measured = to_device_.measured() + to_host_.measured(),
            .overruled = to_device_.overruled() + to_host_.overruled()};
  }

 private:
  // What is known about the transfer that was last queued for a chunk's place in the buffer.
  struct Transfer {
    PooledEvent event;
    enum class State : std::uint8_t {
      kIdle,      // none, or it is done
      kQueued,    // and `event` does not stand for it
      kRecorded,  // and `event` stands for it
    } state = State::kIdle;
  };

  // The pinned memory of one copy: places for chunks, used in turn. Given back on every path.
  class Buffer {
   public:
    Buffer(Line& line, hal::StreamHandle stream) : line_(line), stream_(stream) {}
    ~Buffer() {
      if (data_ != nullptr) line_.PutBack(stream_, data_, idle());
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    // As large as there is memory for, which `chunks` knows then; perhaps there is none.
    Status Take(Chunks* chunks);
    std::byte* data() const { return static_cast<std::byte*>(data_); }
    std::byte* place(std::uint64_t chunk) const {
      return data() + chunk % transfers_.size() * chunk_size_;
    }
    Transfer& transfer(std::uint64_t chunk) { return transfers_[chunk % transfers_.size()]; }

   private:
    bool idle() const {
      return std::all_of(transfers_.begin(), transfers_.end(), [](const Transfer& transfer) {
        return transfer.state == Transfer::State::kIdle;
      });
    }

    Line& line_;
    const hal::StreamHandle stream_;
    void* data_ = nullptr;
    std::uint64_t chunk_size_ = 0;
    std::vector<Transfer> transfers_;
  };

  // A buffer that may still be written or read by a transfer of the stream.
  struct Stranded {
    void* data = nullptr;
    hal::StreamHandle stream;
  };

  // One way or the other, as `choice` says. `host` is the side that may be pinned already.
  template <class Staged>
  Status Choose(hal::StreamHandle stream, const hal::Copy& whole, const void* host,
                CopyChoice& choice, Deadline deadline, Staged staged);
  Status StageToDevice(hal::StreamHandle stream, const hal::Copy& whole, Deadline deadline);
  Status StageToHost(hal::StreamHandle stream, const hal::Copy& whole, Deadline deadline);
  bool IsIdle(hal::StreamHandle stream) {
    const Result<hal::Completion> completion = device_.QueryStream(stream);
    return completion.ok() && *completion == hal::Completion::kDone;
  }
  // By the driver's own path. Memory that a cache has pinned is waited for.
  Status CopyDirectly(hal::StreamHandle stream, const hal::Copy& copy, Deadline deadline);
  // From or to memory that `lease` keeps pinned, and until it is done.
  Status CopyPinned(hal::StreamHandle stream, const hal::Copy& copy, Deadline deadline);
  // After a wait: what it said, when the stream is done whatever that was.
  Status DoneAfter(Status waited, hal::StreamHandle stream);
  Result<bool> Capturing(hal::StreamHandle stream);
  Status Enqueue(hal::StreamHandle stream, const hal::Copy& copy, Transfer& transfer, bool record);
  // Whether it is known to be done; does not wait.
  static bool Idle(Transfer& transfer);
  Status WaitFor(hal::StreamHandle stream, Transfer& transfer, Deadline deadline);
  void PutBack(hal::StreamHandle stream, void* data, bool idle) KEEL_EXCLUDES(mutex_);
  void Reclaim() KEEL_EXCLUDES(mutex_);

  const std::shared_ptr<HostAllocator> allocator_;
  const std::shared_ptr<ParallelCopy> copy_;
  const std::shared_ptr<RegistrationCache> registrations_;
  const StagingOptions options_;
  CopyChoice to_device_;
  CopyChoice to_host_;
  hal::Device& device_;
  EventPool events_;
  const Home home_;
  std::atomic<std::uint64_t> staged_{0};
  std::atomic<std::uint64_t> direct_{0};
  std::atomic<std::uint64_t> pinned_{0};
  std::atomic<bool> any_stranded_{false};
  Mutex mutex_;
  std::vector<Stranded> stranded_ KEEL_GUARDED_BY(mutex_);
};

Staging::Line::~Line() {
  Reclaim();
  MutexLock lock(mutex_);
  if (stranded_.empty()) return;
  const Status status = device_.Synchronize(Deadline::Never());
  if (!status.ok() && status.code() != StatusCode::kDeviceLost) {
    Log(LogLevel::kWarn, "Staging: buffers that a stream may still use go: " + status.ToString());
  }
  for (const Stranded& stranded : stranded_) static_cast<void>(allocator_->Free(stranded.data));
}

// --- The buffer --------------------------------------------------------------------------------

Status Staging::Line::Buffer::Take(Chunks* chunks) {
  do {
    const Result<void*> data = line_.allocator_->Allocate(chunks->buffer_size());
    if (data.ok()) {
      data_ = *data;
      chunk_size_ = chunks->chunk_size();
      transfers_.resize(chunks->buffered());
      return OkStatus();
    }
    if (data.status().code() != StatusCode::kResourceExhausted) return data.status();
  } while (chunks->HalveBuffer());
  return OkStatus();
}

bool Staging::Line::Idle(Transfer& transfer) {
  if (transfer.state == Transfer::State::kRecorded) {
    const Result<hal::Completion> completion = transfer.event.Query();
    // An error is for whoever waits.
    if (completion.ok() && *completion == hal::Completion::kDone) {
      transfer.state = Transfer::State::kIdle;
    }
  }
  return transfer.state == Transfer::State::kIdle;
}

Status Staging::Line::Enqueue(hal::StreamHandle stream, const hal::Copy& copy, Transfer& transfer,
                              bool record) {
  KEEL_TRY(device_.EnqueueCopy(stream, copy));
  transfer.state = Transfer::State::kQueued;
  if (!record) return OkStatus();
  if (!transfer.event) {
    Result<PooledEvent> event = events_.Acquire();
    // Without one, whoever needs the place waits for the stream.
    if (!event.ok()) return OkStatus();
    transfer.event = *std::move(event);
  }
  if (transfer.event.Record(stream).ok()) transfer.state = Transfer::State::kRecorded;
  return OkStatus();
}

Status Staging::Line::WaitFor(hal::StreamHandle stream, Transfer& transfer, Deadline deadline) {
  if (transfer.state == Transfer::State::kRecorded) {
    KEEL_TRY(transfer.event.Synchronize(deadline));
  } else if (transfer.state == Transfer::State::kQueued) {
    KEEL_TRY(device_.SynchronizeStream(stream, deadline));
  }
  transfer.state = Transfer::State::kIdle;
  return OkStatus();
}

void Staging::Line::PutBack(hal::StreamHandle stream, void* data, bool idle) {
  // The allocator waits for the stream, without anybody waiting; else somebody must.
  const bool known = idle || allocator_->RecordUse(data, stream).ok() ||
                     device_.SynchronizeStream(stream, Deadline::Never()).ok() ||
                     !device_.Health().ok();
  if (known) {
    const Status status = allocator_->Free(data);
    if (!status.ok()) Log(LogLevel::kWarn, "Staging: " + status.ToString());
    return;
  }
  MutexLock lock(mutex_);
  stranded_.push_back({data, stream});
  any_stranded_.store(true, std::memory_order_release);
}

void Staging::Line::Reclaim() {
  if (!any_stranded_.load(std::memory_order_acquire)) return;
  std::vector<Stranded> stranded;
  {
    MutexLock lock(mutex_);
    stranded.swap(stranded_);
    any_stranded_.store(false, std::memory_order_release);
  }
  for (const Stranded& one : stranded) PutBack(one.stream, one.data, false);
}

// --- Copies ------------------------------------------------------------------------------------

Status Staging::Line::CopyDirectly(hal::StreamHandle stream, const hal::Copy& copy,
                                   Deadline deadline) {
  KEEL_TRY(device_.EnqueueCopy(stream, copy));
  direct_.fetch_add(copy.size.count(), std::memory_order_relaxed);
  // Asked after the call: another thread may have pinned it since somebody looked.
  const hal::Location& host = copy.source.on_host() ? copy.source : copy.destination;
  if (!IsLentByACache(HostSide(host), copy.size)) return OkStatus();
  return DoneAfter(device_.SynchronizeStream(stream, deadline), stream);
}

Status Staging::Line::DoneAfter(Status waited, hal::StreamHandle stream) {
  if (!waited.ok() && device_.Health().ok()) {
    // The memory is the caller's and pinned only for a while: leave when nothing uses it.
    Status idle = device_.SynchronizeStream(stream, Deadline::Never());
    if (waited.code() != StatusCode::kDeadlineExceeded || !idle.ok()) return idle;
  }
  return waited;
}

Status Staging::Line::CopyPinned(hal::StreamHandle stream, const hal::Copy& copy,
                                 Deadline deadline) {
  Transfer transfer;
  KEEL_TRY(Enqueue(stream, copy, transfer, true));
  KEEL_TRY(DoneAfter(WaitFor(stream, transfer, deadline), stream));
  pinned_.fetch_add(copy.size.count(), std::memory_order_relaxed);
  return OkStatus();
}

Result<bool> Staging::Line::Capturing(hal::StreamHandle stream) {
  KEEL_ASSIGN(const hal::CaptureState state, device_.GetCaptureState(stream));
  return state != hal::CaptureState::kNone;
}

template <class Staged>
Status Staging::Line::Choose(hal::StreamHandle stream, const hal::Copy& whole, const void* host,
                             CopyChoice& choice, Deadline deadline, Staged staged) {
  using Clock = std::chrono::steady_clock;
  if (!home_.here()) return device_.Health();
  CopyChoice::Plan plan = choice.For(whole.size);
  // The driver takes memory that a cache has pinned, even a part of it, and even another device's
  // cache, for the caller's own pinned memory: it would return before the copy is done, or refuse
  // what is pinned in part.
  const bool lent = IsLentByACache(host, whole.size);
  const bool may_be_pinned = registrations_ != nullptr &&
                             (lent ? registrations_->Overlaps(host, whole.size)
                                   : choice.Unmeasured(whole.size) == CopyChoice::Way::kStaged);
  const bool drivers = plan.way == CopyChoice::Way::kDriver && !plan.measure;
  if (whole.size.empty() || (drivers && !may_be_pinned && !lent)) {
    return CopyDirectly(stream, whole, deadline);
  }
  KEEL_ASSIGN(const bool capturing, Capturing(stream));
  if (capturing && lent) {
    return FailedPrecondition(
        "the stream is being captured, and the host memory is pinned only while copies that wait "
        "need it (staging_pin_limit): a graph cannot have it; use memory of HostAllocator");
  }
  if (capturing) return CopyDirectly(stream, whole, deadline);
  Reclaim();
  if (may_be_pinned) {
    const RegistrationLease lease = registrations_->LeaseIfSeen(host, whole.size);
    if (lease) return CopyPinned(stream, whole, deadline);
  }
  const RoomAtEnd room(may_be_pinned ? registrations_.get() : nullptr);
  if (lent) return staged();
  // What else is queued would be timed as well.
  if (plan.measure && !IsIdle(stream)) plan = {choice.Unmeasured(whole.size), false};
  const auto copy = [&] {
    return plan.way == CopyChoice::Way::kStaged ? staged() : CopyDirectly(stream, whole, deadline);
  };
  if (!plan.measure) return copy();
  const Clock::time_point start = Clock::now();
  KEEL_TRY(copy());
  // The copy is queued; that it could not be waited for is nothing that the caller asked about.
  if (device_.SynchronizeStream(stream, deadline).ok()) {
    choice.Measured(whole.size, plan.way, Clock::now() - start);
  }
  return OkStatus();
}

Status Staging::Line::CopyToDevice(hal::StreamHandle stream, DeviceAddress destination,
                                   const void* source, Bytes size, Deadline deadline) {
  const hal::Copy whole{.destination = hal::Location::On(device_.id(), destination),
                        .source = hal::Location::Host(source),
                        .size = size};
  return Choose(stream, whole, source, to_device_, deadline,
                [&] { return StageToDevice(stream, whole, deadline); });
}

Status Staging::Line::CopyToHost(hal::StreamHandle stream, void* destination, DeviceAddress source,
                                 Bytes size, Deadline deadline) {
  const hal::Copy whole{.destination = hal::Location::Host(destination),
                        .source = hal::Location::On(device_.id(), source),
                        .size = size};
  return Choose(stream, whole, destination, to_host_, deadline,
                [&] { return StageToHost(stream, whole, deadline); });
}

Status Staging::Line::StageToDevice(hal::StreamHandle stream, const hal::Copy& whole,
                                    Deadline deadline) {
  Chunks chunks(whole.size, options_);
  Buffer buffer(*this, stream);
  KEEL_TRY(buffer.Take(&chunks));
  if (buffer.data() == nullptr) return CopyDirectly(stream, whole, deadline);

  PiecewiseCopy copy(*copy_, {.destination = buffer.data(),
                              .source = HostSide(whole.source),
                              .size = whole.size.count(),
                              .chunk = chunks.chunk_size(),
                              .slice = PiecewiseCopy::SliceFor(*copy_, chunks.chunk_size()),
                              .buffered = chunks.buffered(),
                              .buffer = CopyShape::Buffer::kDestination});
  copy.Allow(chunks.buffered());
  std::uint64_t sent = 0;     // chunks
  std::uint64_t arrived = 0;  // chunks, as far as somebody looked
  while (sent < chunks.count()) {
    if (sent < copy.Done()) {
      const Chunk chunk = chunks[sent];
      const bool used_again = sent + chunks.buffered() < chunks.count();
      KEEL_TRY(Enqueue(stream,
                       {.destination = At(whole.destination, chunk.offset),
                        .source = hal::Location::Host(buffer.place(sent)),
                        .size = Bytes(chunk.size)},
                       buffer.transfer(sent), used_again));
      ++sent;
    } else if (copy.allowed() < chunks.count() && arrived < sent &&
               Idle(buffer.transfer(arrived))) {
      copy.Allow(++arrived + chunks.buffered());
    } else if (copy.Help()) {
      continue;
    } else if (sent < copy.allowed()) {
      copy.AwaitMore();
    } else {
      // The buffer is full, and all of it on its way.
      KEEL_TRY(WaitFor(stream, buffer.transfer(arrived), deadline));
    }
  }
  staged_.fetch_add(whole.size.count(), std::memory_order_relaxed);
  return OkStatus();
}

Status Staging::Line::StageToHost(hal::StreamHandle stream, const hal::Copy& whole,
                                  Deadline deadline) {
  Chunks chunks(whole.size, options_);
  Buffer buffer(*this, stream);
  KEEL_TRY(buffer.Take(&chunks));
  if (buffer.data() == nullptr) return CopyDirectly(stream, whole, deadline);

  PiecewiseCopy copy(*copy_, {.destination = HostSide(whole.destination),
                              .source = buffer.data(),
                              .size = whole.size.count(),
                              .chunk = chunks.chunk_size(),
                              .slice = PiecewiseCopy::SliceFor(*copy_, chunks.chunk_size()),
                              .buffered = chunks.buffered(),
                              .buffer = CopyShape::Buffer::kSource});
  std::uint64_t fetched = 0;  // chunks
  while (copy.Done() < chunks.count()) {
    const std::uint64_t arrived = copy.allowed();
    if (fetched < std::min(chunks.count(), copy.Done() + chunks.buffered())) {
      // As many under way as there are places.
      const Chunk chunk = chunks[fetched];
      KEEL_TRY(Enqueue(stream,
                       {.destination = hal::Location::Host(buffer.place(fetched)),
                        .source = At(whole.source, chunk.offset),
                        .size = Bytes(chunk.size)},
                       buffer.transfer(fetched), true));
      ++fetched;
    } else if (arrived < fetched && Idle(buffer.transfer(arrived))) {
      copy.Allow(arrived + 1);
    } else if (copy.Help()) {
      continue;
    } else if (copy.Done() < arrived) {
      copy.AwaitMore();
    } else {
      KEEL_TRY(WaitFor(stream, buffer.transfer(arrived), deadline));
    }
  }
  staged_.fetch_add(whole.size.count(), std::memory_order_relaxed);
  return OkStatus();
}

// --- Staging -----------------------------------------------------------------------------------

StagingOptions StagingOptions::From(const AllocatorConfig& config) {
  StagingOptions options;
  options.to_device_threshold = config.staging_threshold.value_or(options.to_device_threshold);
  options.to_host_threshold = config.staging_threshold.value_or(options.to_host_threshold);
  options.least_chunk = std::min(options.least_chunk, config.staging_chunk);
  options.most_chunk = config.staging_chunk;
  options.measure = !config.staging_threshold.has_value();
  return options;
}

namespace {

StagingParts PartsFrom(std::shared_ptr<HostAllocator> allocator, const AllocatorConfig& config) {
  StagingParts parts{.allocator = std::move(allocator), .copy = nullptr};
  if (config.staging_threads != 0) {
    parts.copy = std::make_shared<ParallelCopy>(ParallelCopyOptions::From(config));
  }
  if (!config.staging_pin_limit.empty()) {
    parts.registrations = std::make_shared<RegistrationCache>(
        parts.allocator->device(), RegistrationCacheOptions{.limit = config.staging_pin_limit});
  }
  return parts;
}

}  // namespace

Staging::Staging(StagingParts parts, const StagingOptions& options)
    : line_(MakeSharedHere<Line>(std::move(parts), options)) {}

Staging::Staging(std::shared_ptr<HostAllocator> allocator, const AllocatorConfig& config)
    : Staging(PartsFrom(std::move(allocator), config), StagingOptions::From(config)) {}

Staging::~Staging() = default;

Status Staging::CopyToDevice(hal::StreamHandle stream, DeviceAddress destination,
                             const void* source, Bytes size, Deadline deadline) {
  const ScopedRange range("staged copy to the device");
  return line_->CopyToDevice(stream, destination, source, size, deadline);
}

Status Staging::CopyToHost(hal::StreamHandle stream, void* destination, DeviceAddress source,
                           Bytes size, Deadline deadline) {
  const ScopedRange range("staged copy to the host");
  return line_->CopyToHost(stream, destination, source, size, deadline);
}

Staging::Stats Staging::stats() const { return line_->stats(); }

const std::shared_ptr<RegistrationCache>& Staging::registrations() const {
  return line_->registrations();
}

}  // namespace keel::memory
