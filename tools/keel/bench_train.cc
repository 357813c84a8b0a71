// keel bench train: a training step, as the memory sees one.
//
// A batch comes from pageable memory; each layer makes an activation; backwards each makes a
// gradient and a scratch buffer, changes its weights, and drops what is no longer needed. The
// kernels are Keel's own and small: the step shows what memory costs beside work, not how fast a
// device computes.

#include <algorithm>
#include <array>
#include <utility>

#include "keel/hal/instrumented.h"
#include "keel/hal/module.h"
#include "keel/hal/standard_kernels.h"
#include "keel/hal/stream.h"
#include "keel/memory/device_allocator.h"
#include "keel/memory/host_allocator.h"
#include "keel/memory/staging.h"
#include "measure.h"

namespace keel::cli {
namespace {

using hal::KernelArg;
using hal::Primitive;
using memory::AllocatorConfig;
using memory::DeviceAllocator;

constexpr std::size_t kLayers = 12;
constexpr float kRate = 0.5F;
// After these, a loop whose sizes repeat has all the memory that it needs.
constexpr int kWarmUp = 2;
constexpr int kCountedSteps = 8;

// Of the activation that a layer makes: odd sizes, small and large.
Bytes SizeOf(std::size_t layer) {
  constexpr std::array<std::uint64_t, 4> kElements = {100'000, 6'000, 300'000, 40'000};
  return Bytes(kElements[layer % kElements.size()] * sizeof(float));
}

// The calls by which a device's memory comes and goes.
constexpr std::array kMemoryCalls = {
    Primitive::kAllocatePlain,  Primitive::kFreePlain,    Primitive::kCreateMemory,
    Primitive::kReleaseMemory,  Primitive::kMap,          Primitive::kUnmap,
    Primitive::kSetAccess,      Primitive::kAllocateHost, Primitive::kFreeHost,
    Primitive::kReserveAddress, Primitive::kFreeAddress,
};

// The network, its weights and a stream. Weights are allocated as everything else is.
class Training {
 public:
  static Result<std::unique_ptr<Training>> Create(const std::shared_ptr<hal::Device>& device,
                                                  const AllocatorConfig& config) {
    auto training = std::unique_ptr<Training>(new Training(device, config));
    KEEL_ASSIGN(training->module_, hal::Module::LoadStandard(device));
    KEEL_ASSIGN(training->add_, training->module_.Find(hal::kernels::kAdd));
    KEEL_ASSIGN(training->axpy_, training->module_.Find(hal::kernels::kAxpy));
    KEEL_ASSIGN(training->stream_, hal::Stream::Create(device));
    KEEL_ASSIGN(training->allocator_, DeviceAllocator::Create(device, {.config = config}));
    for (std::size_t layer = 0; layer < kLayers; ++layer) {
      KEEL_ASSIGN(const DeviceAddress weights, training->Allocate(SizeOf(layer)));
      training->weights_.push_back(weights);
      KEEL_TRY(device->EnqueueFill(training->stream_.get(),
                                   {.destination = weights, .count = SizeOf(layer).count()}));
    }
    return training;
  }

  // `count` steps, and what they left on the stream.
  Status Run(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) KEEL_TRY(Step());
    return stream_.Synchronize();
  }

 private:
  Training(const std::shared_ptr<hal::Device>& device, const AllocatorConfig& config)
      : device_(device),
        staging_(std::make_shared<memory::HostAllocator>(
                     device, memory::HostAllocatorOptions::From(config)),
                 config),
        batch_(SizeOf(0).count()) {}

  Result<DeviceAddress> Allocate(Bytes size) { return allocator_->Allocate(size, stream_.get()); }

  Status Add(DeviceAddress x, DeviceAddress w, DeviceAddress y, Bytes size) {
    const std::array args = {KernelArg::In(x, size), KernelArg::In(w, size),
                             KernelArg::Out(y, size),
                             KernelArg::Value(size.count() / sizeof(float))};
    return device_->LaunchKernel(stream_.get(), {.kernel = add_, .dims = kDims, .args = args});
  }
  Status Axpy(DeviceAddress x, DeviceAddress y, Bytes size) {
    const std::array args = {KernelArg::In(x, size), KernelArg::InOut(y, size),
                             KernelArg::Value(kRate),
                             KernelArg::Value(size.count() / sizeof(float))};
    return device_->LaunchKernel(stream_.get(), {.kernel = axpy_, .dims = kDims, .args = args});
  }

  Status Step() {
    std::array<DeviceAddress, kLayers + 1> made{};
    KEEL_ASSIGN(made[0], Allocate(SizeOf(0)));
    KEEL_TRY(staging_.CopyToDevice(stream_.get(), made[0], batch_.data(), SizeOf(0)));
    for (std::size_t layer = 0; layer < kLayers; ++layer) {
      KEEL_ASSIGN(made[layer + 1], Allocate(SizeOf(layer)));
      KEEL_TRY(Add(weights_[layer], weights_[layer], made[layer + 1], SizeOf(layer)));
      const Bytes common = std::min(SizeOf(layer), layer == 0 ? SizeOf(0) : SizeOf(layer - 1));
      KEEL_TRY(Axpy(made[layer], made[layer + 1], common));
    }
    for (std::size_t layer = kLayers; layer-- > 0;) {
      const Bytes size = SizeOf(layer);
      KEEL_ASSIGN(const DeviceAddress gradient, Allocate(size));
      KEEL_ASSIGN(const DeviceAddress scratch, Allocate(size / 2));
      KEEL_TRY(Add(made[layer + 1], weights_[layer], gradient, size));
      KEEL_TRY(Add(gradient, weights_[layer], scratch, size / 2));
      KEEL_TRY(allocator_->Free(scratch));
      KEEL_TRY(allocator_->Free(made[layer + 1]));
      KEEL_TRY(Axpy(gradient, weights_[layer], size));
      KEEL_TRY(allocator_->Free(gradient));
    }
    return allocator_->Free(made[0]);
  }

  static constexpr hal::LaunchDims kDims = {.grid = {64, 1, 1}, .block = {256, 1, 1}};

  const std::shared_ptr<hal::Device> device_;
  hal::Module module_;
  hal::KernelHandle add_;
  hal::KernelHandle axpy_;
  hal::Stream stream_;
  std::unique_ptr<DeviceAllocator> allocator_;
  memory::Staging staging_;
  std::vector<std::byte> batch_;
  std::vector<DeviceAddress> weights_;
};

Result<std::vector<Measurement>> TrainingStep(const BenchSetting& setting, std::string way,
                                              const AllocatorConfig& config) {
  const nlohmann::ordered_json parameters = {{"memory", std::move(way)}, {"layers", kLayers}};
  std::vector<Measurement> measurements;
  {
    KEEL_ASSIGN(const auto training, Training::Create(setting.device, config));
    KEEL_ASSIGN(const double ns,
                MedianNs([&](std::uint64_t steps) { return training->Run(steps); }));
    measurements.push_back({.name = "training step", .parameters = parameters, .value = ns});
  }
  const auto counted = hal::Instrumented(setting.device);
  KEEL_ASSIGN(const auto training, Training::Create(counted, config));
  KEEL_TRY(training->Run(kWarmUp));
  counted->ResetCounts();
  KEEL_TRY(training->Run(kCountedSteps));
  std::uint64_t calls = 0;
  for (const Primitive each : kMemoryCalls) calls += counted->calls(each);
  measurements.push_back({.name = "memory calls of a step",
                          .parameters = parameters,
                          .unit = Measurement::Unit::kCalls,
                          .value = static_cast<double>(calls) / kCountedSteps});
  return measurements;
}

}  // namespace

std::vector<BenchCase> TrainCases(const BenchSetting& setting) {
  AllocatorConfig plain = setting.config;
  plain.expandable_segments = false;
  AllocatorConfig driver = setting.config;
  driver.backend = AllocatorConfig::Backend::kPassthrough;
  std::vector<BenchCase> cases;
  const auto add = [&](const std::string& way, const AllocatorConfig& config) {
    cases.push_back(
        {"training step with " + way, [=] { return TrainingStep(setting, way, config); }});
  };
  add("Keel as configured", setting.config);
  add("plain segments", plain);
  add("the driver alone", driver);
  return cases;
}

}  // namespace keel::cli
