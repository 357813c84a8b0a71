// Tags: short names for what memory is for ("weights", "kv-cache"), so that statistics and
// histories can say who holds it. A tag is a number; its name is kept once, for ever.
//
// The calling thread has a current tag, which an allocation gets that names none:
//   ScopedTag tag("optimizer state");
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "keel/base/export.h"

namespace keel::telemetry {

// kNone has the empty name.
enum class TagId : std::uint32_t { kNone = 0, kOther = 1 };

// How many names can be told apart. Names made anew for every step would otherwise fill memory.
inline constexpr std::size_t kMaxTags = 65'536;

// The id of a name; equal names have equal ids. Once kMaxTags are known, every further name is
// kOther, "(other)". Any thread; a hash and a shared lock, so keep the id where it matters.
KEEL_EXPORT TagId InternTag(std::string_view name);

// Valid for ever. An id that InternTag never returned is "(unknown)".
KEEL_EXPORT std::string_view TagName(TagId id);

// The calling thread's. A thread starts with kNone; a new thread inherits nothing.
KEEL_EXPORT TagId CurrentTag();

// Sets the calling thread's tag until the end of the scope, then restores the one before.
class KEEL_EXPORT ScopedTag {
 public:
  explicit ScopedTag(TagId tag);
  explicit ScopedTag(std::string_view name) : ScopedTag(InternTag(name)) {}
  ~ScopedTag();
  ScopedTag(const ScopedTag&) = delete;
  ScopedTag& operator=(const ScopedTag&) = delete;

 private:
  TagId before_;
};

}  // namespace keel::telemetry
