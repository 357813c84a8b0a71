// Every entry point of the library may fail, and nothing leaks: the scenario that uses every
// primitive runs on the stand-in once for each call of an entry point, with that call failing.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/cuda/abi.h"
#include "drivers/cuda/cuda_driver.h"
#include "hal/fault_scenario_test.h"
#include "keel/base/log.h"
#include "keel/hal/graph.h"
#include "keel/hal/memory.h"
#include "keel/hal/module.h"
#include "keel/hal/standard_kernels.h"
#include "keel/hal/stream.h"

namespace keel::cuda {
namespace {

constexpr const char* kStandin = KEEL_TEST_STANDINS "/cuda_standin.so";
constexpr int kInjected = abi::kOutOfMemory;

// Calls around a primitive's own, whose failure the primitive does not tell: it goes on with what
// the thread has, and then works or meets the consequence. An attribute that cannot be read is one
// that the device does not have.
bool MayBeSwallowed(std::string_view entry) {
  return entry == "cuCtxGetCurrent" || entry == "cuCtxSetCurrent" ||
         entry == "cuThreadExchangeStreamCaptureMode" || entry == "cuPointerGetAttribute" ||
         entry == "cuDeviceGetAttribute";
}

// Calls of destructors and of looks aside, which the retry list may have repeated already.
bool GivesBack(std::string_view entry) {
  for (const std::string_view part : {"Free", "Destroy", "Release", "Unmap", "Unregister", "Unload",
                                      "Disable", "EndCapture", "GetCaptureInfo", "Query"}) {
    if (entry.find(part) != std::string_view::npos) return true;
  }
  return false;
}

// Copies, fills and nodes of every kind: each has an entry point of its own.
Status UseEveryKind(const std::shared_ptr<hal::Device>& shared) {
  constexpr Bytes kHalf = 2_KiB;
  hal::Device& device = *shared;
  const auto deadline = Deadline::After(std::chrono::seconds(60));
  KEEL_ASSIGN(const hal::PlainMemory memory, hal::PlainMemory::Create(shared, kHalf * 2));
  KEEL_ASSIGN(const hal::HostMemory host, hal::HostMemory::Create(shared, kHalf * 2));
  KEEL_ASSIGN(const hal::Module module, hal::Module::LoadStandard(shared));
  KEEL_ASSIGN(const hal::KernelHandle kernel, module.Find(hal::kernels::kFill));
  KEEL_ASSIGN(const hal::Stream stream, hal::Stream::Create(shared));
  const auto wait = [&] { return stream.Synchronize(deadline); };

  const hal::Location first = hal::Location::On(device.id(), memory.address());
  const hal::Location second = hal::Location::On(device.id(), memory.address() + kHalf);
  const hal::Location here = hal::Location::Host(host.data());
  const hal::Location there = hal::Location::Host(static_cast<std::byte*>(host.data()) + 2048);
  for (const hal::Copy& copy : {hal::Copy{first, second, kHalf}, hal::Copy{first, here, kHalf},
                                hal::Copy{here, first, kHalf}, hal::Copy{here, there, kHalf}}) {
    const Status status = device.EnqueueCopy(stream.get(), copy);
    KEEL_TRY(wait());
    KEEL_TRY(status);
  }
  for (const std::uint32_t width : {1U, 2U, 4U}) {
    const Status status =
        device.EnqueueFill(stream.get(), {memory.address(), 7, width, kHalf.count() / width});
    KEEL_TRY(wait());
    KEEL_TRY(status);
  }

  const std::array args = {hal::KernelArg::Out(memory.address(), 4_B),
                           hal::KernelArg::Value(std::uint32_t{1}),
                           hal::KernelArg::Value(std::uint64_t{1})};
  KEEL_ASSIGN(const hal::Graph child, hal::Graph::Create(shared));
  KEEL_TRY(device.AddNode(child.get(), {}, hal::EmptyNode{}).status());
  const hal::Command commands[] = {hal::EmptyNode{},
                                   hal::KernelLaunch{.kernel = kernel, .dims = {}, .args = args},
                                   hal::Copy{first, second, kHalf},
                                   hal::Copy{here, first, kHalf},
                                   hal::Fill{memory.address(), 1, 4, 16},
                                   hal::HostCall{[](void*) {}, nullptr},
                                   hal::ValueWrite{memory.address(), 5},
                                   hal::ValueWait{memory.address(), 5},
                                   hal::ChildGraph{child.get()}};
  KEEL_ASSIGN(const hal::Graph graph, hal::Graph::Create(shared));
  std::vector<hal::NodeHandle> nodes;
  for (const hal::Command& command : commands) {
    const std::span<const hal::NodeHandle> before(nodes.data() + nodes.size() - !nodes.empty(),
                                                  nodes.empty() ? 0 : 1);
    KEEL_ASSIGN(const hal::NodeHandle node, device.AddNode(graph.get(), before, command));
    nodes.push_back(node);
  }
  KEEL_TRY(device.GetNodes(graph.get()).status());
  KEEL_ASSIGN(const hal::GraphExec exec, hal::GraphExec::Create(graph));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    KEEL_TRY(device.SetNodeParams(exec.get(), nodes[i], commands[i]));
  }
  KEEL_TRY(exec.Launch(stream.get()));
  return wait();
}

class CudaFaultSweepTest : public ::testing::Test {
 protected:
  void SetUp() override {
    SetLogLevel(LogLevel::kOff);  // failures on purpose are logged
    setenv("KEEL_CUDA_LIBRARY", kStandin, 1);
    setenv("KEEL_STANDIN", "devices:2,memory:1GiB", 1);
    library_ = dlopen(kStandin, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    Find(&fail_, "keel_standin_fail");
    Find(&failed_, "keel_standin_failed");
    Find(&called_, "keel_standin_called");
    Find(&alive_, "keel_standin_describe_alive");
    Find(&set_current_, "cuCtxSetCurrent");
    Find(&exchange_mode_, "cuThreadExchangeStreamCaptureMode");
    driver_ = CreateDriver();
    const auto devices = driver_->Enumerate();
    ASSERT_TRUE(devices.ok()) << devices.status().ToString();
    // Contexts that somebody else uses too outlive Keel's devices, and what those forget in them.
    int (*retain)(void**, int) = nullptr;
    Find(&retain, "cuDevicePrimaryCtxRetain");
    void* context = nullptr;
    for (int i = 0; i < 2; ++i) ASSERT_EQ(retain(&context, i), 0);
    nothing_left_ = alive_();
  }
  void TearDown() override {
    int (*release)(int) = nullptr;
    Find(&release, "cuDevicePrimaryCtxRelease_v2");
    for (int i = 0; i < 2; ++i) EXPECT_EQ(release(i), 0);
    SetLogLevel(LogLevel::kWarn);
  }

  template <class Function>
  void Find(Function** function, const char* name) {
    *function = reinterpret_cast<Function*>(dlsym(library_, name));
    ASSERT_NE(*function, nullptr) << name;
  }

  // What a failed call may have left in the thread is not a leak, but must not meet the next run.
  void ResetThread() {
    EXPECT_EQ(set_current_(nullptr), 0);
    int mode = 0;
    EXPECT_EQ(exchange_mode_(&mode), 0);
  }

  hal::Devices Open() {
    hal::Devices devices;
    auto device = driver_->Open(0);
    auto peer = driver_->Open(1);
    EXPECT_TRUE(device.ok() && peer.ok()) << device.status().ToString();
    if (device.ok()) devices.device = *std::move(device);
    if (peer.ok()) devices.peer = *std::move(peer);
    return devices;
  }

  // Every primitive, and what the scenario has only one of.
  static Status Run(const hal::Devices& on) {
    KEEL_TRY(hal::UseEverything(on));
    return UseEveryKind(on.device);
  }

  // Runs with the call of `entry` failing after `skip` of them. False if it was not called so
  // often.
  bool FailOnce(const std::string& entry, int skip) {
    Status status;
    bool retried = false;
    {
      const hal::Devices on = Open();
      if (HasFailure()) return false;
      fail_(entry.c_str(), skip, kInjected);
      status = Run(on);
      const bool failed = failed_() != nullptr;
      fail_(nullptr, -1, 0);
      if (!failed) {
        EXPECT_TRUE(status.ok()) << status.ToString();
        return false;
      }
      retried = !on.device->retries().empty() || !on.peer->retries().empty();
      ResetThread();
      for (const auto& device : {on.device, on.peer}) {
        const Status drained = device->retries().Drain();
        EXPECT_TRUE(drained.ok()) << drained.ToString();
      }
    }
    SCOPED_TRACE(entry + " after " + std::to_string(skip) + ": " + status.ToString());
    if (!MayBeSwallowed(entry)) {
      // Only a destructor has nobody to tell; what it could not give back was tried again.
      if (!status.ok()) {
        ExpectVendorError(entry, status);
      } else {
        EXPECT_TRUE(retried || GivesBack(entry)) << "swallowed";
      }
    }
    EXPECT_EQ(alive_(), nothing_left_);
    const Status after = Run(Open());
    EXPECT_TRUE(after.ok()) << "after the failure: " << after.ToString();
    EXPECT_EQ(alive_(), nothing_left_);
    return true;
  }

  void ExpectVendorError(const std::string& entry, const Status& status) {
    EXPECT_EQ(status.vendor_code(), kInjected) << status.ToString();
    EXPECT_EQ(status.vendor_name(), "CUDA_ERROR_OUT_OF_MEMORY") << status.ToString();
    // One primitive has one word for all that can be wrong with two events.
    EXPECT_TRUE(status.code() == StatusCode::kResourceExhausted ||
                (status.code() == StatusCode::kFailedPrecondition && entry == "cuEventElapsedTime"))
        << status.ToString();
  }

  void* library_ = nullptr;
  void (*fail_)(const char*, int, int) = nullptr;
  const char* (*failed_)() = nullptr;
  const char* (*called_)() = nullptr;
  const char* (*alive_)() = nullptr;
  int (*set_current_)(void*) = nullptr;
  int (*exchange_mode_)(int*) = nullptr;
  std::unique_ptr<hal::Driver> driver_;
  std::string nothing_left_;
};

TEST_F(CudaFaultSweepTest, EveryEntryPointMayFailAndNothingLeaks) {
  ASSERT_TRUE(Run(Open()).ok());
  std::istringstream called(called_());
  std::set<std::string> swept;
  for (std::string entry; called >> entry && !HasFailure();) {
    // Waits poll: how often an entry point is called is known when it is not called again.
    int n = 0;
    while (!HasFailure() && FailOnce(entry, n)) ++n;
    if (n > 0) swept.insert(entry);
  }
  // All that the driver uses, but for those of opening, which have a test of their own.
  for (const char* entry : {"cuMemAlloc_v2",
                            "cuMemMap",
                            "cuMemsetD8Async",
                            "cuMemsetD16Async",
                            "cuMemsetD32Async",
                            "cuMemcpyAsync",
                            "cuMemcpyDtoDAsync_v2",
                            "cuMemcpyHtoDAsync_v2",
                            "cuMemcpyPeerAsync",
                            "cuModuleLoadData",
                            "cuLaunchKernel",
                            "cuLaunchHostFunc",
                            "cuStreamBeginCapture_v2",
                            "cuGraphAddKernelNode_v2",
                            "cuGraphAddMemcpyNode",
                            "cuGraphAddMemsetNode",
                            "cuGraphAddHostNode",
                            "cuGraphAddChildGraphNode",
                            "cuGraphAddEmptyNode",
                            "cuGraphAddBatchMemOpNode",
                            "cuGraphExecKernelNodeSetParams_v2",
                            "cuGraphExecMemcpyNodeSetParams",
                            "cuGraphExecMemsetNodeSetParams",
                            "cuGraphExecHostNodeSetParams",
                            "cuGraphExecChildGraphNodeSetParams",
                            "cuGraphExecBatchMemOpNodeSetParams",
                            "cuGraphExecUpdate_v2",
                            "cuGraphUpload",
                            "cuGraphLaunch"}) {
    EXPECT_TRUE(swept.contains(entry)) << entry;
  }
}

TEST_F(CudaFaultSweepTest, OpeningMayFailAndNothingLeaks) {
  for (int k = 0; !HasFailure(); ++k) {
    fail_(nullptr, k, kInjected);
    auto opened = driver_->Open(0);
    if (failed_() == nullptr) {
      fail_(nullptr, -1, 0);
      ASSERT_TRUE(opened.ok()) << opened.status().ToString();
      EXPECT_GT(k, 5);
      break;
    }
    SCOPED_TRACE("call " + std::to_string(k) + ", " + failed_());
    if (!MayBeSwallowed(failed_())) {
      ASSERT_FALSE(opened.ok());
      ExpectVendorError(failed_(), opened.status());
    }
    if (opened.ok()) (*opened).reset();
    ResetThread();
    EXPECT_EQ(alive_(), nothing_left_);
  }
}

TEST_F(CudaFaultSweepTest, EveryPrimitiveMayFailAndNothingLeaks) {
  {
    const hal::Devices on = Open();
    hal::SweepPrimitives(hal::Instrumented(on.device), on.peer,
                         [&on] { EXPECT_TRUE(on.device->Health().ok()); });
  }
  EXPECT_EQ(alive_(), nothing_left_);
}

}  // namespace
}  // namespace keel::cuda
