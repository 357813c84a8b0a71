#include "drivers/sim/controller.h"

#include <fmt/format.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "drivers/sim/execute.h"
#include "drivers/sim/machine.h"
#include "drivers/sim/sim_device.h"
#include "drivers/sim/stream.h"
#include "keel/hal/orchestration.h"

namespace keel::sim {
namespace {

using hal::OrchestrationCall;
using hal::OrchestrationOutcome;

// One run of the code. It reads copies of its arguments: a kernel that it launches may have to wait
// for the end of everything that is using a page, and must not wait for this.
class Run {
 public:
  Run(int ordinal, SimStream& stream, std::vector<std::byte> arguments,
      std::vector<std::uint64_t> kernels)
      : ordinal_(ordinal),
        stream_(stream),
        arguments_(std::move(arguments)),
        kernels_(std::move(kernels)) {}

  // Not OK: a kernel faulted.
  Status Execute(hal::OrchestrationFunction function, OrchestrationOutcome& outcome) {
    Frame frame;
    frame.self = this;
    frame.kernel_count = static_cast<std::uint32_t>(kernels_.size());
    frame.arguments = arguments_.data();
    frame.arguments_size = arguments_.size();
    frame.launch = &Run::LaunchFromCode;
    const int code = function(&frame);
    KEEL_TRY(fault_);
    outcome.code = refused_.ok() ? code : static_cast<std::int32_t>(refused_.code());
    outcome.launched = launched_;
    // The code may have written all of it.
    const std::string_view said(frame.message, strnlen(frame.message, sizeof(frame.message)));
    const std::string_view message = refused_.ok() ? said : refused_.message();
    message.copy(outcome.message, sizeof(outcome.message) - 1);
    return OkStatus();
  }

 private:
  struct Frame : OrchestrationCall {
    Run* self = nullptr;
  };

  static int LaunchFromCode(OrchestrationCall* call, std::uint32_t kernel,
                            const hal::LaunchDims* dims, const hal::KernelArg* args,
                            std::size_t arg_count) {
    Run& self = *static_cast<Frame*>(call)->self;
    const Status status = self.Launch(kernel, *dims, {args, arg_count});
    if (status.ok()) return 0;
    if (self.refused_.ok()) self.refused_ = status;
    return call->Fail(static_cast<int>(status.code()), std::string(status.message()).c_str());
  }

  Status Launch(std::uint32_t kernel, const hal::LaunchDims& dims,
                std::span<const hal::KernelArg> args) {
    // After a fault nothing runs any more, whatever the code makes of it.
    if (!fault_.ok() || stream_.Cancelled()) return DeviceLost("the device is lost");
    if (kernel >= kernels_.size()) {
      return InvalidArgument(
          fmt::format("it launches kernel {}, and has {}", kernel, kernels_.size()));
    }
    Result<StoredKernel> stored = stream_.device().machine().StoreKernel(
        ordinal_, {hal::KernelHandle{kernels_[kernel]}, dims, args});
    if (stored.ok() && (*stored).kernel->orchestration != nullptr) {
      return InvalidArgument(
          fmt::format("kernel {} is orchestration code, which launches no other", kernel));
    }
    if (!stored.ok()) {
      return std::move(stored).status().Annotate(fmt::format("kernel {}", kernel));
    }
    fault_ = RunCommand(*std::move(stored), ordinal_, stream_);
    if (fault_.ok()) ++launched_;
    return fault_;
  }

  const int ordinal_;
  SimStream& stream_;
  const std::vector<std::byte> arguments_;
  const std::vector<std::uint64_t> kernels_;
  std::uint32_t launched_ = 0;
  Status refused_;
  Status fault_;
};

}  // namespace

Status RunOrchestration(const StoredKernel& launch, int ordinal, SimStream& stream) {
  Machine& machine = stream.device().machine();
  const auto fault = [&](std::string_view what) {
    return DeviceLost(fmt::format("kernel '{}': {}", launch.kernel->name, what));
  };
  std::vector<MemoryUse> uses;
  uses.reserve(launch.args.size());
  for (std::size_t i = 0; i < launch.args.size(); ++i) {
    uses.push_back({ordinal, launch.args[i].address().value(), launch.args[i].extent(),
                    launch.kernel->parameters[i].access});
  }
  uses[2].size = Bytes(sizeof(OrchestrationOutcome));
  if (launch.args[2].extent() < uses[2].size) {
    return fault(fmt::format("an outcome takes {} bytes, not {}", uses[2].size.count(),
                             launch.args[2].extent().count()));
  }
  std::vector<std::byte> arguments;
  std::vector<std::uint64_t> kernels;
  {
    HeldMemory held;
    const auto pointers = machine.PinAll(uses, held, /*may_wait=*/true);
    if (!pointers.ok()) return fault(pointers.status().message());
    // Not before: only now is it known that there is so much.
    arguments.resize(uses[0].size.count());
    kernels.resize(uses[1].size.count() / sizeof(std::uint64_t));
    if (!arguments.empty()) std::memcpy(arguments.data(), (*pointers)[0], arguments.size());
    if (!kernels.empty()) std::memcpy(kernels.data(), (*pointers)[1], kernels.size() * 8);
  }
  OrchestrationOutcome outcome;
  Run run(ordinal, stream, std::move(arguments), std::move(kernels));
  KEEL_TRY(run.Execute(launch.kernel->orchestration, outcome));
  HeldMemory held;
  const auto pointers = machine.PinAll({&uses[2], 1}, held, /*may_wait=*/true);
  if (!pointers.ok()) return fault(pointers.status().message());
  std::memcpy(pointers->front(), &outcome, sizeof(outcome));
  return OkStatus();
}

}  // namespace keel::sim
