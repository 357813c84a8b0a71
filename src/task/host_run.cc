#include "task/host_run.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

namespace keel::task {
namespace {

std::string_view Text(const char* message, std::size_t size) {
  return {message, static_cast<std::size_t>(std::find(message, message + size, '\0') - message)};
}

bool IsTheEngines(StatusCode code) {
  return code == StatusCode::kDeadlineExceeded || code == StatusCode::kUnavailable ||
         code == StatusCode::kDeviceLost;
}

class Call final : public HostCall {
 public:
  Call(const HostRun& run, std::span<const std::byte> arguments)
      : run_(run), encoded_(arguments), arguments_(arguments.data()) {}

  Status Run() {
    Status status = run_.function != nullptr ? CallFunction() : CallCode();
    if (!refused_.ok()) status = std::move(refused_);
    return status;
  }

  const ArgumentsView& arguments() const override { return arguments_; }
  std::uint32_t kernel_count() const override {
    return static_cast<std::uint32_t>(run_.callable.kernels().size());
  }
  Status Launch(std::uint32_t kernel, const hal::LaunchDims& dims,
                std::span<const hal::KernelArg> args) override {
    Status status = TryLaunch(kernel, dims, args);
    if (!status.ok()) Refuse(status);
    return status;
  }
  void Refuse(const Status& why) override {
    if (refused_.ok()) refused_ = why;
  }
  const std::shared_ptr<memory::DeviceMemory>& memory() const override { return run_.memory; }
  hal::StreamHandle stream() const override { return run_.stream->get(); }
  std::shared_ptr<const void> stream_owner() const override { return run_.stream; }
  Deadline deadline() const override { return run_.deadline; }

 private:
  struct Frame : hal::OrchestrationCall {
    Call* self = nullptr;
  };

  Status CallFunction() {
    run_.queued = true;  // it has the stream
    Status status;
    try {
      status = (*run_.function)(*this);
    } catch (const std::exception& error) {
      return {StatusCode::kUnknown, fmt::format("it threw: {}", error.what())};
    } catch (...) {
      // What ends a thread is no exception of C++: it has no type.
      if (abi::__cxa_current_exception_type() == nullptr) throw;
      return {StatusCode::kUnknown, "it threw something"};
    }
    if (!IsTheEngines(status.code())) return status;
    return {StatusCode::kUnknown, std::string(status.message())};
  }

  Status CallCode() {
    Frame frame;
    frame.self = this;
    frame.kernel_count = kernel_count();
    frame.arguments = encoded_.data();
    frame.arguments_size = encoded_.size();
    frame.launch = &Call::LaunchFromCode;
    const int code = run_.callable.function()(&frame);
    if (code == 0) return OkStatus();
    return OutcomeOf(code, Text(frame.message, sizeof(frame.message)));
  }

  static int LaunchFromCode(hal::OrchestrationCall* call, std::uint32_t kernel,
                            const hal::LaunchDims* dims, const hal::KernelArg* args,
                            std::size_t arg_count) {
    const Status status = static_cast<Frame*>(call)->self->Launch(kernel, *dims, {args, arg_count});
    if (status.ok()) return 0;
    return call->Fail(static_cast<int>(status.code()), std::string(status.message()).c_str());
  }

  Status TryLaunch(std::uint32_t kernel, const hal::LaunchDims& dims,
                   std::span<const hal::KernelArg> args) {
    // Its tensors may be somebody else's by now.
    if (run_.killed != nullptr && run_.killed->load(std::memory_order_acquire)) {
      return {StatusCode::kCancelled, "the worker was ended, and the task with it"};
    }
    if (kernel >= run_.callable.kernels().size()) {
      return InvalidArgument(
          fmt::format("it launches kernel {}, and has {}", kernel, run_.callable.kernels().size()));
    }
    run_.queued = true;
    Status status = run_.memory->device()->LaunchKernel(
        run_.stream->get(), {run_.callable.kernels()[kernel], dims, args});
    if (status.ok()) return status;
    return std::move(status).Annotate(fmt::format("kernel {}", kernel));
  }

  const HostRun& run_;
  const std::span<const std::byte> encoded_;
  const ArgumentsView arguments_;
  Status refused_;
};

}  // namespace

Status OutcomeOf(std::int32_t code, std::string_view message) {
  if (code == 0) return OkStatus();
  auto status = static_cast<StatusCode>(code);
  if (code < 0 || status > StatusCode::kUnauthenticated || IsTheEngines(status)) {
    status = StatusCode::kUnknown;
  }
  if (message.empty()) return {status, fmt::format("its orchestration code returned {}", code)};
  return {status, std::string(message)};
}

Status RunOnHost(const HostRun& run, std::span<const std::byte> arguments) {
  return Call(run, arguments).Run();
}

}  // namespace keel::task
