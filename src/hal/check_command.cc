#include "hal/check_command.h"

#include <fmt/format.h>

#include <optional>

namespace keel::hal {

Status CheckFill(const Fill& fill) {
  if (fill.width != 1 && fill.width != 2 && fill.width != 4) {
    return InvalidArgument(fmt::format("a fill is 1, 2 or 4 bytes wide, not {}", fill.width));
  }
  if (fill.width < 4 && fill.value >> (8 * fill.width) != 0) {
    return InvalidArgument(
        fmt::format("the value {:#x} does not fit in {} bytes", fill.value, fill.width));
  }
  if (!IsAligned(fill.destination, Bytes(fill.width))) {
    return InvalidArgument(fmt::format("a fill of width {} at {} is not aligned", fill.width,
                                       ToString(fill.destination)));
  }
  const std::optional<Bytes> size = CheckedMultiply(Bytes(fill.width), fill.count);
  if (!size || !CheckedAdd(*size, Bytes(fill.destination.value()))) {
    return InvalidArgument(fmt::format("a fill of {} times {} bytes at {} is not a range",
                                       fill.count, fill.width, ToString(fill.destination)));
  }
  if (fill.count > 0 && !fill.destination) {
    return InvalidArgument("the destination of a fill is a null address");
  }
  return OkStatus();
}

Status CheckCopy(const Copy& copy, bool same_space) {
  const std::uint64_t to = copy.destination.address;
  const std::uint64_t from = copy.source.address;
  const std::uint64_t size = copy.size.count();
  if (size == 0) return OkStatus();
  if (size > ~std::uint64_t{0} - to || size > ~std::uint64_t{0} - from) {
    return InvalidArgument(
        fmt::format("a copy of {} bytes runs over the end of the addresses", size));
  }
  if (copy.destination.on_host() && to == 0) {
    return InvalidArgument("the destination of a copy is a null host pointer");
  }
  if (copy.source.on_host() && from == 0) {
    return InvalidArgument("the source of a copy is a null host pointer");
  }
  if (same_space && to < from + size && from < to + size) {
    return InvalidArgument(fmt::format(
        "the source and the destination of a copy of {} overlap: to {} from {}",
        ToString(copy.size), ToString(DeviceAddress(to)), ToString(DeviceAddress(from))));
  }
  return OkStatus();
}

Status CheckValueAddress(DeviceAddress address) {
  if (IsAligned(address, Bytes(8))) return OkStatus();
  return InvalidArgument(
      fmt::format("a 64-bit value at address {} is not aligned to 8 bytes", ToString(address)));
}

Status CheckArguments(std::span<const KernelArg> arguments) {
  std::size_t total = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].data() == nullptr) {
      return InvalidArgument(fmt::format("argument {} is a value of {} bytes at a null pointer", i,
                                         arguments[i].size()));
    }
    total += (arguments[i].size() + 7) / 8 * 8;
  }
  if (total <= KernelArg::kMaxArguments) return OkStatus();
  return InvalidArgument(
      fmt::format("the arguments of a launch take {} bytes, and may take {}: pass what is large in "
                  "a buffer",
                  total, KernelArg::kMaxArguments));
}

}  // namespace keel::hal
