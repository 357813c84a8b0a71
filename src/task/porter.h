// Porter: copies bytes for one other, in a thread of its own, one delivery after the other: for
// tensors that are so large that nobody should have to wait while they are copied. The thread is
// there from the first delivery on.
//
// One thread at a time calls Carry, Drop and Finish; any may ask Arrived.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "keel/base/mutex.h"

namespace keel::task {

class Porter {
 public:
  struct Load {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    std::size_t size = 0;
  };
  // So much is copied between two looks at whether it is still wanted.
  static constexpr std::size_t kPiece = std::size_t{1} << 20;

  // `arrived` is called after each delivery, with nothing held.
  explicit Porter(std::function<void()> arrived) : arrived_call_(std::move(arrived)) {}
  // Finish.
  ~Porter();
  Porter(const Porter&) = delete;
  Porter& operator=(const Porter&) = delete;

  // Takes a delivery, and says its number: they are counted from 1 on. Where no thread can be had
  // it has arrived when this returns.
  std::uint64_t Carry(std::vector<Load> loads) KEEL_EXCLUDES(mutex_);
  // What arrived is seen by who asks.
  bool Arrived(std::uint64_t number) const {
    return arrived_.load(std::memory_order_acquire) >= number;
  }
  // Forgets what has not arrived. When it returns nobody touches those bytes any more, and Arrived
  // says nothing of them; that takes as long as a piece does.
  void Drop() KEEL_EXCLUDES(mutex_);
  // Returns when everything has arrived.
  void Finish() KEEL_EXCLUDES(mutex_);

 private:
  struct Delivery {
    std::uint64_t number = 0;
    std::vector<Load> loads;
  };
  void Run() KEEL_EXCLUDES(mutex_);
  // False: it was dropped on the way.
  bool Copy(const std::vector<Load>& loads) const;

  const std::function<void()> arrived_call_;
  std::atomic<std::uint64_t> arrived_{0};
  std::atomic<bool> dropping_{false};
  std::thread thread_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<Delivery> waiting_ KEEL_GUARDED_BY(mutex_);
  bool carrying_ KEEL_GUARDED_BY(mutex_) = false;
  bool stopping_ KEEL_GUARDED_BY(mutex_) = false;
  std::uint64_t last_ KEEL_GUARDED_BY(mutex_) = 0;  // number that was given
};

}  // namespace keel::task
