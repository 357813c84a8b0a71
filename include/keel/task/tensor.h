// Tensor: where the elements of a tensor are, how many, and of what type. 40 bytes that travel
// between processes as they are. It owns nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "keel/base/bytes.h"
#include "keel/base/export.h"
#include "keel/base/result.h"

namespace keel::task {

// The values travel, and never change.
enum class DataType : std::uint8_t {
  kUInt8 = 0,
  kInt8 = 1,
  kUInt16 = 2,
  kInt16 = 3,
  kUInt32 = 4,
  kInt32 = 5,
  kUInt64 = 6,
  kInt64 = 7,
  kFloat16 = 8,
  kBFloat16 = 9,
  kFloat32 = 10,
  kFloat64 = 11,
  kBool = 12,
  kComplex64 = 13,
  kComplex128 = 14,
};
inline constexpr std::uint8_t kDataTypes = 15;

// 0 for a value outside of the list.
constexpr std::uint32_t SizeOf(DataType type) {
  constexpr std::uint8_t kSizes[kDataTypes] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 1, 8, 16};
  const auto index = static_cast<std::uint8_t>(type);
  return index < kDataTypes ? kSizes[index] : 0;
}
// "float32"; "type 42" is "unknown".
KEEL_EXPORT std::string_view DataTypeName(DataType type);

struct Tensor {
  static constexpr std::size_t kMaxRank = 6;
  // The tensor is on the worker's device already: it is passed through, not copied, not freed.
  static constexpr std::uint8_t kResident = 1;

  std::uint64_t address = 0;                    // of the host, or, resident, of the worker's device
  std::array<std::uint32_t, kMaxRank> shape{};  // [rank, kMaxRank) are 0
  std::uint8_t rank = 0;                        // 0: one element
  DataType type = DataType::kUInt8;
  std::uint8_t flags = 0;
  std::array<std::uint8_t, 5> reserved{};  // 0

  bool resident() const { return (flags & kResident) != 0; }
  // Precondition: Check() is OK.
  std::uint64_t elements() const {
    std::uint64_t count = 1;
    for (std::size_t i = 0; i < rank; ++i) count *= shape[i];
    return count;
  }
  Bytes size() const { return Bytes(elements() * SizeOf(type)); }
  // kInvalidArgument says what is wrong: the rank, the type, a flag, bytes that are not 0 where
  // they must be, a size of more than 2^63, an address that wraps, no address although there are
  // elements.
  KEEL_EXPORT Status Check() const;

  // Contiguous elements on the host. Precondition: at most kMaxRank dimensions.
  static Tensor Host(const void* data, DataType type, std::span<const std::uint32_t> shape) {
    return Of(reinterpret_cast<std::uintptr_t>(data), type, shape, 0);
  }
  static Tensor Resident(DeviceAddress address, DataType type,
                         std::span<const std::uint32_t> shape) {
    return Of(address.value(), type, shape, kResident);
  }

  friend bool operator==(const Tensor&, const Tensor&) = default;

 private:
  static Tensor Of(std::uint64_t address, DataType type, std::span<const std::uint32_t> shape,
                   std::uint8_t flags) {
    Tensor tensor;
    tensor.address = address;
    tensor.type = type;
    tensor.flags = flags;
    tensor.rank = static_cast<std::uint8_t>(shape.size());
    for (std::size_t i = 0; i < shape.size() && i < kMaxRank; ++i) tensor.shape[i] = shape[i];
    return tensor;
  }
};

static_assert(sizeof(Tensor) == 40 && std::is_trivially_copyable_v<Tensor>);
static_assert(offsetof(Tensor, flags) < 40);

}  // namespace keel::task
