// Assertions over Status and Result.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>

#include "keel/base/result.h"
#include "keel/base/status.h"

namespace keel::hal::conformance {

inline Status StatusOf(Status status) { return status; }
template <class T>
Status StatusOf(const Result<T>& result) {
  return result.status();
}

template <class T>
testing::AssertionResult IsOk(const T& outcome) {
  const Status status = StatusOf(outcome);
  if (status.ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << status.ToString();
}

// An error of one of these codes. An error without a message is a failure too: no primitive may
// refuse without saying why.
template <class T>
testing::AssertionResult HasCode(std::initializer_list<StatusCode> codes, const T& outcome) {
  const Status status = StatusOf(outcome);
  std::string wanted;
  for (const StatusCode code : codes) {
    if (status.code() == code && !status.ok()) {
      if (!status.message().empty()) return testing::AssertionSuccess();
      return testing::AssertionFailure() << StatusCodeName(code) << " without a message";
    }
    wanted += (wanted.empty() ? "" : " or ") + StatusCodeName(code);
  }
  return testing::AssertionFailure() << "got " << status.ToString() << ", want " << wanted;
}

}  // namespace keel::hal::conformance

#define EXPECT_OK(...) EXPECT_TRUE(::keel::hal::conformance::IsOk(__VA_ARGS__))
#define ASSERT_OK(...) ASSERT_TRUE(::keel::hal::conformance::IsOk(__VA_ARGS__))
// EXPECT_CODE(kInvalidArgument, device.AllocatePlain(Bytes(0)));
#define EXPECT_CODE(code, ...) \
  EXPECT_TRUE(::keel::hal::conformance::HasCode({::keel::StatusCode::code}, __VA_ARGS__))
#define ASSERT_CODE(code, ...) \
  ASSERT_TRUE(::keel::hal::conformance::HasCode({::keel::StatusCode::code}, __VA_ARGS__))
// ASSERT_VALUE(const Stream stream, context.NewStream());
#define ASSERT_VALUE(declaration, ...) \
  ASSERT_VALUE_INNER_(KEEL_CONCAT_(value_result_, __LINE__), declaration, __VA_ARGS__)
#define ASSERT_VALUE_INNER_(result, declaration, ...)  \
  auto result = (__VA_ARGS__);                         \
  ASSERT_TRUE(::keel::hal::conformance::IsOk(result)); \
  declaration = *std::move(result) /* NOLINT: a declaration */
