// ShortList: the array that a library's call wants, made from a list of ours; on the stack unless
// it is long.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace keel::vendor {

template <class T>
class ShortList {
 public:
  // `make(item)` for each item of `items`.
  template <class Items, class Make>
  ShortList(const Items& items, Make make) : size_(items.size()) {
    if (size_ > few_.size()) {
      many_.resize(size_);
      data_ = many_.data();
    }
    std::size_t i = 0;
    for (const auto& item : items) data_[i++] = make(item);
  }
  ShortList(const ShortList&) = delete;
  ShortList& operator=(const ShortList&) = delete;

  T* data() { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::array<T, 16> few_;  // not initialised: only what is used is written
  std::vector<T> many_;
  T* data_ = few_.data();
  std::size_t size_;
};

using PointerList = ShortList<void*>;

}  // namespace keel::vendor
