// How the CUDA driver finds its library, and what it says when there is none that works. Each case
// is a process of its own: a library is loaded and initialised once.

#include "drivers/cuda/cuda_driver.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "keel/hal/driver.h"

namespace keel::cuda {
namespace {

constexpr const char* kStandin = KEEL_TEST_STANDINS "/cuda_standin.so";

class CudaLibraryDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// Ends the process: 0 if the driver cannot be used and the default is the simulated device, with
// what the driver says on stderr.
[[noreturn]] void ExpectNoDriver(const char* library, const char* standin) {
  setenv("KEEL_CUDA_LIBRARY", library, 1);
  setenv("KEEL_STANDIN", standin, 1);
  unsetenv("KEEL_DRIVER");
  hal::Registry& registry = hal::Registry::Global();
  const auto driver = registry.Find("cuda");
  if (!driver.ok()) std::exit(2);
  const auto devices = (*driver)->Enumerate();
  std::fprintf(stderr, "%s\n",
               devices.ok() ? std::to_string(devices->size()).append(" devices").c_str()
                            : devices.status().ToString().c_str());
  if (devices.ok() && !devices->empty()) std::exit(3);
  const auto opened = (*driver)->Open(0);
  std::fprintf(stderr, "%s\n", opened.status().ToString().c_str());
  if (opened.ok()) std::exit(4);
  const auto chosen = registry.Default();
  if (!chosen.ok() || (*chosen)->name() != "sim") std::exit(5);
  std::exit(0);
}

TEST_F(CudaLibraryDeathTest, AFileThatIsNotThereNamesTheVariable) {
  EXPECT_EXIT(ExpectNoDriver("/nowhere/libcuda.so.1", ""), ::testing::ExitedWithCode(0),
              "UNAVAILABLE: no CUDA driver: KEEL_CUDA_LIBRARY says '/nowhere/libcuda.so.1': "
              ".*No such file");
}

TEST_F(CudaLibraryDeathTest, AMissingEntryPointIsNamed) {
  EXPECT_EXIT(ExpectNoDriver(KEEL_TEST_STANDINS "/cuda_standin_incomplete.so", ""),
              ::testing::ExitedWithCode(0),
              "UNAVAILABLE: .*cuda_standin_incomplete.so is too old: it has no cuEventRecord\n");
}

TEST_F(CudaLibraryDeathTest, AFailureToInitialiseHasTheVendorsWords) {
  EXPECT_EXIT(ExpectNoDriver(kStandin, "init:100"), ::testing::ExitedWithCode(0),
              "UNAVAILABLE: initialising the driver: .*\\[CUDA_ERROR_NO_DEVICE 100\\]");
  EXPECT_EXIT(ExpectNoDriver(kStandin, "init:802"), ::testing::ExitedWithCode(0),
              "UNAVAILABLE: initialising the driver: .*\\[CUDA_ERROR_SYSTEM_NOT_READY 802\\]");
  // A code that nobody has a name for.
  EXPECT_EXIT(ExpectNoDriver(kStandin, "init:12345"), ::testing::ExitedWithCode(0),
              "UNAVAILABLE: initialising the driver: .*12345");
}

TEST_F(CudaLibraryDeathTest, ADriverWithoutDevicesSaysSo) {
  EXPECT_EXIT(ExpectNoDriver(kStandin, "devices:0"), ::testing::ExitedWithCode(0),
              "0 devices\nNOT_FOUND: the cuda driver has no devices");
}

TEST_F(CudaLibraryDeathTest, OneThatWorksIsTheDefault) {
  EXPECT_EXIT(
      {
        setenv("KEEL_CUDA_LIBRARY", kStandin, 1);
        setenv("KEEL_STANDIN", "devices:3,memory:1GiB", 1);
        unsetenv("KEEL_DRIVER");
        const auto chosen = hal::Registry::Global().Default();
        const auto devices = (*chosen)->Enumerate();
        const bool right = chosen.ok() && (*chosen)->name() == "cuda" && devices.ok() &&
                           devices->size() == 3 && devices->back().ordinal == 2 &&
                           devices->back().memory == 1_GiB &&
                           devices->back().architecture == "sm_90" && !devices->back().simulated;
        std::exit(right ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace keel::cuda
