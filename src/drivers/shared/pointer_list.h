// PointerList: the array of pointers that a library's call wants, on the stack unless it is long.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace keel::vendor {

class PointerList {
 public:
  // `pointer_to(item)` for each item of `items`.
  template <class Items, class PointerTo>
  PointerList(const Items& items, PointerTo pointer_to) {
    if (items.size() > few_.size()) {
      many_.resize(items.size());
      data_ = many_.data();
    }
    std::size_t i = 0;
    for (const auto& item : items) data_[i++] = pointer_to(item);
  }
  PointerList(const PointerList&) = delete;
  PointerList& operator=(const PointerList&) = delete;

  void** data() { return data_; }

 private:
  std::array<void*, 32> few_;
  std::vector<void*> many_;
  void** data_ = few_.data();
};

}  // namespace keel::vendor
