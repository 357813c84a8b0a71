#include "keel/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace keel {
namespace {

using ::testing::HasSubstr;

std::string Captured(LogLevel level, const char* message) {
  ::testing::internal::CaptureStderr();
  Log(level, message);
  return ::testing::internal::GetCapturedStderr();
}

TEST(LogTest, WritesOnlyWhatTheLevelAllows) {
  SetLogLevel(LogLevel::kWarn);
  EXPECT_TRUE(LogEnabled(LogLevel::kError));
  EXPECT_FALSE(LogEnabled(LogLevel::kInfo));
  EXPECT_THAT(Captured(LogLevel::kWarn, "a {} message"), HasSubstr("a {} message\n"));
  EXPECT_EQ(Captured(LogLevel::kInfo, "quiet"), "");
  SetLogLevel(LogLevel::kDebug);
  EXPECT_THAT(Captured(LogLevel::kDebug, "loud"), HasSubstr("loud"));
  SetLogLevel(LogLevel::kOff);
  EXPECT_FALSE(LogEnabled(LogLevel::kError));
  EXPECT_FALSE(LogEnabled(LogLevel::kOff));
  EXPECT_EQ(Captured(LogLevel::kError, "never"), "");
  EXPECT_EQ(Captured(LogLevel::kOff, "never"), "");
  SetLogLevel(LogLevel::kWarn);
}

// The variable is read once, so each value needs a process of its own.
class LogEnvironmentTest : public ::testing::Test {
 protected:
  LogEnvironmentTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

[[noreturn]] void LogWith(const char* value) {
  setenv("KEEL_LOG", value, 1);
  Log(LogLevel::kInfo, "first-line");
  Log(LogLevel::kInfo, "second-line");
  Log(LogLevel::kError, "bad-line");
  std::_Exit(0);
}

TEST_F(LogEnvironmentTest, TheVariableChoosesTheLevel) {
  EXPECT_EXIT(LogWith("info"), ::testing::ExitedWithCode(0), "first-line(.|\n)*second-line");
  EXPECT_EXIT(LogWith("INFO"), ::testing::ExitedWithCode(0), "first-line");
  EXPECT_EXIT(LogWith("error"), ::testing::ExitedWithCode(0), "^[^\n]*bad-line\n$");
  EXPECT_EXIT(LogWith("off"), ::testing::ExitedWithCode(0), "^$");
}

TEST_F(LogEnvironmentTest, ABadValueWarnsOnceAndNamesTheGoodOnes) {
  EXPECT_EXIT(LogWith("loud"), ::testing::ExitedWithCode(0),
              "^[^\n]*KEEL_LOG: 'loud' is not a level .off, error, warn, info, debug.[^\n]*\n"
              "[^\n]*bad-line\n$");
}

// A static object's destructor runs after main; the logger must still be there.
struct LogsAtExit {
  ~LogsAtExit() { Log(LogLevel::kError, "after main"); }
};

TEST_F(LogEnvironmentTest, LogsWhileStaticObjectsAreDestroyed) {
  EXPECT_EXIT(
      {
        static const LogsAtExit late;
        Log(LogLevel::kError, "in main");
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "in main(.|\n)*after main");
}

}  // namespace
}  // namespace keel
