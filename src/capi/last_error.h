// The errors of the C interface: a code for the caller, and a message kept for its thread.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "keel/base/status.h"
#include "keel/c.h"

namespace keel::capi {

// Keeps what the status says for the calling thread, unless it is OK; its code.
keel_status Report(const Status& status) noexcept;

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
