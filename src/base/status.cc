#include "keel/base/status.h"

#include <cassert>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace keel {

std::string StatusCodeName(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "OK";
    case StatusCode::kCancelled:
      return "CANCELLED";
    case StatusCode::kUnknown:
      return "UNKNOWN";
    case StatusCode::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case StatusCode::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case StatusCode::kNotFound:
      return "NOT_FOUND";
    case StatusCode::kAlreadyExists:
      return "ALREADY_EXISTS";
    case StatusCode::kPermissionDenied:
      return "PERMISSION_DENIED";
    case StatusCode::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case StatusCode::kFailedPrecondition:
      return "FAILED_PRECONDITION";
    case StatusCode::kAborted:
      return "ABORTED";
    case StatusCode::kOutOfRange:
      return "OUT_OF_RANGE";
    case StatusCode::kUnimplemented:
      return "UNIMPLEMENTED";
    case StatusCode::kInternal:
      return "INTERNAL";
    case StatusCode::kUnavailable:
      return "UNAVAILABLE";
    case StatusCode::kDeviceLost:
      return "DEVICE_LOST";
    case StatusCode::kUnauthenticated:
      return "UNAUTHENTICATED";
  }
  return "CODE_" + std::to_string(static_cast<std::int32_t>(code));
}

Status::Status(StatusCode code, std::string message) {
  assert(code != StatusCode::kOk);
  // In a build without assertions an error that says OK must still be an error.
  if (code == StatusCode::kOk) code = StatusCode::kInternal;
  error_ = std::make_unique<Error>(Error{code, 0, {}, std::move(message)});
}

Status::Status(const Status& other)
    : error_(other.ok() ? nullptr : std::make_unique<Error>(*other.error_)) {}

Status& Status::operator=(const Status& other) {
  if (this != &other) error_ = other.ok() ? nullptr : std::make_unique<Error>(*other.error_);
  return *this;
}

std::string_view Status::message() const noexcept {
  return ok() ? std::string_view() : std::string_view(error_->message);
}

std::string_view Status::vendor_name() const noexcept {
  return ok() ? std::string_view() : std::string_view(error_->vendor_name);
}

Status Status::WithVendor(std::int64_t code, std::string_view name) && {
  if (!ok()) {
    error_->vendor_code = code;
    error_->vendor_name = name;
  }
  return std::move(*this);
}

Status Status::Annotate(std::string_view context) && {
  if (!ok()) error_->message.insert(0, std::string(context) + ": ");
  return std::move(*this);
}

std::string Status::ToString() const {
  if (ok()) return "OK";
  std::string text = StatusCodeName(error_->code) + ": " + error_->message;
  if (error_->vendor_code != 0 || !error_->vendor_name.empty()) {
    text += " [";
    if (!error_->vendor_name.empty()) text += error_->vendor_name + " ";
    text += std::to_string(error_->vendor_code) + "]";
  }
  return text;
}

Status InvalidArgument(std::string message) {
  return {StatusCode::kInvalidArgument, std::move(message)};
}
Status DeadlineExceeded(std::string message) {
  return {StatusCode::kDeadlineExceeded, std::move(message)};
}
Status NotFound(std::string message) { return {StatusCode::kNotFound, std::move(message)}; }
Status AlreadyExists(std::string message) {
  return {StatusCode::kAlreadyExists, std::move(message)};
}
Status ResourceExhausted(std::string message) {
  return {StatusCode::kResourceExhausted, std::move(message)};
}
Status FailedPrecondition(std::string message) {
  return {StatusCode::kFailedPrecondition, std::move(message)};
}
Status OutOfRange(std::string message) { return {StatusCode::kOutOfRange, std::move(message)}; }
Status Unimplemented(std::string message) {
  return {StatusCode::kUnimplemented, std::move(message)};
}
Status Internal(std::string message) { return {StatusCode::kInternal, std::move(message)}; }
Status Unavailable(std::string message) { return {StatusCode::kUnavailable, std::move(message)}; }
Status DeviceLost(std::string message) { return {StatusCode::kDeviceLost, std::move(message)}; }

namespace {

StatusCode CodeOfErrno(int error_number) {
  switch (error_number) {
    case ENOMEM:
    case ENOSPC:
    case EMFILE:
    case ENFILE:
    case EAGAIN:
      return StatusCode::kResourceExhausted;
    case ENOENT:
      return StatusCode::kNotFound;
    case EACCES:
    case EPERM:
      return StatusCode::kPermissionDenied;
    case EINVAL:
    case EBADF:
      return StatusCode::kInvalidArgument;
    default:
      return StatusCode::kInternal;
  }
}

}  // namespace

Status SystemError(std::string_view what, int error_number) {
  const char* name = strerrorname_np(error_number);
  return Status(CodeOfErrno(error_number),
                std::string(what) + ": " + std::generic_category().message(error_number))
      .WithVendor(error_number, name == nullptr ? "errno" : name);
}

}  // namespace keel
