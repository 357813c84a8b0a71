// Structs that begin with their own size, so that they can grow: the caller's may be older than the
// library's, and shorter, or newer, and longer.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "capi/last_error.h"
#include "keel/base/result.h"

namespace keel::capi {

// OK if there is at least one field after the size.
template <class Struct>
Status CheckSize(const Struct* given, const char* name) {
  KEEL_TRY(NotNull(given, name));
  if (given->struct_size > sizeof(std::size_t)) return OkStatus();
  return InvalidArgument(fmt::format("{}->struct_size is {}; set it to sizeof(*{}), {} here", name,
                                     given->struct_size, name, sizeof(Struct)));
}

// Writes what there is room for, and zeros behind what this library knows. Checked before.
template <class Struct>
void Give(const Struct& from, Struct* to) {
  const std::size_t size = to->struct_size;
  const std::size_t known = std::min(size, sizeof(Struct));
  auto* const bytes = reinterpret_cast<std::byte*>(to);
  std::memcpy(bytes + sizeof size, reinterpret_cast<const std::byte*>(&from) + sizeof size,
              known - sizeof size);
  if (size > known) std::memset(bytes + known, 0, size - known);
}

// Reads what is there over `to`, which has the defaults. What this library does not know must be
// zero: it would ask for something that is not there.
template <class Struct>
Status Read(const Struct* from, const char* name, Struct& to) {
  KEEL_TRY(CheckSize(from, name));
  const auto* const bytes = reinterpret_cast<const std::byte*>(from);
  const std::size_t known = std::min(from->struct_size, sizeof(Struct));
  if (std::any_of(bytes + known, bytes + from->struct_size,
                  [](std::byte each) { return each != std::byte{0}; })) {
    return Unimplemented(fmt::format(
        "{} has fields that this version of Keel does not know and that are not zero", name));
  }
  std::memcpy(&to, from, known);
  return OkStatus();
}

// Text in a fixed place, cut if need be, with a zero at its end.
template <std::size_t size>
void Put(std::string_view text, char (&to)[size]) {
  to[text.copy(to, size - 1)] = '\0';
}

}  // namespace keel::capi
