// Orchestration code for tests. Compiled once for each behaviour, which KEEL_BEHAVIOUR names.
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>

#include "keel/hal/orchestration.h"
#include "keel/task/arguments.h"

namespace {

using keel::DeviceAddress;
using keel::hal::KernelArg;
using keel::hal::OrchestrationCall;
using keel::task::ArgumentsView;
using keel::task::Tensor;

constexpr int kWrongArguments = 3;

[[maybe_unused]] KernelArg In(const Tensor& tensor) {
  return KernelArg::In(DeviceAddress(tensor.address), tensor.size());
}
[[maybe_unused]] KernelArg Out(const Tensor& tensor) {
  return KernelArg::Out(DeviceAddress(tensor.address), tensor.size());
}
[[maybe_unused]] KernelArg InOut(const Tensor& tensor) {
  return KernelArg::InOut(DeviceAddress(tensor.address), tensor.size());
}
// Whether there are at least so many.
[[maybe_unused]] bool Has(const ArgumentsView& view, std::size_t tensors, std::size_t scalars) {
  return view.tensor_count() >= tensors && view.scalar_count() >= scalars;
}

[[maybe_unused]] int Noop(OrchestrationCall*) { return 0; }

[[maybe_unused]] int Add(OrchestrationCall* call) {
  const ArgumentsView view(call->arguments);
  if (!Has(view, 3, 0)) return call->Fail(kWrongArguments, "add takes a, b and c");
  const KernelArg args[] = {In(view.tensor(0)), In(view.tensor(1)), Out(view.tensor(2)),
                            KernelArg::Value(view.tensor(2).elements())};
  return call->Launch(0, {}, args);
}

[[maybe_unused]] int Axpy(OrchestrationCall* call) {
  const ArgumentsView view(call->arguments);
  if (!Has(view, 2, 1)) return call->Fail(kWrongArguments, "axpy takes x, y and a");
  const KernelArg args[] = {In(view.tensor(0)), InOut(view.tensor(1)),
                            KernelArg::Value(view.scalar<float>(0)),
                            KernelArg::Value(view.tensor(1).elements())};
  return call->Launch(0, {}, args);
}

[[maybe_unused]] int Fill(OrchestrationCall* call) {
  const ArgumentsView view(call->arguments);
  if (!Has(view, 1, 1)) return call->Fail(kWrongArguments, "fill takes x and a value");
  const KernelArg args[] = {Out(view.tensor(0)), KernelArg::Value(view.scalar<std::uint32_t>(0)),
                            KernelArg::Value(view.tensor(0).elements())};
  return call->Launch(0, {}, args);
}

[[maybe_unused]] int Return(OrchestrationCall* call) {
  const ArgumentsView view(call->arguments);
  if (!Has(view, 0, 1)) return call->Fail(kWrongArguments, "return takes a code");
  return view.scalar<std::int32_t>(0);
}

[[maybe_unused]] int Three(OrchestrationCall* call) {
  const ArgumentsView view(call->arguments);
  if (!Has(view, 3, 0)) return call->Fail(kWrongArguments, "three takes three tensors");
  for (std::uint32_t i = 0; i < 3; ++i) {
    const KernelArg args[] = {Out(view.tensor(i)), KernelArg::Value(i + 1),
                              KernelArg::Value(view.tensor(i).elements())};
    if (const int code = call->Launch(0, {}, args); code != 0) return code;
  }
  return 0;
}

[[maybe_unused]] int Fail(OrchestrationCall* call) { return call->Fail(3, "told to fail"); }

// A real one, also where a debugger or a sanitizer has a handler.
[[maybe_unused]] int Crash(OrchestrationCall*) {
  std::signal(SIGSEGV, SIG_DFL);
  std::raise(SIGSEGV);
  return 0;
}

[[maybe_unused]] int Spin(OrchestrationCall* call) {
  const ArgumentsView view(call->arguments);
  if (!Has(view, 1, 1)) return call->Fail(kWrongArguments, "spin takes a flag and a time");
  const KernelArg args[] = {InOut(view.tensor(0)), KernelArg::Value(~std::uint64_t{0}),
                            KernelArg::Value(view.scalar(0))};
  return call->Launch(0, {}, args);
}

// As long as a process has a descriptor, at most for a minute. Readable by processes of its user.
[[maybe_unused]] int Hold(OrchestrationCall* call) {
  const ArgumentsView view(call->arguments);
  if (!Has(view, 0, 2)) return call->Fail(kWrongArguments, "hold takes a process and a descriptor");
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/fd/%d", view.scalar<int>(0), view.scalar<int>(1));
  constexpr int kMilliseconds = 60'000;
  char target[8];
  for (int i = 0; i < kMilliseconds && readlink(path, target, sizeof(target)) > 0; ++i) {
    usleep(1000);
  }
  return 0;
}

// Fills tensor 0 with 7 by each of the kernels that the scalars name. What was refused is passed
// over.
[[maybe_unused]] int Careless(OrchestrationCall* call) {
  const ArgumentsView view(call->arguments);
  if (view.scalar_count() == 0) return call->Fail(99, "careless takes kernels");
  for (std::size_t i = 0; i < view.scalar_count(); ++i) {
    const KernelArg args[] = {Out(view.tensor(0)), KernelArg::Value(std::uint32_t{7}),
                              KernelArg::Value(view.tensor(0).elements())};
    (void)call->Launch(view.scalar<std::uint32_t>(i), {}, args);
  }
  return 0;
}

// Does nothing, but loading it takes a minute, as that of a library that waits for something.
[[maybe_unused]] int Stall(OrchestrationCall*) { return 0; }
constexpr auto kThis = &KEEL_BEHAVIOUR;
[[gnu::constructor]] void Load() {
  if constexpr (kThis == &Stall) sleep(60);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] int keel_orchestrate(OrchestrationCall* call) {
  return KEEL_BEHAVIOUR(call);
}
