#include "keel/base/bytes.h"

#include <array>
#include <cstdio>

#include "base/quote.h"

namespace keel {
namespace {

constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string_view TakeDigits(std::string_view* text) {
  std::size_t count = 0;
  while (count < text->size() && IsDigit((*text)[count])) ++count;
  const std::string_view digits = text->substr(0, count);
  text->remove_prefix(count);
  return digits;
}

// The power of two that a unit stands for.
std::optional<int> UnitShift(std::string_view unit) {
  const std::string lower = Lower(unit);
  if (lower.empty() || lower == "b") return 0;
  constexpr std::string_view kLetters = "kmgt";
  const std::size_t index = kLetters.find(lower[0]);
  const std::string_view rest = std::string_view(lower).substr(1);
  if (index == std::string_view::npos || !(rest.empty() || rest == "b" || rest == "ib")) {
    return std::nullopt;
  }
  return static_cast<int>(index + 1) * 10;
}

Status NotASize(std::string_view text, std::string_view problem) {
  return InvalidArgument(Quote(text) + " is not a size: " + std::string(problem));
}

bool TimesPlus(std::uint64_t* value, std::uint64_t factor, std::uint64_t addend) {
  return !__builtin_mul_overflow(*value, factor, value) &&
         !__builtin_add_overflow(*value, addend, value);
}

}  // namespace

Result<Bytes> ParseBytes(std::string_view text) {
  std::string_view rest = Trim(text);
  const std::string_view whole = TakeDigits(&rest);
  if (whole.empty()) return NotASize(text, "it does not start with a non-negative number");
  std::string fraction;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    fraction = TakeDigits(&rest);
    if (fraction.empty()) return NotASize(text, "no digits after the point");
  }
  const std::string_view unit = Trim(rest);
  const std::optional<int> shift = UnitShift(unit);
  if (!shift.has_value()) {
    return NotASize(text, "unknown unit " + Quote(unit) + " (known: B, KiB, MiB, GiB, TiB)");
  }

  const Status too_large = NotASize(text, "it is not below 2^64 bytes");
  std::uint64_t count = 0;
  for (const char digit : whole) {
    if (!TimesPlus(&count, 10, static_cast<std::uint64_t>(digit - '0'))) return too_large;
  }
  // Doubles the decimal digits in place: exact, where floating point would round silently.
  for (int bit = 0; bit < *shift; ++bit) {
    int carry = 0;
    for (auto digit = fraction.rbegin(); digit != fraction.rend(); ++digit) {
      const int doubled = (*digit - '0') * 2 + carry;
      *digit = static_cast<char>('0' + doubled % 10);
      carry = doubled / 10;
    }
    if (!TimesPlus(&count, 2, static_cast<std::uint64_t>(carry))) return too_large;
  }
  if (fraction.find_first_not_of('0') != std::string::npos) {
    return NotASize(text, "it is not a whole number of bytes");
  }
  return Bytes(count);
}

std::string ToString(Bytes bytes) {
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && (bytes.count() >> (10 * (unit + 1))) != 0) ++unit;
  const std::uint64_t one = std::uint64_t{1} << (10 * unit);
  std::string text = std::to_string(bytes.count() / one);
  // Cut off, not rounded: a size is never shown as more than it is.
  const std::uint64_t hundredths = (bytes.count() % one) * 100 / one;
  if (hundredths != 0) {
    text += '.';
    text += static_cast<char>('0' + hundredths / 10);
    if (hundredths % 10 != 0) text += static_cast<char>('0' + hundredths % 10);
  }
  text += ' ';
  text += kUnits[unit];
  return text;
}

std::string ToString(DeviceAddress address) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "0x%llx",
                static_cast<unsigned long long>(address.value()));
  return text.data();
}

}  // namespace keel
