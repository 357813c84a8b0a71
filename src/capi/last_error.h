// The errors of the C interface: a code for the caller, and a message kept for its thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <new>
#include <string>

#include "keel/base/deadline.h"
#include "keel/base/status.h"
#include "keel/c.h"

namespace keel::capi {

// Keeps what the status says for the calling thread, unless it is OK; its code.
keel_status Report(const Status& status) noexcept;

// How many calls of this thread failed so far.
std::uint64_t FailedCalls() noexcept;

// Of an argument `timeout_ns`: below 0 is for ever.
inline Deadline DeadlineOf(std::int64_t timeout_ns) {
  return timeout_ns < 0 ? Deadline::Never() : Deadline::After(std::chrono::nanoseconds(timeout_ns));
}

// A function of the interface: runs `body`, which returns a Status, and lets no exception out.
template <class Body>
keel_status Guard(const char* function, Body body) noexcept {
  try {
    return Report(body());
  } catch (const std::bad_alloc&) {
    return Report(ResourceExhausted(std::string(function) + ": the host has no memory left"));
  } catch (const std::exception& error) {
    return Report(Internal(std::string(function) + ": " + error.what()));
  } catch (...) {
    return Report(Internal(std::string(function) + ": something was thrown"));
  }
}

// kInvalidArgument names what is null: an object or a function.
template <class T>
Status NotNull(T* pointer, const char* name) {
  if (pointer != nullptr) return OkStatus();
  return InvalidArgument(std::string(name) + " is NULL");
}

}  // namespace keel::capi
