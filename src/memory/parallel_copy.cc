#include "keel/memory/parallel_copy.h"

#include <cstddef>
#include <cstring>

#include "base/fork.h"
#include "keel/base/mutex.h"
#include "memory/copy_crew.h"

namespace keel::memory {

ParallelCopyOptions ParallelCopyOptions::From(const AllocatorConfig& config) {
  return {.threads = static_cast<int>(config.staging_threads)};
}

ParallelCopy::ParallelCopy(const ParallelCopyOptions& options)
    : crew_(MakeSharedHere<CopyCrew>(options)) {}

ParallelCopy::~ParallelCopy() = default;

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
  if (size.empty()) {
    if (meanwhile) meanwhile();
    return;
  }
  PiecewiseCopy copy(*this, {.destination = static_cast<std::byte*>(destination),
                             .source = static_cast<const std::byte*>(source),
                             .size = size.count(),
                             .chunk = size.count(),
                             .slice = PiecewiseCopy::SliceFor(*this, size.count())});
  copy.Allow(1);
  if (meanwhile) meanwhile();
  while (copy.Help()) continue;
  if (copy.Done() == 0) copy.AwaitMore();
}

int ParallelCopy::threads() const { return crew_->here() ? crew_->threads() : 1; }

ParallelCopy::Stats ParallelCopy::stats() const { return crew_->stats(); }

}  // namespace keel::memory
