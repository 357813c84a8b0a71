#include "keel/memory/parallel_copy.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/fork.h"
#include "keel/base/mutex.h"

namespace keel::memory {
namespace {

using Clock = std::chrono::steady_clock;

// Below this the bookkeeping of a slice shows.
constexpr std::size_t kLeastSlice = std::size_t{64} << 10;
constexpr std::size_t kPage = 4096;

void Relax() {
#if defined(__SSE2__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
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

class ParallelCopy::Crew {
 public:
  explicit Crew(const ParallelCopyOptions& options)
      : options_(options), threads_(Threads(options)) {
    options_.slice = std::max(options_.slice, Bytes(kLeastSlice));
  }
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  int threads() const { return threads_; }
  bool here() const { return fork_generation_ == ForkGeneration(); }
  void Copy(std::byte* destination, const std::byte* source, std::size_t size,
            const std::function<void()>& meanwhile) KEEL_EXCLUDES(mutex_);

 private:
  // On its caller's stack. The caller takes it off the list and leaves when no worker is on it.
  struct Job {
    std::byte* destination;
    const std::byte* source;
    std::size_t size;
    std::size_t slice;
    int wanted;                        // workers that may still join; guarded by mutex_
    std::atomic<std::size_t> next{0};  // the first byte that nobody has taken
    std::atomic<int> workers{0};       // changes under mutex_ only
    CondVar left;                      // the last worker has
    Job* after = nullptr;              // in the list
  };

  static int Threads(const ParallelCopyOptions& options) {
    if (options.threads > 0) return options.threads;
    return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 8U));
  }

  void CopyRange(std::byte* destination, const std::byte* source, std::size_t size) const {
    if (size == 0) return;
    if (options_.streaming_stores) {
      CopyPastCaches(destination, source, size);
    } else {
      std::memcpy(destination, source, size);
    }
  }
  void WorkOn(Job& job) const;
  void StartWorkersLocked() KEEL_REQUIRES(mutex_);
  void PostLocked(Job& job) KEEL_REQUIRES(mutex_);
  void RemoveLocked(Job& job) KEEL_REQUIRES(mutex_);
  // Waits for a job and joins it. Null: the crew is dismissed.
  Job* JoinOne() KEEL_EXCLUDES(mutex_);
  void Main();

  // Until `there` or the time to linger is up.
  template <class There>
  void Linger(There there) const {
    if (options_.linger.count() <= 0 || there()) return;
    const Clock::time_point until = Clock::now() + options_.linger;
    do {
      for (int i = 0; i < 16; ++i) Relax();
    } while (!there() && Clock::now() < until);
  }

  ParallelCopyOptions options_;
  const int threads_;
  const std::uint64_t fork_generation_ = ForkGeneration();

  Mutex mutex_;
  CondVar posted_;
  std::atomic<std::uint64_t> posts_{0};  // changes under mutex_ only
  Job* first_ KEEL_GUARDED_BY(mutex_) = nullptr;
  int awake_ KEEL_GUARDED_BY(mutex_) = 0;     // without a job, but looking for one
  int sleeping_ KEEL_GUARDED_BY(mutex_) = 0;  // in posted_.Wait
  bool dismissed_ KEEL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> workers_ KEEL_GUARDED_BY(mutex_);
};

ParallelCopy::Crew::~Crew() {
  std::vector<std::thread> workers;
  {
    MutexLock lock(mutex_);
    dismissed_ = true;
    posts_.fetch_add(1);
    workers.swap(workers_);
    posted_.NotifyAll();
  }
  for (std::thread& worker : workers) worker.join();
}

void ParallelCopy::Crew::WorkOn(Job& job) const {
  for (;;) {
    const std::size_t at = job.next.fetch_add(job.slice, std::memory_order_relaxed);
    if (at >= job.size) return;
    CopyRange(job.destination + at, job.source + at, std::min(job.slice, job.size - at));
  }
}

void ParallelCopy::Crew::StartWorkersLocked() {
  if (!workers_.empty()) return;
  // A program's signals are for its own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
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
}

void ParallelCopy::Crew::PostLocked(Job& job) {
  Job** last = &first_;
  while (*last != nullptr) last = &(*last)->after;
  *last = &job;
  posts_.fetch_add(1, std::memory_order_relaxed);
  for (int wake = std::min(job.wanted - awake_, sleeping_); wake > 0; --wake) posted_.NotifyOne();
}

void ParallelCopy::Crew::RemoveLocked(Job& job) {
  for (Job** at = &first_; *at != nullptr; at = &(*at)->after) {
    if (*at == &job) {
      *at = job.after;
      return;
    }
  }
}

void ParallelCopy::Crew::Copy(std::byte* destination, const std::byte* source, std::size_t size,
                              const std::function<void()>& meanwhile) {
  if (threads_ == 1 || size <= options_.inline_limit.count() || size < 2 * kLeastSlice) {
    if (meanwhile) meanwhile();
    CopyRange(destination, source, size);
    return;
  }
  // Several for each thread, so that one that comes late does not hold up the rest; whole pages,
  // so that no two threads write one line.
  const std::size_t even = size / (static_cast<std::size_t>(threads_) * 4) / kPage * kPage;
  const std::size_t slice =
      std::clamp<std::size_t>(even, kLeastSlice, options_.slice.count() / kPage * kPage);
  const std::size_t others = (size - 1) / slice;
  Job job{.destination = destination,
          .source = source,
          .size = size,
          .slice = slice,
          .wanted = static_cast<int>(std::min<std::size_t>(others, threads_ - 1))};
  {
    MutexLock lock(mutex_);
    StartWorkersLocked();
    PostLocked(job);
  }
  if (meanwhile) meanwhile();
  WorkOn(job);
  {
    MutexLock lock(mutex_);
    RemoveLocked(job);
  }
  Linger([&] { return job.workers.load(std::memory_order_acquire) == 0; });
  // The lock in any case: the last worker may still be notifying.
  MutexLock lock(mutex_);
  while (job.workers.load(std::memory_order_relaxed) > 0) job.left.Wait(mutex_);
}

ParallelCopy::Crew::Job* ParallelCopy::Crew::JoinOne() {
  bool lingered = false;
  for (;;) {
    std::uint64_t seen = 0;
    {
      MutexLock lock(mutex_);
      if (lingered) --awake_;
      for (;;) {
        if (dismissed_) return nullptr;
        for (Job* job = first_; job != nullptr; job = job->after) {
          if (job->wanted == 0 || job->next.load(std::memory_order_relaxed) >= job->size) continue;
          --job->wanted;
          job->workers.fetch_add(1, std::memory_order_relaxed);
          return job;
        }
        if (!lingered) break;
        ++sleeping_;
        posted_.Wait(mutex_);
        --sleeping_;
      }
      ++awake_;
      seen = posts_.load(std::memory_order_relaxed);
    }
    Linger([&] { return posts_.load(std::memory_order_relaxed) != seen; });
    lingered = true;
  }
}

void ParallelCopy::Crew::Main() {
  while (Job* job = JoinOne()) {
    WorkOn(*job);
    MutexLock lock(mutex_);
    if (job->workers.fetch_sub(1, std::memory_order_release) == 1) job->left.NotifyAll();
  }
}

// --- ParallelCopy ------------------------------------------------------------------------------

ParallelCopyOptions ParallelCopyOptions::From(const AllocatorConfig& config) {
  return {.threads = static_cast<int>(config.staging_threads)};
}

ParallelCopy::ParallelCopy(const ParallelCopyOptions& options)
    : crew_(std::make_unique<Crew>(options)) {}

ParallelCopy::~ParallelCopy() {
  // For ever: a child has neither the threads nor a lock that it can trust.
  if (!crew_->here()) {
    [[maybe_unused]] const Crew* const parents = crew_.release();
  }
}

std::shared_ptr<ParallelCopy> ParallelCopy::Shared() {
  struct Slot {
    Mutex mutex;
    std::weak_ptr<ParallelCopy> copy KEEL_GUARDED_BY(mutex);
  };
  static PerProcess<Slot> slots;
  Slot& slot = slots.Get();
  MutexLock lock(slot.mutex);
  std::shared_ptr<ParallelCopy> copy = slot.copy.lock();
  if (copy == nullptr) slot.copy = copy = std::make_shared<ParallelCopy>();
  return copy;
}

void ParallelCopy::Copy(void* destination, const void* source, Bytes size,
                        const std::function<void()>& meanwhile) {
  if (!crew_->here()) {
    if (meanwhile) meanwhile();
    if (!size.empty()) std::memcpy(destination, source, size.count());
    return;
  }
  crew_->Copy(static_cast<std::byte*>(destination), static_cast<const std::byte*>(source),
              size.count(), meanwhile);
}

int ParallelCopy::threads() const { return crew_->here() ? crew_->threads() : 1; }

}  // namespace keel::memory
