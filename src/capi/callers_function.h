// Functions that callers give to the C interface, and their data.
#pragma once

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <string>

#include "capi/last_error.h"
#include "keel/base/result.h"
#include "keel/c.h"

namespace keel::capi {

// Their data, with its end.
struct Data {
  Data(void* its_data, keel_destroy_function its_destroy) : data(its_data), destroy(its_destroy) {}
  ~Data() {
    if (destroy != nullptr) destroy(data);
  }
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;
  void* const data;
  keel_destroy_function destroy;
};

// `body` takes the data over and returns a Status. If it fails, the data stays the caller's.
template <class Body>
Status WithData(void* data, keel_destroy_function destroy, Body body) {
  auto owned = std::make_shared<Data>(data, nullptr);
  KEEL_TRY(body(owned));
  owned->destroy = destroy;
  return OkStatus();
}

// What the function returned, with the message of its own newest call that failed, if that failed
// so. What it throws is kInternal.
template <class Function>
Status CallCallers(Function function) {
  const std::uint64_t failed = FailedCalls();
  keel_status status = KEEL_STATUS_UNKNOWN;
  try {
    status = function();
  } catch (const std::exception& error) {
    return Internal(std::string("it threw: ") + error.what());
  } catch (...) {
    // What ends a thread is no exception of C++: it has no type.
    if (abi::__cxa_current_exception_type() == nullptr) throw;
    return Internal("it threw something");
  }
  if (status == KEEL_STATUS_OK) return OkStatus();
  const bool known = status > 0 && status <= KEEL_STATUS_UNAUTHENTICATED;
  const auto code = known ? static_cast<StatusCode>(status) : StatusCode::kUnknown;
  const bool told = FailedCalls() != failed && keel_last_error_status() == status;
  return Status(code, told ? std::string(keel_last_error_message())
                           : fmt::format("it returned {}",
                                         known ? StatusCodeName(code) : fmt::format("{}", status)));
}

}  // namespace keel::capi
