#include "keel/base/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <utility>

namespace keel {
namespace {

TEST(StatusTest, OkHasNothing) {
  const Status ok;
  EXPECT_TRUE(ok.ok());
  EXPECT_EQ(ok.code(), StatusCode::kOk);
  EXPECT_EQ(ok.message(), "");
  EXPECT_EQ(ok.vendor_code(), 0);
  EXPECT_EQ(ok.vendor_name(), "");
  EXPECT_EQ(ok.ToString(), "OK");
  static_assert(sizeof(Status) == sizeof(void*));
}

TEST(StatusTest, ToStringNamesCodeMessageAndVendor) {
  EXPECT_EQ(ResourceExhausted("no room").ToString(), "RESOURCE_EXHAUSTED: no room");
  EXPECT_EQ(ResourceExhausted("no room").WithVendor(2, "VENDOR_NO_ROOM").ToString(),
            "RESOURCE_EXHAUSTED: no room [VENDOR_NO_ROOM 2]");
  EXPECT_EQ(Internal("odd").WithVendor(7, "").ToString(), "INTERNAL: odd [7]");
}

TEST(StatusTest, CopiesAreIndependent) {
  Status original = NotFound("a");
  const Status copy = original;
  original = Internal("b");
  EXPECT_EQ(copy.ToString(), "NOT_FOUND: a");
  Status assigned;
  assigned = copy;
  EXPECT_EQ(assigned.ToString(), "NOT_FOUND: a");
  const Status& self = assigned;
  assigned = self;
  EXPECT_EQ(assigned.ToString(), "NOT_FOUND: a");
  assigned = OkStatus();
  EXPECT_TRUE(assigned.ok());
}

TEST(StatusTest, AnnotatePutsContextBeforeTheMessageAndKeepsTheRest) {
  const Status status =
      Unavailable("no library").WithVendor(3, "GONE").Annotate("driver").Annotate("open");
  EXPECT_EQ(status.ToString(), "UNAVAILABLE: open: driver: no library [GONE 3]");
}

TEST(StatusTest, AnnotateAndVendorLeaveOkAlone) {
  EXPECT_TRUE(OkStatus().Annotate("context").ok());
  EXPECT_TRUE(OkStatus().WithVendor(3, "X").ok());
}

TEST(StatusTest, CodesHaveTheirFixedNumbersAndNames) {
  const std::pair<int, const char*> expected[] = {
      {0, "OK"},
      {1, "CANCELLED"},
      {2, "UNKNOWN"},
      {3, "INVALID_ARGUMENT"},
      {4, "DEADLINE_EXCEEDED"},
      {5, "NOT_FOUND"},
      {6, "ALREADY_EXISTS"},
      {7, "PERMISSION_DENIED"},
      {8, "RESOURCE_EXHAUSTED"},
      {9, "FAILED_PRECONDITION"},
      {10, "ABORTED"},
      {11, "OUT_OF_RANGE"},
      {12, "UNIMPLEMENTED"},
      {13, "INTERNAL"},
      {14, "UNAVAILABLE"},
      {15, "DEVICE_LOST"},
      {16, "UNAUTHENTICATED"},
      {42, "CODE_42"},
  };
  for (const auto& [value, name] : expected) {
    EXPECT_EQ(StatusCodeName(static_cast<StatusCode>(value)), name);
  }
}

TEST(StatusTest, MakersMakeTheirCode) {
  EXPECT_EQ(InvalidArgument("").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(DeadlineExceeded("").code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(NotFound("").code(), StatusCode::kNotFound);
  EXPECT_EQ(AlreadyExists("").code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(ResourceExhausted("").code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(FailedPrecondition("").code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(OutOfRange("").code(), StatusCode::kOutOfRange);
  EXPECT_EQ(Unimplemented("").code(), StatusCode::kUnimplemented);
  EXPECT_EQ(Internal("").code(), StatusCode::kInternal);
  EXPECT_EQ(Unavailable("").code(), StatusCode::kUnavailable);
  EXPECT_EQ(DeviceLost("").code(), StatusCode::kDeviceLost);
}

TEST(StatusTest, SystemErrorsCarryErrno) {
  const Status status = SystemError("open(/nowhere)", ENOENT);
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(status.vendor_code(), ENOENT);
  EXPECT_EQ(status.vendor_name(), "ENOENT");
  EXPECT_EQ(status.message(), "open(/nowhere): No such file or directory");

  for (const int number : {ENOMEM, ENOSPC, EMFILE, ENFILE, EAGAIN}) {
    EXPECT_EQ(SystemError("x", number).code(), StatusCode::kResourceExhausted) << number;
  }
  EXPECT_EQ(SystemError("x", EACCES).code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(SystemError("x", EPERM).code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(SystemError("x", EINVAL).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(SystemError("x", EBADF).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(SystemError("x", EIO).code(), StatusCode::kInternal);
  EXPECT_EQ(SystemError("x", 123456).vendor_name(), "errno");
}

}  // namespace
}  // namespace keel
