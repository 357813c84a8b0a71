#include "keel/task/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace keel::task {
namespace {

constexpr std::uint64_t kMaxSize = std::uint64_t{1} << 63;

}  // namespace

std::string_view DataTypeName(DataType type) {
  static constexpr std::string_view kNames[kDataTypes] = {
      "uint8",   "int8",     "uint16",  "int16",   "uint32", "int32",     "uint64",    "int64",
      "float16", "bfloat16", "float32", "float64", "bool",   "complex64", "complex128"};
  const auto index = static_cast<std::uint8_t>(type);
  return index < kDataTypes ? kNames[index] : "unknown";
}

Status Tensor::Check() const {
  if (rank > kMaxRank) {
    return InvalidArgument(
        fmt::format("has {} dimensions; at most {} are possible", rank, kMaxRank));
  }
  if (SizeOf(type) == 0) {
    return InvalidArgument(
        fmt::format("has the type {}, which is none", static_cast<unsigned>(type)));
  }
  if ((flags & ~kResident) != 0) {
    return InvalidArgument(
        fmt::format("has the flags {:#x}; only {:#x} (resident) is one", flags, kResident));
  }
  if (std::ranges::any_of(reserved, [](std::uint8_t byte) { return byte != 0; })) {
    return InvalidArgument("has reserved bytes that are not 0");
  }
  for (std::size_t i = rank; i < kMaxRank; ++i) {
    if (shape[i] != 0) {
      return InvalidArgument(fmt::format("has a size of {} in dimension {}, but only {} dimensions",
                                         shape[i], i, rank));
    }
  }
  if (std::any_of(shape.begin(), shape.begin() + rank, [](std::uint32_t n) { return n == 0; })) {
    return OkStatus();
  }
  Bytes bytes(SizeOf(type));
  for (std::size_t i = 0; i < rank; ++i) {
    const std::optional<Bytes> product = CheckedMultiply(bytes, shape[i]);
    if (!product || product->count() > kMaxSize) {
      return InvalidArgument("has more than 2^63 bytes");
    }
    bytes = *product;
  }
  if (address == 0) return InvalidArgument("has elements and no address");
  if (!CheckedAdd(Bytes(address), bytes)) {
    return InvalidArgument(fmt::format("of {} bytes at {} goes beyond the end of the address space",
                                       bytes.count(), keel::ToString(DeviceAddress(address))));
  }
  return OkStatus();
}

}  // namespace keel::task
