#include "capi/last_error.h"

#include <cstdint>
#include <memory>
#include <utility>

namespace keel::capi {
namespace {

// A pointer, and not the text itself: the thread-local memory of the library is small, and static
// objects may call after the thread's own are gone.
struct ThreadErrors {
  Status newest;
  std::string message;
  std::string vendor_name;
  std::string status_name;
};
thread_local ThreadErrors* errors = nullptr;
thread_local bool has_ended = false;
thread_local std::uint64_t failed_calls = 0;

struct Ending {
  ~Ending() {
    has_ended = true;
    errors = nullptr;
  }
  std::unique_ptr<ThreadErrors> owned;
};
thread_local Ending ending;

// Null: the thread is ending.
ThreadErrors* Errors() {
  if (errors == nullptr && !has_ended) {
    ending.owned = std::make_unique<ThreadErrors>();
    errors = ending.owned.get();
  }
  return errors;
}

}  // namespace

keel_status Report(const Status& status) noexcept {
  if (status.ok()) return KEEL_STATUS_OK;
  ++failed_calls;
  try {
    if (ThreadErrors* const mine = Errors(); mine != nullptr) {
      mine->newest = status;
      mine->message = status.message();
      mine->vendor_name = status.vendor_name();
    }
  } catch (const std::bad_alloc&) {
    // The code is all that there is room for; an older message must not pass for this one's.
    if (errors != nullptr) {
      errors->message.clear();
      errors->vendor_name.clear();
    }
  }
  return static_cast<keel_status>(status.code());
}

std::uint64_t FailedCalls() noexcept { return failed_calls; }

}  // namespace keel::capi

using keel::capi::errors;

extern "C" {

int32_t keel_c_level(void) { return KEEL_C_LEVEL; }
int32_t keel_version(void) { return KEEL_VERSION; }
const char* keel_version_string(void) { return KEEL_VERSION_STRING; }

const char* keel_status_name(keel_status status) {
  try {
    keel::capi::ThreadErrors* const mine = keel::capi::Errors();
    if (mine == nullptr) return "";
    mine->status_name = keel::StatusCodeName(static_cast<keel::StatusCode>(status));
    return mine->status_name.c_str();
  } catch (const std::bad_alloc&) {
    return "";
  }
}

const char* keel_last_error_message(void) {
  return errors == nullptr ? "" : errors->message.c_str();
}
keel_status keel_last_error_status(void) {
  return errors == nullptr ? KEEL_STATUS_OK : static_cast<keel_status>(errors->newest.code());
}
int64_t keel_last_error_vendor_code(void) {
  return errors == nullptr ? 0 : errors->newest.vendor_code();
}
const char* keel_last_error_vendor_name(void) {
  return errors == nullptr ? "" : errors->vendor_name.c_str();
}

}  // extern "C"
