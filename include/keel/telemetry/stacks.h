// Stacks: where in the program something happened, kept once per distinct place.
//
// Capturing walks the calling thread's stack (microseconds) and keeps addresses only; names are
// looked up when somebody reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "keel/base/export.h"

namespace keel::telemetry {

enum class StackId : std::uint32_t { kNone = 0 };

// Deeper stacks lose their outermost frames.
inline constexpr std::size_t kMaxFrames = 64;
// Distinct stacks beyond this many are kNone, so that a program with ever new ones (a recursive
// walk, generated code) does not fill memory.
inline constexpr std::size_t kMaxStacks = 262'144;

struct Frame {
  std::uint64_t address = 0;  // in the program
  std::string function;       // empty when the object has no such symbol: link with -rdynamic
  std::string object;         // the file of the program or library
  std::uint64_t offset = 0;   // in that file; `addr2line -Cfe object offset` gives the line
};

// The caller's stack, innermost first, without this function and `skip` more. Equal stacks have
// equal ids. Any thread.
KEEL_EXPORT StackId CaptureStack(std::size_t skip = 0);

// Empty for kNone, for foreign stacks and for what was never captured. Looks symbols up: slow.
KEEL_EXPORT std::vector<Frame> ReadStack(StackId id);

// A stack that the embedding program keeps itself (an interpreter's), under a number of its own;
// of that the lower 31 bits count.
constexpr StackId ForeignStack(std::uint32_t number) { return StackId{number | (1U << 31)}; }
constexpr bool IsForeign(StackId id) { return static_cast<std::uint32_t>(id) >> 31 != 0; }
constexpr std::uint32_t ForeignNumber(StackId id) {
  return static_cast<std::uint32_t>(id) & ~(1U << 31);
}

// What the calling thread's events have as their stack until the end of the scope, instead of one
// that is captured for each. For those who know better where the program is than a walk over
// addresses can tell, and who must ask before an allocator's locks are taken.
class KEEL_EXPORT ScopedStack {
 public:
  explicit ScopedStack(StackId stack);
  ~ScopedStack();
  ScopedStack(const ScopedStack&) = delete;
  ScopedStack& operator=(const ScopedStack&) = delete;

 private:
  StackId before_;
};

// The calling thread's; kNone outside of every ScopedStack.
KEEL_EXPORT StackId CurrentStack();

}  // namespace keel::telemetry
