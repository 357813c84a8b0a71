// ShortList: the array that a library's call wants, made from a list of ours; on the stack unless
// it is long.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

namespace keel::vendor {

template <class T>
class ShortList {
 public:
  static_assert(std::is_trivially_destructible_v<T>);

  // `make(item)` for each item of `items`.
  template <class Items, class Make>
  ShortList(const Items& items, Make make) : size_(items.size()) {
    if (size_ > kFew) {
      many_.resize(size_);
      data_ = many_.data();
    }
    std::size_t i = 0;
    for (const auto& item : items) std::construct_at(data_ + i++, make(item));
  }
  ShortList(const ShortList&) = delete;
  ShortList& operator=(const ShortList&) = delete;

  T* data() { return data_; }
  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kFew = 16;
  // Bytes, so that only what is used is written.
  alignas(T) std::array<std::byte, kFew * sizeof(T)> few_;
  std::vector<T> many_;
  T* data_ = reinterpret_cast<T*>(few_.data());
  std::size_t size_;
};

using PointerList = ShortList<void*>;

}  // namespace keel::vendor
