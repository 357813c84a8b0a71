// For tests: events in one line.
#pragma once

#include <cstdint>

#include "keel/trace/snapshot.h"

namespace keel::trace {

inline Event At(Action action, std::uint64_t address, std::uint64_t size, std::int64_t time_us = 0,
                std::uint64_t stream = 0) {
  return {.address = address, .size = size, .stream = stream, .time_us = time_us, .action = action};
}

}  // namespace keel::trace
