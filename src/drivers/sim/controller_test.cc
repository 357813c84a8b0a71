// Orchestration code on the simulated device, beyond the conformance suite.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "hal/sim_devices_test.h"
#include "keel/hal/graph.h"
#include "keel/hal/memory.h"
#include "keel/hal/module.h"
#include "keel/hal/orchestration.h"
#include "keel/hal/standard_kernels.h"
#include "keel/hal/stream.h"

namespace keel::sim {
namespace {

using hal::IsOk;
using hal::KernelArg;
using hal::Need;
using hal::OrchestrationOutcome;
using ::testing::HasSubstr;

constexpr std::uint64_t kWords = 256;

// The code in memory of the device, and what it takes; src/hal/conformance/orchestration_code.cc
// says how its arguments are read.
class ControllerTest : public hal::SimDevicesTest {
 protected:
  void SetUp() override {
    hal::SimDevicesTest::SetUp();
    std::ifstream file(KEEL_ORCHESTRATION_CODE, std::ios::binary);
    const std::string code((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
    ASSERT_GT(code.size(), 1000u);
    code_ = Need(hal::PlainMemory::Create(device_, Bytes(code.size())));
    size_ = Bytes(code.size());
    Write(code_.address(), code.data(), code.size());
    module_ = Need(hal::Module::Load(device_, hal::ModuleSource::Device(code_.address(), size_)));
    entry_ = Need(module_.Find(hal::kOrchestrationEntry));
    Write(block_.address() + kTable, std::vector<std::uint64_t>{fill_.value, entry_.value});
  }

  static constexpr Bytes kTable = 4_KiB;
  static constexpr Bytes kOutcome = 8_KiB;
  static constexpr Bytes kBuffer = 12_KiB;

  void Write(DeviceAddress to, const void* bytes, std::size_t size) {
    ASSERT_TRUE(
        IsOk(device_->EnqueueCopy(stream_.get(), {hal::Location::On(device_->id(), to),
                                                  hal::Location::Host(bytes), Bytes(size)})));
    ASSERT_TRUE(IsOk(stream_.Synchronize()));
  }
  void Write(DeviceAddress to, const std::vector<std::uint64_t>& words) {
    Write(to, words.data(), words.size() * 8);
  }
  template <class T>
  std::vector<T> Read(DeviceAddress from, std::size_t count) {
    std::vector<T> values(count);
    EXPECT_TRUE(IsOk(device_->EnqueueCopy(
        stream_.get(), {hal::Location::Host(values.data()), hal::Location::On(device_->id(), from),
                        Bytes(count * sizeof(T))})));
    return values;
  }
  OrchestrationOutcome Outcome() {
    return Read<OrchestrationOutcome>(block_.address() + kOutcome, 1).front();
  }
  DeviceAddress buffer() const { return block_.address() + kBuffer; }

  // A launch of the code with these words, which it puts on the device first.
  hal::KernelLaunch Prepare(const std::vector<std::uint64_t>& words) {
    Write(block_.address(), words);
    args_ = {KernelArg::In(block_.address(), Bytes(words.size() * 8)),
             KernelArg::In(block_.address() + kTable, Bytes(16)),
             KernelArg::Out(block_.address() + kOutcome, Bytes(sizeof(OrchestrationOutcome)))};
    return {entry_, {}, args_};
  }

  hal::Stream stream_ = Need(hal::Stream::Create(device_));
  hal::PlainMemory block_ = Need(hal::PlainMemory::Create(device_, 64_KiB));
  hal::PlainMemory code_;
  Bytes size_;
  hal::Module standard_ = Need(hal::Module::LoadStandard(device_));
  hal::KernelHandle fill_ = Need(standard_.Find(hal::kernels::kFill));
  hal::Module module_;
  hal::KernelHandle entry_;
  std::vector<KernelArg> args_;
};

TEST_F(ControllerTest, ANodeOfAGraphAndACaptureRunLikeAnyKernel) {
  const hal::KernelLaunch launch = Prepare({0, 0, 0, buffer().value(), 5, kWords});
  const auto graph = Need(hal::Graph::Create(device_));
  ASSERT_TRUE(IsOk(device_->AddNode(graph.get(), {}, launch)));
  const auto exec = Need(hal::GraphExec::Create(graph));
  for (int replay = 0; replay < 2; ++replay) {
    Write(buffer(), std::vector<std::uint64_t>(kWords / 2, 0));
    ASSERT_TRUE(IsOk(exec.Launch(stream_.get())));
    EXPECT_EQ(Read<std::uint32_t>(buffer(), kWords), std::vector<std::uint32_t>(kWords, 5));
  }

  auto capture = Need(hal::Capture::Begin(device_, stream_.get()));
  ASSERT_TRUE(IsOk(device_->LaunchKernel(stream_.get(), launch)));
  const auto captured = Need(capture.End());
  Write(buffer(), std::vector<std::uint64_t>(kWords / 2, 0));
  ASSERT_TRUE(IsOk(Need(hal::GraphExec::Create(captured)).Launch(stream_.get())));
  EXPECT_EQ(Read<std::uint32_t>(buffer(), kWords), std::vector<std::uint32_t>(kWords, 5));
  EXPECT_EQ(Outcome().launched, 1u);
}

TEST_F(ControllerTest, AFaultOfAKernelThatTheCodeLaunchesLosesTheDevice) {
  const std::uint64_t nowhere = 0x1000;
  // The code goes on after it, and would write the buffer.
  const hal::KernelLaunch launch =
      Prepare({0, 1, 0, nowhere, 5, kWords, 0, buffer().value(), 6, kWords});
  ASSERT_TRUE(IsOk(device_->LaunchKernel(stream_.get(), launch)));
  const Status status = stream_.Synchronize();
  EXPECT_EQ(status.code(), StatusCode::kDeviceLost);
  EXPECT_THAT(std::string(status.message()), HasSubstr("kernel 'keel_fill'"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("0x1000"));
}

TEST_F(ControllerTest, AnOutcomeThatCannotBeWrittenIsAFault) {
  Prepare({0, 0});
  args_[2] = KernelArg::Out(DeviceAddress(0x2000), Bytes(sizeof(OrchestrationOutcome)));
  ASSERT_TRUE(IsOk(device_->LaunchKernel(stream_.get(), {entry_, {}, args_})));
  EXPECT_EQ(stream_.Synchronize().code(), StatusCode::kDeviceLost);
}

// More than there is anywhere: it is found out before room is made for a copy.
TEST_F(ControllerTest, ArgumentsThatCannotBeReadAreAFault) {
  Prepare({0, 0});
  args_[0] = KernelArg::In(block_.address(), Bytes(std::uint64_t{1} << 60));
  ASSERT_TRUE(IsOk(device_->LaunchKernel(stream_.get(), {entry_, {}, args_})));
  EXPECT_EQ(stream_.Synchronize().code(), StatusCode::kDeviceLost);
}

TEST_F(ControllerTest, CodeLaunchesNoOtherCode) {
  const hal::KernelLaunch launch = Prepare({0, 0, 1, buffer().value(), 5, kWords});
  ASSERT_TRUE(IsOk(device_->LaunchKernel(stream_.get(), launch)));
  ASSERT_TRUE(IsOk(stream_.Synchronize()));
  const OrchestrationOutcome outcome = Outcome();
  EXPECT_EQ(outcome.code, static_cast<int>(StatusCode::kInvalidArgument));
  EXPECT_EQ(outcome.launched, 0u);
}

TEST_F(ControllerTest, ArgumentsAreThoseOfAnEntry) {
  const hal::KernelLaunch launch = Prepare({0, 0});
  const Status status =
      device_->LaunchKernel(stream_.get(), {entry_, {}, launch.args.subspan(0, 2)});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("takes 3 arguments"));
}

// A kernel of another device has a handle of its own: what it says is refused, not run.
TEST_F(ControllerTest, AKernelOfAnotherDeviceIsRefused) {
  const auto standard = Need(hal::Module::LoadStandard(peer_));
  const hal::KernelHandle other = Need(standard.Find(hal::kernels::kFill));
  const hal::KernelLaunch launch = Prepare({0, 0, 0, buffer().value(), 5, kWords});
  Write(block_.address() + kTable, std::vector<std::uint64_t>{other.value, 0});
  ASSERT_TRUE(IsOk(device_->LaunchKernel(stream_.get(), launch)));
  ASSERT_TRUE(IsOk(stream_.Synchronize()));
  EXPECT_EQ(Outcome().code, static_cast<int>(StatusCode::kInvalidArgument));
  EXPECT_THAT(Outcome().message, HasSubstr("not the handle of a kernel"));
}

TEST_F(ControllerTest, CodeOfAnotherDevicesMemoryNeedsAccess) {
  const auto elsewhere = Need(hal::PlainMemory::Create(peer_, size_));
  const Status status =
      device_->LoadModule(hal::ModuleSource::Device(elsewhere.address(), size_)).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("orchestration code"));
}

}  // namespace
}  // namespace keel::sim
