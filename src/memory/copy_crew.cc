#include "memory/copy_crew.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace keel::memory {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPage = 4096;
// Below this the bookkeeping of a slice shows.
constexpr std::size_t kLeastSlice = std::size_t{32} << 10;

void Relax() {
#if defined(__SSE2__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Until `there` or the time is up; whether it is there.
template <class There>
bool SpinUntil(Clock::time_point until, There there) {
  while (!there()) {
    if (Clock::now() >= until) return there();
    for (int i = 0; i < 4; ++i) Relax();
  }
  return true;
}

void CopyPastCaches(std::byte* destination, const std::byte* source, std::size_t size) {
#if defined(__SSE2__)
  const std::size_t head =
      std::min(size, (64 - reinterpret_cast<std::uintptr_t>(destination) % 64) % 64);
  std::memcpy(destination, source, head);
  std::size_t at = head;
  for (; at + 64 <= size; at += 64) {
    for (std::size_t i = 0; i < 64; i += 16) {
      const __m128i word = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + at + i));
      _mm_stream_si128(reinterpret_cast<__m128i*>(destination + at + i), word);
    }
  }
  std::memcpy(destination + at, source + at, size - at);
  // Streaming stores are not ordered by what tells others that the slice is done.
  _mm_sfence();
#else
  std::memcpy(destination, source, size);
#endif
}

}  // namespace

// --- CopyShape ---------------------------------------------------------------------------------

std::uint64_t CopyShape::slices(std::uint64_t index) const {
  const std::size_t bytes = std::min(chunk, size - index * chunk);
  return (bytes + slice - 1) / slice;
}

std::uint64_t CopyShape::slices_before(std::uint64_t index) const {
  if (index < chunks()) return index * slices_per_chunk();
  return size == 0 ? 0 : (chunks() - 1) * slices_per_chunk() + slices(chunks() - 1);
}

// --- CopyJob -----------------------------------------------------------------------------------

void CopyJob::Begin(const CopyShape& shape) {
  shape_ = shape;
  if (capacity_ < shape.buffered) {
    finished_ = std::make_unique<std::atomic<std::uint32_t>[]>(shape.buffered);
    capacity_ = shape.buffered;
  }
  for (std::size_t i = 0; i < shape.buffered; ++i) finished_[i].store(0, std::memory_order_relaxed);
  done_ = 0;
  allowed_.store(0, std::memory_order_relaxed);
  next_.store(0, std::memory_order_relaxed);
}

void CopyJob::Allow(std::uint64_t chunks) {
  allowed_.store(shape_.slices_before(chunks), std::memory_order_release);
}

bool CopyJob::Finished(std::uint64_t chunk) const {
  return finished_[chunk % shape_.buffered].load(std::memory_order_acquire) == shape_.slices(chunk);
}

std::uint64_t CopyJob::Done() {
  const std::uint64_t chunks = shape_.chunks();
  while (done_ < chunks && Finished(done_)) {
    // Nobody counts here again before the owner allows what comes into the same place.
    finished_[done_ % shape_.buffered].store(0, std::memory_order_relaxed);
    ++done_;
  }
  return done_;
}

void CopyJob::AwaitMore(std::chrono::microseconds spin) {
  if (SpinUntil(Clock::now() + spin, [this] { return Finished(done_); })) return;
  std::atomic<std::uint32_t>& finished = finished_[done_ % shape_.buffered];
  for (;;) {
    const std::uint32_t seen = finished.load(std::memory_order_acquire);
    if (seen == shape_.slices(done_)) return;
    finished.wait(seen, std::memory_order_acquire);
  }
}

void CopyJob::Stop() { allowed_.store(0, std::memory_order_release); }

bool CopyJob::CopyOne() {
  std::uint64_t taken = next_.load(std::memory_order_relaxed);
  do {
    if (taken >= allowed_.load(std::memory_order_acquire)) return false;
  } while (!next_.compare_exchange_weak(taken, taken + 1, std::memory_order_relaxed));

  const std::uint64_t chunk = taken / shape_.slices_per_chunk();
  const std::size_t within = taken % shape_.slices_per_chunk() * shape_.slice;
  const std::size_t at = chunk * shape_.chunk + within;
  const std::size_t in_buffer = chunk % shape_.buffered * shape_.chunk + within;
  const std::size_t size = std::min({shape_.slice, shape_.chunk - within, shape_.size - at});
  std::byte* const destination =
      shape_.destination + (shape_.buffer == CopyShape::Buffer::kDestination ? in_buffer : at);
  const std::byte* const source =
      shape_.source + (shape_.buffer == CopyShape::Buffer::kSource ? in_buffer : at);
  // What goes into a buffer is the device's to read, what comes out of one the host's, soon.
  if (shape_.buffer == CopyShape::Buffer::kDestination) {
    CopyPastCaches(destination, source, size);
  } else {
    std::memcpy(destination, source, size);
  }
  const auto all = static_cast<std::uint32_t>(shape_.slices(chunk));
  std::atomic<std::uint32_t>& finished = finished_[chunk % shape_.buffered];
  if (finished.fetch_add(1, std::memory_order_acq_rel) + 1 == all) finished.notify_one();
  return true;
}

// --- CopyCrew ----------------------------------------------------------------------------------

CopyCrew::CopyCrew(const ParallelCopyOptions& options)
    : options_(options),
      threads_(options.threads > 0
                   ? options.threads
                   : static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 8U))) {}

CopyCrew::~CopyCrew() {
  std::vector<std::thread> workers;
  {
    MutexLock lock(start_mutex_);
    workers.swap(workers_);
  }
  dismissed_.store(true);
  calls_.fetch_add(1);
  calls_.notify_all();
  for (std::thread& worker : workers) worker.join();
}

std::uint32_t CopyCrew::WorkersFor(const CopyShape& shape) const {
  if (shape.size <= options_.inline_limit.count()) return 0;
  const std::uint64_t others = shape.slices_before(shape.chunks()) - 1;
  const std::uint64_t share = std::max<std::uint64_t>(options_.share.count(), 1);
  const std::uint64_t worth = std::max<std::uint64_t>(shape.size / share, 2) - 1;
  return static_cast<std::uint32_t>(
      std::min({static_cast<std::uint64_t>(threads_ - 1), others, worth}));
}

void CopyCrew::StartWorkers() {
  if (started_.load(std::memory_order_acquire)) return;
  MutexLock lock(start_mutex_);
  if (!workers_.empty()) return;
  // A program's signals are for its own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  // A fault is the thread's own: blocked, it would end the process without the handler that is
  // there.
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  workers_.reserve(static_cast<std::size_t>(threads_ - 1));
  for (int i = 1; i < threads_; ++i) {
    try {
      workers_.emplace_back([this] { Main(); });
    } catch (const std::system_error&) {
      break;  // with as many as there are; tried again next time if there are none
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  started_.store(!workers_.empty(), std::memory_order_release);
}

CopyJob* CopyCrew::Open(const CopyShape& shape) {
  const std::uint32_t wanted = WorkersFor(shape);
  if (wanted == 0) return nullptr;
  StartWorkers();
  for (std::size_t i = 0; i < kJobs; ++i) {
    CopyJob& job = jobs_[i];
    std::uint32_t free = 0;
    if (job.state_.load(std::memory_order_relaxed) != 0 ||
        !job.state_.compare_exchange_strong(free, CopyJob::kOwned, std::memory_order_acquire)) {
      continue;
    }
    job.Begin(shape);
    job.wanted_.store(wanted, std::memory_order_relaxed);
    job.state_.store(CopyJob::kOwned | CopyJob::kOpen, std::memory_order_release);
    open_.fetch_or(1U << i, std::memory_order_release);
    return &job;
  }
  alone_.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

void CopyCrew::Call(const CopyJob& job) {
  calls_.fetch_add(1);
  const auto in_it = static_cast<std::int32_t>(job.state_.load(std::memory_order_relaxed) &
                                               ~(CopyJob::kOwned | CopyJob::kOpen));
  const std::int32_t missing =
      std::min(static_cast<std::int32_t>(job.wanted_.load(std::memory_order_relaxed)) - in_it -
                   awake_.load(std::memory_order_relaxed),
               sleeping_.load());
  if (missing <= 0) return;
  to_wake_.store(missing, std::memory_order_relaxed);
  wakes_.fetch_add(1, std::memory_order_relaxed);
  calls_.notify_one();
}

void CopyCrew::Close(CopyJob& job) {
  open_.fetch_and(~(1U << (&job - jobs_.data())), std::memory_order_relaxed);
  job.state_.fetch_and(~(CopyJob::kOwned | CopyJob::kOpen), std::memory_order_release);
}

void CopyCrew::Abandon(CopyJob& job) {
  job.Stop();
  open_.fetch_and(~(1U << (&job - jobs_.data())), std::memory_order_relaxed);
  job.state_.fetch_and(~CopyJob::kOpen, std::memory_order_relaxed);
  while (job.state_.load(std::memory_order_acquire) != CopyJob::kOwned) std::this_thread::yield();
  job.state_.store(0, std::memory_order_release);
}

bool CopyCrew::WorkOnAny() {
  bool worked = false;
  for (std::uint32_t open = open_.load(std::memory_order_acquire); open != 0; open &= open - 1) {
    CopyJob& job = jobs_[static_cast<std::size_t>(__builtin_ctz(open))];
    if (!job.HasMore()) continue;
    std::uint32_t state = job.state_.load(std::memory_order_relaxed);
    const auto joins = [&] {
      const std::uint32_t in_it = state & ~(CopyJob::kOwned | CopyJob::kOpen);
      return (state & CopyJob::kOpen) != 0 && in_it < job.wanted_.load(std::memory_order_relaxed);
    };
    bool joined = false;
    while (!joined && joins()) {
      joined = job.state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire);
    }
    if (!joined) continue;
    while (job.CopyOne()) worked = true;
    job.state_.fetch_sub(1, std::memory_order_release);
  }
  return worked;
}

void CopyCrew::Main() {
  Clock::time_point needed = Clock::now();
  for (;;) {
    // Before looking: what is called out later is seen as a change.
    const std::uint32_t seen = calls_.load();
    const auto called = [&] { return calls_.load() != seen; };
    if (dismissed_.load()) return;
    if (WorkOnAny()) {
      needed = Clock::now();
      continue;
    }
    // Since it was needed, not since it was called: one that is never in time sleeps all the same.
    if (Clock::now() < needed + options_.linger) {
      awake_.fetch_add(1, std::memory_order_relaxed);
      SpinUntil(needed + options_.linger, called);
      awake_.fetch_sub(1, std::memory_order_relaxed);
      continue;
    }
    sleeping_.fetch_add(1);
    const bool sleeps = !called();
    if (sleeps) calls_.wait(seen);
    sleeping_.fetch_sub(1);
    if (!sleeps) continue;
    if (to_wake_.fetch_sub(1, std::memory_order_relaxed) > 1) calls_.notify_one();
    needed = Clock::now();
  }
}

// --- PiecewiseCopy -----------------------------------------------------------------------------

PiecewiseCopy::PiecewiseCopy(ParallelCopy& copy, CopyShape shape)
    : crew_(copy.crew_->here() ? copy.crew_.get() : nullptr),
      linger_(copy.crew_->options().linger),
      chunks_(shape.chunks()),
      job_([&] {
        CopyJob* const job = crew_ != nullptr ? crew_->Open(shape) : nullptr;
        if (job != nullptr) return job;
        own_.Begin(shape);
        return &own_;
      }()) {
  // Also when nothing is allowed yet: those who sleep are awake by then.
  if (job_ != &own_) crew_->Call(*job_);
}

PiecewiseCopy::~PiecewiseCopy() {
  if (job_ == &own_) return;
  if (Done() == chunks_) {
    crew_->Close(*job_);
  } else {
    crew_->Abandon(*job_);
  }
}

void PiecewiseCopy::Allow(std::uint64_t chunks) {
  if (chunks <= allowed_) return;
  allowed_ = std::min(chunks, chunks_);
  job_->Allow(allowed_);
  if (job_ != &own_) crew_->Call(*job_);
}

std::size_t PiecewiseCopy::SliceFor(const ParallelCopy& copy, std::size_t chunk) {
  // Several for each thread, so that one that comes late does not hold up the rest; whole pages,
  // so that no two threads write one line.
  const auto threads = static_cast<std::size_t>(copy.crew_->threads());
  const std::size_t most =
      std::max(copy.crew_->options().slice.count() / kPage * kPage, kLeastSlice);
  return std::clamp(chunk / (threads * 2) / kPage * kPage, kLeastSlice, most);
}

}  // namespace keel::memory
