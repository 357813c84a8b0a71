#include "keel/base/deadline.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>

namespace keel {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(DeadlineTest, NeverDoesNotPassAndNowHas) {
  EXPECT_TRUE(Deadline::Never().never());
  EXPECT_FALSE(Deadline::Never().Passed());
  EXPECT_FALSE(Deadline::Now().never());
  EXPECT_TRUE(Deadline::Now().Passed());
}

TEST(DeadlineTest, AfterPassesInItsTime) {
  EXPECT_FALSE(Deadline::After(hours(1)).Passed());
  EXPECT_FALSE(Deadline::After(hours(1)).never());
  EXPECT_TRUE(Deadline::After(milliseconds(0)).Passed());
  EXPECT_TRUE(Deadline::After(milliseconds(-5)).Passed());
  EXPECT_TRUE(Deadline::At(Deadline::Clock::now()).Passed());
}

TEST(DeadlineTest, NoDurationOverflows) {
  EXPECT_TRUE(Deadline::After(hours::max()).never());
  EXPECT_TRUE(Deadline::After(Deadline::Clock::duration::max()).never());
  EXPECT_TRUE(Deadline::After(std::chrono::duration<double>(1e300)).never());
  EXPECT_TRUE(Deadline::After(hours::min()).Passed());
  // A type in which ten years have no value.
  using Short = std::chrono::duration<std::int32_t, std::milli>;
  EXPECT_FALSE(Deadline::After(Short(60'000)).never());
  EXPECT_FALSE(Deadline::After(Short(60'000)).Passed());
}

}  // namespace
}  // namespace keel
