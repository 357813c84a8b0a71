#include "keel/base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace keel {
namespace {

Result<int> Half(int value) {
  if (value % 2 != 0) return InvalidArgument(std::to_string(value) + " is odd");
  return value / 2;
}

Result<int> Quarter(int value) {
  KEEL_ASSIGN(const int half, Half(value));
  int quarter = 0;
  KEEL_ASSIGN(quarter, Half(half));
  return quarter;
}

Status CheckEven(int value) {
  KEEL_TRY(Half(value).status());
  return OkStatus();
}

TEST(ResultTest, HoldsAValueOrAnError) {
  const Result<int> good = Half(4);
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(*good, 2);
  EXPECT_EQ(good.value(), 2);
  EXPECT_TRUE(good.status().ok());

  const Result<int> bad = Half(3);
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().ToString(), "INVALID_ARGUMENT: 3 is odd");
}

TEST(ResultTest, MacrosPassValuesAndErrorsOn) {
  EXPECT_EQ(Quarter(8).value_or(-1), 2);
  EXPECT_EQ(Quarter(6).status().message(), "3 is odd");
  EXPECT_EQ(Quarter(5).status().message(), "5 is odd");
  EXPECT_TRUE(CheckEven(2).ok());
  EXPECT_EQ(CheckEven(1).code(), StatusCode::kInvalidArgument);
}

TEST(ResultTest, TakesMoveOnlyValues) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(**result, 5);
  const std::unique_ptr<int> value = *std::move(result);
  EXPECT_EQ(*value, 5);
}

TEST(ResultTest, ValueOrGivesTheOtherOnError) {
  EXPECT_EQ(Half(3).value_or(9), 9);
  EXPECT_EQ(Half(2).value_or(9), 1);
  EXPECT_EQ(Result<std::string>(Internal("x")).value_or("none"), "none");
}

TEST(ResultTest, ArrowReachesMembers) {
  Result<std::string> text = std::string("abc");
  EXPECT_EQ(text->size(), 3U);
  text->push_back('d');
  EXPECT_EQ(*std::as_const(text), "abcd");
}

TEST(ResultTest, MovedStatusIsTheWholeError) {
  Result<int> bad = Internal("broken").WithVendor(4, "V");
  const Status status = std::move(bad).status();
  EXPECT_EQ(status.ToString(), "INTERNAL: broken [V 4]");
}

}  // namespace
}  // namespace keel
