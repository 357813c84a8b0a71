// Status: the outcome of an operation that can fail.
//
// A Status is either OK or an error with a code, a message for people and, where a device
// vendor's library reported the failure, the vendor's own code. OK costs one null pointer: no
// allocation, no reference count. Nothing in Keel throws across an interface; what can fail
// returns Status or Result<T> (result.h).
//
// Thread-safety: as for a value type; copies are independent.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "keel/base/export.h"

namespace keel {

// The numeric values are TensorFlow's (and gRPC's), so that a plugin hands them through as they
// are. They never change.
enum class StatusCode : std::int32_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,     // the call is wrong, whatever the state: fix the caller
  kDeadlineExceeded = 4,    // a bounded wait ended; the work may still complete
  kNotFound = 5,            // a name or a file that is not there
  kAlreadyExists = 6,       //
  kPermissionDenied = 7,    //
  kResourceExhausted = 8,   // out of memory, addresses, mappings, threads
  kFailedPrecondition = 9,  // right call, wrong state: a capture is open, a mapping is still there
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,  // this device or build cannot do it, and says so
  kInternal = 13,       // a bug in Keel or in the vendor's library
  kUnavailable = 14,    // not now: no driver, no device, a peer that is gone
  kDeviceLost = 15,     // TensorFlow's DATA_LOSS: the device faulted, what it held is gone
  kUnauthenticated = 16,
};

// "INVALID_ARGUMENT" and so on; "CODE_42" for a value outside the list.
KEEL_EXPORT std::string StatusCodeName(StatusCode code);

class [[nodiscard]] KEEL_EXPORT Status {
 public:
  // OK.
  Status() noexcept = default;
  // An error. `code` must not be kOk: that would be a message nobody sees (asserted).
  Status(StatusCode code, std::string message);

  Status(const Status& other);
  Status& operator=(const Status& other);
  Status(Status&& other) noexcept = default;
  Status& operator=(Status&& other) noexcept = default;
  ~Status() = default;

  bool ok() const noexcept { return error_ == nullptr; }
  StatusCode code() const noexcept { return ok() ? StatusCode::kOk : error_->code; }
  // Empty when OK.
  std::string_view message() const noexcept;

  // The vendor's numeric code and its name ("CUDA_ERROR_OUT_OF_MEMORY"); 0 and "" if none.  // vendor-ok: an example
  std::int64_t vendor_code() const noexcept { return ok() ? 0 : error_->vendor_code; }
  std::string_view vendor_name() const noexcept;

  // The same error with the vendor's code attached. No effect on OK.
  Status WithVendor(std::int64_t code, std::string_view name) &&;
  // The same error with "context: " before its message. No effect on OK.
  Status Annotate(std::string_view context) &&;

  // "OK", or "RESOURCE_EXHAUSTED: message [VENDOR_NAME 2]".
  std::string ToString() const;

 private:
  struct Error {
    StatusCode code;
    std::int64_t vendor_code = 0;
    std::string vendor_name;
    std::string message;
  };
  std::unique_ptr<Error> error_;  // null: OK
};

inline Status OkStatus() noexcept { return Status(); }

KEEL_EXPORT Status InvalidArgument(std::string message);
KEEL_EXPORT Status DeadlineExceeded(std::string message);
KEEL_EXPORT Status NotFound(std::string message);
KEEL_EXPORT Status AlreadyExists(std::string message);
KEEL_EXPORT Status ResourceExhausted(std::string message);
KEEL_EXPORT Status FailedPrecondition(std::string message);
KEEL_EXPORT Status OutOfRange(std::string message);
KEEL_EXPORT Status Unimplemented(std::string message);
KEEL_EXPORT Status Internal(std::string message);
KEEL_EXPORT Status Unavailable(std::string message);
KEEL_EXPORT Status DeviceLost(std::string message);

// An error for a failed system call: "what: strerror(error_number)", with errno as the vendor's
// code. ENOMEM, ENOSPC, EMFILE, ENFILE and EAGAIN are kResourceExhausted, ENOENT is kNotFound,
// EACCES and EPERM kPermissionDenied, EINVAL and EBADF kInvalidArgument, the rest kInternal.
KEEL_EXPORT Status SystemError(std::string_view what, int error_number);

}  // namespace keel
