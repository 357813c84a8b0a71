// CopyCrew: the workers of a ParallelCopy, and the jobs that they share with their callers.
//
// A job is one copy, cut into chunks, and each chunk into slices. Whoever is there, the caller or a
// worker, takes the next slice; nobody is ever given one, so nobody waits for somebody who sleeps.
// The caller says how many chunks may be copied (Allow) and sees which ones are done, in order.
//
// Jobs live in the crew, not with their callers: a worker may look at a job that is over, and the
// caller leaves when its last slice is done, whether or not the workers have noticed. There are
// kJobs of them; a caller beyond copies alone.
//
// On the common path nothing here takes a lock or calls the kernel: a contended lock puts a thread
// to sleep, and waking it takes longer than a slice. A worker that finds nothing looks again for
// `linger`, then sleeps on a word in memory. A caller wakes one worker, which wakes the next.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/fork.h"
#include "keel/base/mutex.h"
#include "keel/memory/parallel_copy.h"

namespace keel::memory {

// What is copied: `size` bytes, in chunks. One of the two sides may be a buffer of `buffered`
// chunks that is used in turn.
struct CopyShape {
  std::byte* destination = nullptr;
  const std::byte* source = nullptr;
  std::size_t size = 0;
  std::size_t chunk = 0;
  std::size_t slice = 0;
  std::size_t buffered = 1;  // chunks that may be allowed and not done
  enum class Buffer : std::uint8_t { kNone, kDestination, kSource } buffer = Buffer::kNone;

  std::uint64_t chunks() const { return (size + chunk - 1) / chunk; }
  std::uint64_t slices_per_chunk() const { return (chunk + slice - 1) / slice; }
  // That the chunk has, or those before it.
  std::uint64_t slices(std::uint64_t index) const;
  std::uint64_t slices_before(std::uint64_t index) const;
};

class CopyJob {
 public:
  CopyJob() = default;
  CopyJob(const CopyJob&) = delete;
  CopyJob& operator=(const CopyJob&) = delete;

  // By its owner, while nobody else is in it.
  void Begin(const CopyShape& shape);
  // The first `chunks` may be copied; at most `buffered` more than are done.
  void Allow(std::uint64_t chunks);
  // Chunks that are done, counted from the first; by the owner.
  std::uint64_t Done();
  // Until Done() gives more than it did. Only when a slice of the next chunk is taken by another.
  void AwaitMore(std::chrono::microseconds spin);
  // Nobody takes a slice any more.
  void Stop();

  // Takes the next slice and copies it. False: there is none now.
  bool CopyOne();
  bool HasMore() const {
    return next_.load(std::memory_order_relaxed) < allowed_.load(std::memory_order_acquire);
  }

 private:
  friend class CopyCrew;
  // Bits of state_; the rest counts the workers in it.
  static constexpr std::uint32_t kOwned = 1U << 31;  // by a caller
  static constexpr std::uint32_t kOpen = 1U << 30;   // workers may join

  bool Finished(std::uint64_t chunk) const;

  CopyShape shape_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> finished_;  // slices, of each chunk of the buffer
  std::size_t capacity_ = 0;
  std::uint64_t done_ = 0;  // chunks; the owner's

  alignas(64) std::atomic<std::uint64_t> next_{0};  // slice
  std::atomic<std::uint64_t> allowed_{0};           // slices
  alignas(64) std::atomic<std::uint32_t> state_{0};
  std::atomic<std::uint32_t> wanted_{0};  // workers
};

class CopyCrew {
 public:
  explicit CopyCrew(const ParallelCopyOptions& options);
  ~CopyCrew();
  CopyCrew(const CopyCrew&) = delete;
  CopyCrew& operator=(const CopyCrew&) = delete;

  const ParallelCopyOptions& options() const { return options_; }
  int threads() const { return threads_; }
  bool here() const { return home_.here(); }
  ParallelCopy::Stats stats() const {
    return {.wakes = wakes_.load(std::memory_order_relaxed),
            .alone = alone_.load(std::memory_order_relaxed)};
  }

  // A job for a copy of this size with its workers, who can join at once; null: the caller copies
  // alone.
  CopyJob* Open(const CopyShape& shape);
  // The job has more to do, or will soon: whoever is awake looks, and others are woken.
  void Call(const CopyJob& job);
  // When everything that was taken is done.
  void Close(CopyJob& job);
  // At any time: nobody copies for the job any more when it returns.
  void Abandon(CopyJob& job);

 private:
  static constexpr std::size_t kJobs = 16;

  std::uint32_t WorkersFor(const CopyShape& shape) const;
  void StartWorkers() KEEL_EXCLUDES(start_mutex_);
  void Main();
  bool WorkOnAny();

  const ParallelCopyOptions options_;
  const int threads_;
  const Home home_;

  std::array<CopyJob, kJobs> jobs_;
  alignas(64) std::atomic<std::uint32_t> open_{0};  // bit by job
  alignas(64) std::atomic<std::uint32_t> calls_{0};
  std::atomic<std::int32_t> awake_{0};     // looking for a job
  std::atomic<std::int32_t> sleeping_{0};  // or about to
  std::atomic<std::int32_t> to_wake_{0};   // whoever wakes goes on with
  std::atomic<std::uint64_t> wakes_{0};
  std::atomic<std::uint64_t> alone_{0};
  std::atomic<bool> dismissed_{false};

  std::atomic<bool> started_{false};
  Mutex start_mutex_;
  std::vector<std::thread> workers_ KEEL_GUARDED_BY(start_mutex_);
};

// The caller's part of one copy: opens a job, or has one of its own when there is nobody to help,
// and gives it back on every path. One thread's.
class PiecewiseCopy {
 public:
  PiecewiseCopy(ParallelCopy& copy, CopyShape shape);
  ~PiecewiseCopy();
  PiecewiseCopy(const PiecewiseCopy&) = delete;
  PiecewiseCopy& operator=(const PiecewiseCopy&) = delete;

  // The first `chunks` may be copied; at most `buffered` more than are done.
  void Allow(std::uint64_t chunks);
  std::uint64_t allowed() const { return allowed_; }
  // Chunks that are done, counted from the first.
  std::uint64_t Done() { return job_->Done(); }
  // Copies a slice. False: all that are allowed are taken.
  bool Help() { return job_->CopyOne(); }
  // After Help() gave false, and with fewer done than allowed: until one more is done.
  void AwaitMore() { job_->AwaitMore(linger_); }

  // The largest slice for a chunk that `copy` would use, of whole pages.
  static std::size_t SliceFor(const ParallelCopy& copy, std::size_t chunk);

 private:
  CopyCrew* const crew_;  // null: in a forked child
  const std::chrono::microseconds linger_;
  const std::uint64_t chunks_;
  CopyJob own_;
  CopyJob* const job_;
  std::uint64_t allowed_ = 0;
};

}  // namespace keel::memory
