// Ranges reach a profiler that is attached. Each case is a process of its own: a profiler is
// attached once.

#include "drivers/cuda/nvtx.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/ranges.h"
#include "keel/base/log.h"
#include "keel/hal/driver.h"

namespace keel::cuda {
namespace {

constexpr const char* kProfiler = KEEL_TEST_STANDINS "/nvtx_standin.so";

class ProfilerDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// Opens the driver with the profiler announced, makes ranges, and prints what it wrote down.
[[noreturn]] void RunWith(const char* profiler, const char* mood) {
  setenv("KEEL_CUDA_LIBRARY", KEEL_TEST_STANDINS "/cuda_standin.so", 1);
  setenv("KEEL_STANDIN", "", 1);
  setenv("KEEL_NVTX_STANDIN", mood, 1);
  SetLogLevel(LogLevel::kInfo);
  const auto driver = hal::Registry::Global().Find("cuda");
  if (!driver.ok()) std::exit(2);
  setenv("NVTX_INJECTION64_PATH", profiler, 1);
  {
    const ScopedRange before("before");
  }
  if (!(*driver)->Enumerate().ok()) std::exit(3);
  {
    const ScopedRange outer("trim");
    const ScopedRange inner("give memory back");
  }
  void* const library = dlopen(profiler, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) std::exit(0);
  const auto recorded = reinterpret_cast<const char* (*)()>(dlsym(library, "KeelRecordedRanges"));
  std::fprintf(stderr, "recorded[%s]\n", recorded == nullptr ? "nothing" : recorded());
  std::exit(0);
}

TEST_F(ProfilerDeathTest, RangesReachIt) {
  EXPECT_EXIT(RunWith(kProfiler, ""), ::testing::ExitedWithCode(0),
              "recorded.domain keel\npush trim\npush give memory back\npop\npop\n.");
}

TEST_F(ProfilerDeathTest, OneThatTakesNoRangesGetsNone) {
  EXPECT_EXIT(RunWith(kProfiler, "silent"), ::testing::ExitedWithCode(0),
              "no ranges: .*takes no ranges in domains.*\nrecorded..\n");
}

TEST_F(ProfilerDeathTest, OneThatDoesNotStartIsLeftAlone) {
  EXPECT_EXIT(RunWith(kProfiler, "refuse"), ::testing::ExitedWithCode(0),
              "no ranges: .*did not start.*\nrecorded..\n");
}

TEST_F(ProfilerDeathTest, AFileThatIsNoneIsNamed) {
  EXPECT_EXIT(RunWith("/nowhere/profiler.so", ""), ::testing::ExitedWithCode(0),
              "no ranges: NVTX_INJECTION64_PATH says '/nowhere/profiler.so': .*No such file");
  EXPECT_EXIT(RunWith(KEEL_TEST_STANDINS "/cuda_standin_incomplete.so", ""),
              ::testing::ExitedWithCode(0), "no ranges: .*it is not a profiler's");
}

}  // namespace
}  // namespace keel::cuda
