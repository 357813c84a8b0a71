#include "callables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "keel/hal/driver.h"
#include "keel/memory/process_memory.h"
#include "keel/task/orchestrator.h"

namespace keel::cli {
namespace {

using ::testing::HasSubstr;

// One worker on a simulated device, with orchestration by the host or by the device.
class CallablesTest : public ::testing::TestWithParam<task::Orchestration> {
 protected:
  void SetUp() override {
    task::OrchestratorOptions options;
    options.workers = {{.device = "sim:0", .memory = nullptr}};
    options.orchestration = GetParam();
    auto orchestrator = task::Orchestrator::Create(options);
    ASSERT_TRUE(orchestrator.ok()) << orchestrator.status().ToString();
    orchestrator_ = *std::move(orchestrator);
  }
  void TearDown() override {
    orchestrator_ = nullptr;
    EXPECT_TRUE(memory::ProcessMemory::Global().Shutdown().ok());
  }

  task::Callable Register(const Result<task::Image>& image) {
    EXPECT_TRUE(image.ok()) << image.status().ToString();
    const auto callable = orchestrator_->Register(*image);
    EXPECT_TRUE(callable.ok()) << callable.status().ToString();
    return callable.ok() ? *callable : task::Callable{};
  }

  Status Run(task::Callable callable, const task::Arguments& arguments) {
    const auto task = orchestrator_->Submit(callable, arguments);
    if (!task.ok()) return task.status();
    return task->Wait(Deadline::After(std::chrono::seconds(60)));
  }

  static Result<task::Image> Layer() {
    auto memory = memory::ProcessMemory::Global().For({.driver = "sim", .ordinal = 0});
    if (!memory.ok()) return memory.status();
    auto kernels = (*memory)->device()->StandardKernels();
    if (!kernels.ok()) return kernels.status();
    return LayerImage(*kernels);
  }

  std::unique_ptr<task::Orchestrator> orchestrator_;
};

TEST_P(CallablesTest, NoopTakesAnyArguments) {
  const task::Callable noop = Register(NoopImage());
  EXPECT_TRUE(Run(noop, {}).ok());
  std::array<std::uint32_t, 4> values{1, 2, 3, 4};
  const std::array<std::uint32_t, 1> shape{4};
  task::Arguments arguments;
  arguments.Add(task::Tag::kInOut,
                task::Tensor::Host(values.data(), task::DataType::kUInt32, shape));
  EXPECT_TRUE(Run(noop, arguments).ok());
  EXPECT_EQ(values, (std::array<std::uint32_t, 4>{1, 2, 3, 4}));
  EXPECT_EQ(orchestrator_->Report().at(0).tasks, 2U);
}

TEST_P(CallablesTest, LayerIsTheHostsBitForBit) {
  constexpr std::uint32_t kM = 3;
  constexpr std::uint32_t kK = 5;
  constexpr std::uint32_t kN = 7;
  constexpr std::uint32_t kExperts = 4;
  std::vector<float> x(kM * kK);
  std::vector<float> w(kExperts * kK * kN);
  std::vector<float> y(kM * kN, -1);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.1F * static_cast<float>(i % 11) - 0.5F;
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = 0.3F * static_cast<float>(i % 13) - 1.7F;
  const task::Callable layer = Register(Layer());
  for (std::uint64_t expert = 0; expert < kExperts; ++expert) {
    task::Arguments arguments;
    const std::array<std::uint32_t, 2> x_shape{kM, kK};
    const std::array<std::uint32_t, 3> w_shape{kExperts, kK, kN};
    const std::array<std::uint32_t, 2> y_shape{kM, kN};
    arguments.Add(task::Tag::kIn, task::Tensor::Host(x.data(), task::DataType::kFloat32, x_shape))
        .Add(task::Tag::kIn, task::Tensor::Host(w.data(), task::DataType::kFloat32, w_shape))
        .Add(task::Tag::kOut, task::Tensor::Host(y.data(), task::DataType::kFloat32, y_shape))
        .AddScalar(expert);
    const Status status = Run(layer, arguments);
    ASSERT_TRUE(status.ok()) << status.ToString();
    std::vector<float> expected(y.size());
    for (std::size_t row = 0; row < kM; ++row) {
      for (std::size_t column = 0; column < kN; ++column) {
        float sum = 0;
        for (std::size_t i = 0; i < kK; ++i) {
          // Stored, so that the compiler cannot fuse it with the addition.
          const volatile float product = x[row * kK + i] * w[(expert * kK + i) * kN + column];
          sum += product;
        }
        expected[row * kN + column] = sum > 0 ? sum : 0;
      }
    }
    EXPECT_EQ(std::memcmp(y.data(), expected.data(), y.size() * sizeof(float)), 0) << expert;
  }
}

TEST_P(CallablesTest, LayerRefusesWhatItCannotTake) {
  const task::Callable layer = Register(Layer());
  EXPECT_THAT(Run(layer, {}).ToString(), HasSubstr("a layer takes x, w, y"));
  std::vector<float> values(64);
  const std::array<std::uint32_t, 2> square{4, 4};
  const std::array<std::uint32_t, 3> weights{2, 4, 4};
  const auto arguments = [&](std::span<const std::uint32_t> w, std::uint64_t expert) {
    task::Arguments all;
    all.Add(task::Tag::kIn, task::Tensor::Host(values.data(), task::DataType::kFloat32, square))
        .Add(task::Tag::kIn, task::Tensor::Host(values.data() + 16, task::DataType::kFloat32, w))
        .Add(task::Tag::kOut,
             task::Tensor::Host(values.data() + 48, task::DataType::kFloat32, square))
        .AddScalar(expert);
    return all;
  };
  EXPECT_TRUE(Run(layer, arguments(weights, 1)).ok());
  EXPECT_THAT(Run(layer, arguments(weights, 2)).ToString(), HasSubstr("no such expert"));
  EXPECT_THAT(Run(layer, arguments(square, 0)).ToString(), HasSubstr("w[experts][k][n]"));
}

INSTANTIATE_TEST_SUITE_P(Callables, CallablesTest,
                         ::testing::Values(task::Orchestration::kHost,
                                           task::Orchestration::kDevice),
                         [](const auto& instance) {
                           return instance.param == task::Orchestration::kHost ? "Host" : "Device";
                         });

}  // namespace
}  // namespace keel::cli
