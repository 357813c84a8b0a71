// Arguments: what a task is called with: tensors, each tagged with what the task does to it, and
// scalars of 64 bits. They travel as one block of bytes.
//
// The block: a header (16 bytes), the tensors (40 bytes each), the scalars (8 bytes each), the tags
// (1 byte each), zeros up to a multiple of 8. Everything in the byte order of the machine.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/task/tensor.h"

namespace keel::task {

enum class Tag : std::uint8_t { kIn = 1, kOut = 2, kInOut = 3 };
constexpr bool Reads(Tag tag) { return (static_cast<unsigned>(tag) & 1) != 0; }
constexpr bool Writes(Tag tag) { return (static_cast<unsigned>(tag) & 2) != 0; }

struct ArgumentsHeader {
  static constexpr std::uint32_t kMagic = 0x4741'454b;  // "KEAG"
  static constexpr std::uint16_t kVersion = 1;
  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  std::uint16_t tensors = 0;
  std::uint16_t scalars = 0;
  std::uint16_t reserved = 0;
  std::uint32_t size = 0;  // of the whole block
};
static_assert(sizeof(ArgumentsHeader) == 16);

// Reads a block that was checked by whoever hands it out (orchestration code is given such). Needs
// no library.
class ArgumentsView {
 public:
  explicit ArgumentsView(const std::byte* block) : block_(block) {
    std::memcpy(&header_, block, sizeof(header_));
  }
  std::size_t tensor_count() const { return header_.tensors; }
  std::size_t scalar_count() const { return header_.scalars; }
  bool empty() const { return header_.tensors == 0 && header_.scalars == 0; }
  // Precondition: i is below the count, here and below.
  Tensor tensor(std::size_t i) const {
    Tensor tensor;
    std::memcpy(&tensor, block_ + sizeof(header_) + i * sizeof(Tensor), sizeof(tensor));
    return tensor;
  }
  Tag tag(std::size_t i) const {
    return static_cast<Tag>(block_[sizeof(header_) + header_.tensors * sizeof(Tensor) +
                                   header_.scalars * sizeof(std::uint64_t) + i]);
  }
  // Of whoever made the block, before it hands it out.
  static void SetAddress(std::byte* block, std::size_t i, std::uint64_t address) {
    std::memcpy(block + sizeof(ArgumentsHeader) + i * sizeof(Tensor) + offsetof(Tensor, address),
                &address, sizeof(address));
  }
  template <class T = std::uint64_t>
  T scalar(std::size_t i) const {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));
    T value;
    std::memcpy(&value, block_ + sizeof(header_) + header_.tensors * sizeof(Tensor) + i * 8,
                sizeof(T));
    return value;
  }

 private:
  const std::byte* block_;
  ArgumentsHeader header_;
};

// A value type; copies are independent.
class KEEL_EXPORT Arguments {
 public:
  static constexpr std::size_t kMaxTensors = 256;
  static constexpr std::size_t kMaxScalars = 256;

  Arguments& Add(Tag tag, const Tensor& tensor) {
    tags_.push_back(tag);
    tensors_.push_back(tensor);
    return *this;
  }
  template <class T>
  Arguments& AddScalar(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    scalars_.push_back(bits);
    return *this;
  }

  // None, as it was made, but for memory that serves the next ones.
  void Clear() {
    tensors_.clear();
    tags_.clear();
    scalars_.clear();
  }

  bool empty() const { return tensors_.empty() && scalars_.empty(); }
  std::span<const Tensor> tensors() const { return tensors_; }
  std::span<Tensor> tensors() { return tensors_; }
  std::span<const Tag> tags() const { return tags_; }
  std::span<const std::uint64_t> scalars() const { return scalars_; }

  // kInvalidArgument names the argument: too many, a bad tag, a tensor that does not Check(), and
  // a tensor that is written and overlaps another of the same space (host, or resident), whatever
  // their order. Overlapping tensors that are only read are fine.
  Status Check() const;

  std::size_t encoded_size() const;
  // Precondition: Check() is OK, and `block` has encoded_size() bytes.
  void EncodeTo(std::span<std::byte> block) const;
  std::vector<std::byte> Encode() const;
  // Whether a block is what Encode makes of arguments that pass Check(). Trusts nothing:
  // kInvalidArgument says what is wrong and at which offset.
  static Status CheckBlock(std::span<const std::byte> block);
  // The same, and what is in it.
  static Result<Arguments> Decode(std::span<const std::byte> block);

  friend bool operator==(const Arguments&, const Arguments&) = default;

 private:
  std::vector<Tensor> tensors_;
  std::vector<Tag> tags_;
  std::vector<std::uint64_t> scalars_;
};

}  // namespace keel::task
