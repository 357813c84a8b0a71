#include "keel/memory/staging.h"

#include <algorithm>
#include <atomic>
#include <span>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "base/ranges.h"
#include "keel/base/log.h"
#include "keel/base/mutex.h"
#include "keel/memory/event_pool.h"

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
    chunk_ = std::clamp(even, least, std::max(options.most_chunk.count(), least));
    // No buffer is larger than the copy.
    chunk_ = std::min(chunk_, size_);
  }
  std::uint64_t count() const { return (size_ + chunk_ - 1) / chunk_; }
  Bytes chunk_size() const { return Bytes(chunk_); }
  Chunk operator[](std::uint64_t index) const {
    const std::uint64_t offset = index * chunk_;
    return {offset, std::min(chunk_, size_ - offset)};
  }

 private:
  std::uint64_t size_;
  std::uint64_t chunk_;
};

}  // namespace

class Staging::Line {
 public:
  Line(StagingParts parts, const StagingOptions& options)
      : allocator_(std::move(parts.allocator)),
        copy_(parts.copy != nullptr ? std::move(parts.copy) : ParallelCopy::Shared()),
        registrations_(std::move(parts.registrations)),
        options_(options),
        device_(*allocator_->device()),
        events_(allocator_->device()) {}
  ~Line();
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  Status CopyToDevice(hal::StreamHandle stream, DeviceAddress destination, const void* source,
                      Bytes size, Deadline deadline);
  Status CopyToHost(hal::StreamHandle stream, void* destination, DeviceAddress source, Bytes size,
                    Deadline deadline);
  Stats stats() const {
    return {staged_.load(std::memory_order_relaxed), direct_.load(std::memory_order_relaxed),
            pinned_.load(std::memory_order_relaxed)};
  }

 private:
  // A pinned buffer and what is known about its transfer.
  struct Buffer {
    void* data = nullptr;
    PooledEvent event;
    enum class State : std::uint8_t {
      kIdle,      // the device does not use it
      kQueued,    // a transfer is queued, and `event` does not stand for it
      kRecorded,  // a transfer is queued, and `event` stands for it
    } state = State::kIdle;
  };

  // The buffers of one copy, used in turn. Gives them back on every path.
  class Buffers {
   public:
    Buffers(Line& line, hal::StreamHandle stream) : line_(line), stream_(stream) {}
    ~Buffers() { line_.PutBack(stream_, buffers_); }
    Buffers(const Buffers&) = delete;
    Buffers& operator=(const Buffers&) = delete;

    // As many as a copy may have, or as there is memory for: perhaps none.
    Status Fill(const Chunks& chunks);
    Buffer& of(std::uint64_t chunk) { return buffers_[chunk % buffers_.size()]; }
    std::uint64_t count() const { return buffers_.size(); }

   private:
    Line& line_;
    const hal::StreamHandle stream_;
    std::vector<Buffer> buffers_;
  };

  // A buffer that may still be written or read by a transfer of the stream.
  struct Stranded {
    void* data = nullptr;
    hal::StreamHandle stream;
  };

  hal::Location OnDevice(DeviceAddress address, std::uint64_t offset) const {
    return hal::Location::On(device_.id(), address + Bytes(offset));
  }
  // By the driver's own path.
  Status CopyDirectly(hal::StreamHandle stream, const hal::Copy& copy);
  // From or to memory that `lease` keeps pinned, and until it is done.
  Status CopyPinned(hal::StreamHandle stream, const hal::Copy& copy, Deadline deadline);
  Result<bool> Capturing(hal::StreamHandle stream);
  Status Enqueue(hal::StreamHandle stream, const hal::Copy& copy, Buffer& buffer, bool record);
  // Whether the device is known not to use it; does not wait.
  bool Idle(Buffer& buffer);
  Status WaitFor(hal::StreamHandle stream, Buffer& buffer, Deadline deadline);
  void PutBack(hal::StreamHandle stream, std::span<Buffer> buffers) KEEL_EXCLUDES(mutex_);
  void Reclaim() KEEL_EXCLUDES(mutex_);

  const std::shared_ptr<HostAllocator> allocator_;
  const std::shared_ptr<ParallelCopy> copy_;
  const std::shared_ptr<RegistrationCache> registrations_;
  const StagingOptions options_;
  hal::Device& device_;
  EventPool events_;
  const std::uint64_t fork_generation_ = ForkGeneration();
  std::atomic<std::uint64_t> staged_{0};
  std::atomic<std::uint64_t> direct_{0};
  std::atomic<std::uint64_t> pinned_{0};
  std::atomic<bool> any_stranded_{false};
  Mutex mutex_;
  std::vector<Stranded> stranded_ KEEL_GUARDED_BY(mutex_);
};

Staging::Line::~Line() {
  if (fork_generation_ != ForkGeneration()) return;
  Reclaim();
  MutexLock lock(mutex_);
  if (stranded_.empty()) return;
  const Status status = device_.Synchronize(Deadline::Never());
  if (!status.ok() && status.code() != StatusCode::kDeviceLost) {
    Log(LogLevel::kWarn, "Staging: buffers that a stream may still use go: " + status.ToString());
  }
  for (const Stranded& stranded : stranded_) static_cast<void>(allocator_->Free(stranded.data));
}

// --- Buffers -----------------------------------------------------------------------------------

Status Staging::Line::Buffers::Fill(const Chunks& chunks) {
  const auto most = static_cast<std::uint64_t>(std::max(line_.options_.buffers, 1));
  const std::uint64_t wanted = std::min(chunks.count(), most);
  buffers_.reserve(wanted);
  while (buffers_.size() < wanted) {
    const Result<void*> data = line_.allocator_->Allocate(chunks.chunk_size());
    if (!data.ok()) {
      const Status status = data.status();
      return status.code() == StatusCode::kResourceExhausted ? OkStatus() : status;
    }
    buffers_.emplace_back().data = *data;
  }
  return OkStatus();
}

bool Staging::Line::Idle(Buffer& buffer) {
  if (buffer.state == Buffer::State::kRecorded) {
    const Result<hal::Completion> completion = buffer.event.Query();
    // An error is for whoever waits.
    if (completion.ok() && *completion == hal::Completion::kDone) {
      buffer.state = Buffer::State::kIdle;
    }
  }
  return buffer.state == Buffer::State::kIdle;
}

Status Staging::Line::Enqueue(hal::StreamHandle stream, const hal::Copy& copy, Buffer& buffer,
                              bool record) {
  KEEL_TRY(device_.EnqueueCopy(stream, copy));
  buffer.state = Buffer::State::kQueued;
  if (!record) return OkStatus();
  if (!buffer.event) {
    Result<PooledEvent> event = events_.Acquire();
    // Without one, whoever needs the buffer waits for the stream.
    if (!event.ok()) return OkStatus();
    buffer.event = *std::move(event);
  }
  if (buffer.event.Record(stream).ok()) buffer.state = Buffer::State::kRecorded;
  return OkStatus();
}

Status Staging::Line::WaitFor(hal::StreamHandle stream, Buffer& buffer, Deadline deadline) {
  if (buffer.state == Buffer::State::kRecorded) {
    KEEL_TRY(buffer.event.Synchronize(deadline));
  } else if (buffer.state == Buffer::State::kQueued) {
    KEEL_TRY(device_.SynchronizeStream(stream, deadline));
  }
  buffer.state = Buffer::State::kIdle;
  return OkStatus();
}

void Staging::Line::PutBack(hal::StreamHandle stream, std::span<Buffer> buffers) {
  std::vector<void*> free;
  std::vector<Stranded> stranded;
  for (Buffer& buffer : buffers) {
    // The allocator waits for the stream, without anybody waiting; else somebody must.
    const bool known = buffer.state == Buffer::State::kIdle ||
                       allocator_->RecordUse(buffer.data, stream).ok() ||
                       WaitFor(stream, buffer, Deadline::Never()).ok() || !device_.Health().ok();
    if (known) {
      free.push_back(buffer.data);
    } else {
      stranded.push_back({buffer.data, stream});
    }
  }
  const Status status = allocator_->FreeAll(free);
  if (!status.ok()) Log(LogLevel::kWarn, "Staging: " + status.ToString());
  if (stranded.empty()) return;
  MutexLock lock(mutex_);
  stranded_.insert(stranded_.end(), stranded.begin(), stranded.end());
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
  for (const Stranded& one : stranded) {
    Buffer buffer{.data = one.data, .event = {}, .state = Buffer::State::kQueued};
    PutBack(one.stream, {&buffer, 1});
  }
}

// --- Copies ------------------------------------------------------------------------------------

Status Staging::Line::CopyDirectly(hal::StreamHandle stream, const hal::Copy& copy) {
  KEEL_TRY(device_.EnqueueCopy(stream, copy));
  direct_.fetch_add(copy.size.count(), std::memory_order_relaxed);
  return OkStatus();
}

Status Staging::Line::CopyPinned(hal::StreamHandle stream, const hal::Copy& copy,
                                 Deadline deadline) {
  Buffer none;
  KEEL_TRY(Enqueue(stream, copy, none, true));
  Status status = WaitFor(stream, none, deadline);
  if (!status.ok() && device_.Health().ok()) {
    // The memory is the caller's and pinned only while it is leased: leave when nothing uses it.
    const Status idle = device_.SynchronizeStream(stream, Deadline::Never());
    if (status.code() != StatusCode::kDeadlineExceeded || !idle.ok()) status = idle;
  }
  KEEL_TRY(std::move(status));
  pinned_.fetch_add(copy.size.count(), std::memory_order_relaxed);
  return OkStatus();
}

Result<bool> Staging::Line::Capturing(hal::StreamHandle stream) {
  KEEL_ASSIGN(const hal::CaptureState state, device_.GetCaptureState(stream));
  return state != hal::CaptureState::kNone;
}

Status Staging::Line::CopyToDevice(hal::StreamHandle stream, DeviceAddress destination,
                                   const void* source, Bytes size, Deadline deadline) {
  const hal::Copy whole{
      .destination = OnDevice(destination, 0), .source = hal::Location::Host(source), .size = size};
  if (size < options_.to_device_threshold || size.empty()) return CopyDirectly(stream, whole);
  KEEL_ASSIGN(const bool capturing, Capturing(stream));
  if (capturing) return CopyDirectly(stream, whole);
  Reclaim();
  if (registrations_ != nullptr) {
    const RegistrationLease lease = registrations_->LeaseIfSeen(source, size);
    if (lease) return CopyPinned(stream, whole, deadline);
  }

  const Chunks chunks(size, options_);
  const auto* const bytes = static_cast<const std::byte*>(source);
  Buffers buffers(*this, stream);
  KEEL_TRY(buffers.Fill(chunks));
  if (buffers.count() == 0) return CopyDirectly(stream, whole);

  std::uint64_t sent = 0;  // chunks
  const auto send = [&]() -> Status {
    const Chunk chunk = chunks[sent];
    Buffer& buffer = buffers.of(sent);
    const bool used_again = sent + buffers.count() < chunks.count();
    KEEL_TRY(Enqueue(stream,
                     {.destination = OnDevice(destination, chunk.offset),
                      .source = hal::Location::Host(buffer.data),
                      .size = Bytes(chunk.size)},
                     buffer, used_again));
    ++sent;
    return OkStatus();
  };
  for (std::uint64_t i = 0; i < chunks.count(); ++i) {
    Buffer& buffer = buffers.of(i);
    // What the host has copied must be on its way before the host waits, or its buffer is needed.
    if (sent < i && (buffers.count() == 1 || !Idle(buffer))) KEEL_TRY(send());
    KEEL_TRY(WaitFor(stream, buffer, deadline));
    const Chunk chunk = chunks[i];
    Status status;
    // Else it is sent while the workers copy this one.
    copy_->Copy(buffer.data, bytes + chunk.offset, Bytes(chunk.size), [&] {
      if (sent < i) status = send();
    });
    KEEL_TRY(std::move(status));
  }
  KEEL_TRY(send());
  staged_.fetch_add(size.count(), std::memory_order_relaxed);
  return OkStatus();
}

Status Staging::Line::CopyToHost(hal::StreamHandle stream, void* destination, DeviceAddress source,
                                 Bytes size, Deadline deadline) {
  const hal::Copy whole{
      .destination = hal::Location::Host(destination), .source = OnDevice(source, 0), .size = size};
  if (size < options_.to_host_threshold || size.empty()) return CopyDirectly(stream, whole);
  KEEL_ASSIGN(const bool capturing, Capturing(stream));
  if (capturing) return CopyDirectly(stream, whole);
  Reclaim();
  if (registrations_ != nullptr) {
    const RegistrationLease lease = registrations_->LeaseIfSeen(destination, size);
    if (lease) return CopyPinned(stream, whole, deadline);
  }

  const Chunks chunks(size, options_);
  auto* const bytes = static_cast<std::byte*>(destination);
  Buffers buffers(*this, stream);
  KEEL_TRY(buffers.Fill(chunks));
  if (buffers.count() == 0) return CopyDirectly(stream, whole);

  std::uint64_t fetched = 0;  // chunks
  for (std::uint64_t i = 0; i < chunks.count(); ++i) {
    // As many under way as there are buffers.
    for (; fetched < std::min(chunks.count(), i + buffers.count()); ++fetched) {
      const Chunk chunk = chunks[fetched];
      Buffer& buffer = buffers.of(fetched);
      KEEL_TRY(Enqueue(stream,
                       {.destination = hal::Location::Host(buffer.data),
                        .source = OnDevice(source, chunk.offset),
                        .size = Bytes(chunk.size)},
                       buffer, true));
    }
    Buffer& buffer = buffers.of(i);
    KEEL_TRY(WaitFor(stream, buffer, deadline));
    const Chunk chunk = chunks[i];
    copy_->Copy(bytes + chunk.offset, buffer.data, Bytes(chunk.size));
  }
  staged_.fetch_add(size.count(), std::memory_order_relaxed);
  return OkStatus();
}

// --- Staging -----------------------------------------------------------------------------------

StagingOptions StagingOptions::From(const AllocatorConfig& config) {
  StagingOptions options;
  options.to_device_threshold = config.staging_threshold.value_or(options.to_device_threshold);
  options.to_host_threshold = config.staging_threshold.value_or(options.to_host_threshold);
  options.least_chunk = std::min(options.least_chunk, config.staging_chunk);
  options.most_chunk = config.staging_chunk;
  return options;
}

Staging::Staging(StagingParts parts, const StagingOptions& options)
    : line_(std::make_unique<Line>(std::move(parts), options)) {}

Staging::Staging(std::shared_ptr<HostAllocator> allocator, const AllocatorConfig& config)
    : Staging({.allocator = std::move(allocator),
               .copy = config.staging_threads == 0
                           ? nullptr
                           : std::make_shared<ParallelCopy>(ParallelCopyOptions::From(config))},
              StagingOptions::From(config)) {}

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

}  // namespace keel::memory
