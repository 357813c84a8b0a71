// How often primitives that a steady program repeats call the library: each call has its price, and
// one too many is not seen by any other test.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <vector>

#include "drivers/cuda/cuda_driver.h"
#include "keel/hal/graph.h"
#include "keel/hal/memory.h"
#include "keel/hal/module.h"
#include "keel/hal/standard_kernels.h"
#include "keel/hal/stream.h"

namespace keel::cuda {
namespace {

class CudaCallsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    constexpr const char* kStandin = KEEL_TEST_STANDINS "/cuda_standin.so";
    setenv("KEEL_CUDA_LIBRARY", kStandin, 1);
    setenv("KEEL_STANDIN", "devices:2,memory:1GiB", 1);
    library_ = dlopen(kStandin, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    Find(&calls_, "keel_standin_calls");
    driver_ = CreateDriver();
    auto opened = driver_->Open(0);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    device_ = *std::move(opened);
    // The thread has the context current, as in a program that uses the device itself.
    int (*retain)(void**, int) = nullptr;
    Find(&retain, "cuDevicePrimaryCtxRetain");
    Find(&set_current_, "cuCtxSetCurrent");
    void* context = nullptr;
    ASSERT_EQ(retain(&context, 0), 0);
    ASSERT_EQ(set_current_(context), 0);
  }
  void TearDown() override {
    device_.reset();
    if (set_current_ == nullptr) return;
    EXPECT_EQ(set_current_(nullptr), 0);
    int (*release)(int) = nullptr;
    Find(&release, "cuDevicePrimaryCtxRelease_v2");
    EXPECT_EQ(release(0), 0);
  }

  template <class Function>
  void Find(Function** function, const char* name) {
    *function = reinterpret_cast<Function*>(dlsym(library_, name));
    ASSERT_NE(*function, nullptr) << name;
  }

  template <class Primitive>
  unsigned long CallsOf(Primitive primitive) {
    const unsigned long before = calls_();
    const Status status = primitive();
    EXPECT_TRUE(status.ok()) << status.ToString();
    return calls_() - before;
  }

  void* library_ = nullptr;
  unsigned long (*calls_)() = nullptr;
  int (*set_current_)(void*) = nullptr;
  std::unique_ptr<hal::Driver> driver_;
  std::shared_ptr<hal::Device> device_;
};

constexpr auto kSoon = std::chrono::seconds(60);

TEST_F(CudaCallsTest, AHostCallThatCameBeforeIsOneCall) {
  const auto stream = hal::Stream::Create(device_);
  ASSERT_TRUE(stream.ok()) << stream.status().ToString();
  const auto call = [&] {
    return device_->CallHost(stream->get(), {.function = [](void*) {}, .data = nullptr});
  };
  CallsOf(call);
  CallsOf(call);
  EXPECT_EQ(CallsOf(call), 1u);
  EXPECT_TRUE(stream->Synchronize(Deadline::After(kSoon)).ok());
}

TEST_F(CudaCallsTest, ACopyOfPinnedMemoryAsksNothing) {
  const auto stream = hal::Stream::Create(device_);
  const auto memory = hal::PlainMemory::Create(device_, 4_KiB);
  const auto pinned = hal::HostMemory::Create(device_, 4_KiB);
  ASSERT_TRUE(stream.ok() && memory.ok() && pinned.ok());
  std::vector<std::byte> pageable(4096);
  const auto copy = [&](void* host) {
    return CallsOf([&] {
      return device_->EnqueueCopy(
          stream->get(), {.destination = hal::Location::On(device_->id(), memory->address()),
                          .source = hal::Location::Host(host),
                          .size = 4_KiB});
    });
  };
  // What is current, and the copy; of memory that may be pageable, whether the stream captures.
  EXPECT_EQ(copy(pinned->data()), 2u);
  EXPECT_EQ(copy(pageable.data()), 3u);
  ASSERT_TRUE(stream->Synchronize(Deadline::After(kSoon)).ok());
  ASSERT_TRUE(device_->RegisterHost(pageable.data(), 4_KiB).ok());
  EXPECT_EQ(copy(pageable.data()), 2u);
  ASSERT_TRUE(stream->Synchronize(Deadline::After(kSoon)).ok());
  ASSERT_TRUE(device_->UnregisterHost(pageable.data()).ok());
  EXPECT_EQ(copy(pageable.data()), 3u);
  ASSERT_TRUE(stream->Synchronize(Deadline::After(kSoon)).ok());
}

TEST_F(CudaCallsTest, NewParametersOfAKernelAreThreeCalls) {
  const auto memory = hal::PlainMemory::Create(device_, 4_KiB);
  const auto module = hal::Module::LoadStandard(device_);
  ASSERT_TRUE(memory.ok() && module.ok());
  const auto kernel = module->Find(hal::kernels::kFill);
  const auto graph = hal::Graph::Create(device_);
  ASSERT_TRUE(kernel.ok() && graph.ok());
  const std::array args = {hal::KernelArg::Out(memory->address(), 4_B),
                           hal::KernelArg::Value(std::uint32_t{1}),
                           hal::KernelArg::Value(std::uint64_t{1})};
  const hal::KernelLaunch launch{.kernel = *kernel, .dims = {}, .args = args};
  const auto node = device_->AddNode(graph->get(), {}, launch);
  ASSERT_TRUE(node.ok()) << node.status().ToString();
  const auto exec = hal::GraphExec::Create(*graph);
  ASSERT_TRUE(exec.ok()) << exec.status().ToString();
  // Which kernel it has, what is current, and the new parameters.
  EXPECT_EQ(CallsOf([&] { return device_->SetNodeParams(exec->get(), *node, launch); }), 3u);
}

TEST_F(CudaCallsTest, SynchronizeAsksAStreamThatIsGoneOnce) {
  const auto wait = [&] { return device_->Synchronize(Deadline::After(kSoon)); };
  const unsigned long without = CallsOf(wait);
  auto stream = hal::Stream::Create(device_);
  ASSERT_TRUE(stream.ok()) << stream.status().ToString();
  EXPECT_EQ(CallsOf(wait), without + 2) << "whether it captures, and whether it is done";
  stream = FailedPrecondition("gone");
  EXPECT_EQ(CallsOf(wait), without + 1);
  EXPECT_EQ(CallsOf(wait), without);
  // The next stream is that one, and is asked again.
  stream = hal::Stream::Create(device_);
  ASSERT_TRUE(stream.ok()) << stream.status().ToString();
  EXPECT_EQ(CallsOf(wait), without + 2);
}

}  // namespace
}  // namespace keel::cuda
