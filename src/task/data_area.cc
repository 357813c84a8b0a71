#include "task/data_area.h"

#include <utility>

namespace keel::task {

DataArea::DataArea(Region& region, std::function<void()> on_use)
    : region_(region),
      on_use_(std::move(on_use)),
      size_(region.data_size() / memory::kQuantum * memory::kQuantum) {
  const MutexLock lock(mutex_);
  if (size_ > 0) pool_.Add(Region::kData, size_);
}

void DataArea::UsedLocked() {
  recently_ = true;
  if (!std::exchange(dirty_, true)) on_use_();
}

memory::Block* DataArea::Take(std::uint64_t size) {
  const MutexLock lock(mutex_);
  memory::Block* block = pool_.Allocate(Rounded(size));
  // The area cannot grow.
  if (block == nullptr) block = pool_.AllocateAmongAll(Rounded(size));
  if (block != nullptr) UsedLocked();
  return block;
}

void DataArea::Give(memory::Block* block) {
  const MutexLock lock(mutex_);
  pool_.Free(block);
}

void DataArea::UseWindow() {
  const MutexLock lock(mutex_);
  window_ = true;
  UsedLocked();
}

void DataArea::LeaveWindow() {
  const MutexLock lock(mutex_);
  window_ = false;
}

bool DataArea::EmptyIfIdle() {
  const MutexLock lock(mutex_);
  const bool used = std::exchange(recently_, false) || window_ || pool_.taken_blocks() > 0;
  if (!used && dirty_) {
    region_.Empty();
    dirty_ = false;
  }
  return dirty_;
}

}  // namespace keel::task
