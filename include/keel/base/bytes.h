// Bytes, Offset and DeviceAddress: the three quantities that a memory runtime must never mix up.
//
// Bytes is how much, Offset is where inside something, DeviceAddress is where on one device (two
// devices may have equal addresses: an address alone does not say whose it is). They are strong
// types over uint64_t; only the arithmetic that means something is there. Overflow is the
// caller's to avoid where sizes come from outside: CheckedAdd and CheckedMultiply say so.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "keel/base/export.h"
#include "keel/base/result.h"

namespace keel {

class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::uint64_t count) : count_(count) {}

  constexpr std::uint64_t count() const { return count_; }
  constexpr bool empty() const { return count_ == 0; }

  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return Bytes(a.count_ + b.count_); }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes(a.count_ - b.count_); }
  friend constexpr Bytes operator*(Bytes a, std::uint64_t n) { return Bytes(a.count_ * n); }
  friend constexpr Bytes operator*(std::uint64_t n, Bytes a) { return a * n; }
  friend constexpr Bytes operator/(Bytes a, std::uint64_t n) { return Bytes(a.count_ / n); }
  friend constexpr std::uint64_t operator/(Bytes a, Bytes b) { return a.count_ / b.count_; }
  friend constexpr Bytes operator%(Bytes a, Bytes b) { return Bytes(a.count_ % b.count_); }
  constexpr Bytes& operator+=(Bytes b) { return *this = *this + b; }
  constexpr Bytes& operator-=(Bytes b) { return *this = *this - b; }

 private:
  std::uint64_t count_ = 0;
};

// Parses "4096", "20 MiB", "20MiB", "1.5 GiB", "64k": a non-negative number and an optional unit
// (B, K/KB/KiB, M/MB/MiB, G/GB/GiB, T/TB/TiB, upper or lower case; all are powers of 1024, as in
// every GPU tool). The result must be a whole number of bytes below 2^64. Errors name the text.
KEEL_EXPORT Result<Bytes> ParseBytes(std::string_view text);

// The largest unit in which the value is at least 1, with up to two decimals and without
// trailing zeros: "0 B", "512 B", "20 MiB", "1.5 GiB". Not always exact; count() is.
KEEL_EXPORT std::string ToString(Bytes bytes);

constexpr std::optional<Bytes> CheckedAdd(Bytes a, Bytes b) {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a.count(), b.count(), &sum)) return std::nullopt;
  return Bytes(sum);
}
constexpr std::optional<Bytes> CheckedMultiply(Bytes a, std::uint64_t n) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a.count(), n, &product)) return std::nullopt;
  return Bytes(product);
}

constexpr bool IsPowerOfTwo(Bytes b) {
  return b.count() != 0 && (b.count() & (b.count() - 1)) == 0;
}
// Any non-zero granularity, not only powers of two. AlignUp: nullopt on overflow.
constexpr bool IsAligned(Bytes value, Bytes granularity) { return (value % granularity).empty(); }
constexpr Bytes AlignDown(Bytes value, Bytes granularity) { return value - value % granularity; }
constexpr std::optional<Bytes> AlignUp(Bytes value, Bytes granularity) {
  const Bytes rest = value % granularity;
  return rest.empty() ? std::optional<Bytes>(value) : CheckedAdd(value, granularity - rest);
}

inline namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return Bytes(n); }
constexpr Bytes operator""_KiB(unsigned long long n) { return Bytes(n << 10); }
constexpr Bytes operator""_MiB(unsigned long long n) { return Bytes(n << 20); }
constexpr Bytes operator""_GiB(unsigned long long n) { return Bytes(n << 30); }
constexpr Bytes operator""_TiB(unsigned long long n) { return Bytes(n << 40); }
}  // namespace literals

// A position inside a segment, a range, a file: distance from its start.
class Offset {
 public:
  constexpr Offset() = default;
  constexpr explicit Offset(std::uint64_t value) : value_(value) {}
  constexpr std::uint64_t value() const { return value_; }

  friend constexpr auto operator<=>(Offset, Offset) = default;
  friend constexpr Offset operator+(Offset a, Bytes b) { return Offset(a.value_ + b.count()); }
  friend constexpr Offset operator-(Offset a, Bytes b) { return Offset(a.value_ - b.count()); }
  friend constexpr Bytes operator-(Offset a, Offset b) { return Bytes(a.value_ - b.value_); }

 private:
  std::uint64_t value_ = 0;
};

// An address in one device's address space. Zero is "no address". Not a pointer: the host cannot
// dereference it.
class DeviceAddress {
 public:
  constexpr DeviceAddress() = default;
  constexpr explicit DeviceAddress(std::uint64_t value) : value_(value) {}
  constexpr std::uint64_t value() const { return value_; }
  constexpr explicit operator bool() const { return value_ != 0; }

  friend constexpr auto operator<=>(DeviceAddress, DeviceAddress) = default;
  friend constexpr DeviceAddress operator+(DeviceAddress a, Bytes b) {
    return DeviceAddress(a.value_ + b.count());
  }
  friend constexpr DeviceAddress operator-(DeviceAddress a, Bytes b) {
    return DeviceAddress(a.value_ - b.count());
  }
  friend constexpr Bytes operator-(DeviceAddress a, DeviceAddress b) {
    return Bytes(a.value_ - b.value_);
  }

 private:
  std::uint64_t value_ = 0;
};

constexpr bool IsAligned(DeviceAddress address, Bytes granularity) {
  return IsAligned(Bytes(address.value()), granularity);
}

// "0x7f0012340000".
KEEL_EXPORT std::string ToString(DeviceAddress address);

}  // namespace keel

template <>
struct std::hash<keel::DeviceAddress> {
  std::size_t operator()(keel::DeviceAddress a) const noexcept {
    return std::hash<std::uint64_t>()(a.value());
  }
};
