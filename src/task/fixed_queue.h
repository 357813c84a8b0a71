// FixedQueue: a queue of at most N, in place: what a deque of a few elements costs in memory that
// comes and goes, it does not. Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace keel::task {

template <class T, std::size_t N>
class FixedQueue {
 public:
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == N; }
  std::size_t size() const { return size_; }

  // The i-th from the front. Precondition: i < size().
  T& operator[](std::size_t i) { return elements_[(first_ + i) % N]; }
  const T& operator[](std::size_t i) const { return elements_[(first_ + i) % N]; }
  T& front() { return elements_[first_]; }
  const T& front() const { return elements_[first_]; }

  // A new last one, to be assigned, field by field: a record that is made first is copied by wider
  // loads than its fields were stored by, and waits for the stores. Precondition: not full().
  T& Append() { return elements_[(first_ + size_++) % N]; }
  // Precondition: not empty(). What it held it gives back now.
  T pop_front() {
    T element = std::move(elements_[first_]);
    if constexpr (!std::is_trivially_copyable_v<T>) elements_[first_] = T();
    first_ = (first_ + 1) % N;
    --size_;
    return element;
  }
  // The first so many, of what holds nothing. Precondition: there are as many.
  void Drop(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T>);
    first_ = (first_ + count) % N;
    size_ -= count;
  }
  // The i-th; those before it stay in their order.
  T Take(std::size_t i) {
    for (; i > 0; --i) std::swap((*this)[i], (*this)[i - 1]);
    return pop_front();
  }
  void clear() {
    while (!empty()) static_cast<void>(pop_front());
  }

 private:
  std::array<T, N> elements_{};
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace keel::task
