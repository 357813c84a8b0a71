#include "task/porter.h"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

namespace keel::task {

Porter::~Porter() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

std::uint64_t Porter::Carry(std::vector<Load> loads) {
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { Run(); });
    } catch (const std::system_error&) {
      static_cast<void>(Copy(loads));
      std::uint64_t number = 0;
      {
        const MutexLock lock(mutex_);
        number = ++last_;
      }
      arrived_.store(number, std::memory_order_release);
      arrived_call_();
      return number;
    }
  }
  const MutexLock lock(mutex_);
  waiting_.push_back({++last_, std::move(loads)});
  changed_.NotifyAll();
  return last_;
}

bool Porter::Copy(const std::vector<Load>& loads) const {
  for (const Load& load : loads) {
    for (std::size_t done = 0; done < load.size; done += kPiece) {
      if (dropping_.load(std::memory_order_relaxed)) return false;
      std::memcpy(load.to + done, load.from + done, std::min(kPiece, load.size - done));
    }
  }
  return true;
}

void Porter::Run() {
  for (;;) {
    Delivery next;
    {
      const MutexLock lock(mutex_);
      while (waiting_.empty() && !stopping_) changed_.Wait(mutex_);
      if (waiting_.empty()) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
      carrying_ = true;
    }
    const bool whole = Copy(next.loads);
    if (whole) arrived_.store(next.number, std::memory_order_release);
    {
      const MutexLock lock(mutex_);
      carrying_ = false;
      changed_.NotifyAll();
    }
    if (whole) arrived_call_();
  }
}

void Porter::Drop() {
  const MutexLock lock(mutex_);
  waiting_.clear();
  dropping_.store(true, std::memory_order_relaxed);
  while (carrying_) changed_.Wait(mutex_);
  dropping_.store(false, std::memory_order_relaxed);
}

void Porter::Finish() {
  const MutexLock lock(mutex_);
  while (carrying_ || !waiting_.empty()) changed_.Wait(mutex_);
}

}  // namespace keel::task
