// HostFunction: a function of this process in the place of orchestration code (Orchestrator::
// Register). It launches kernels, or puts other work on the worker's stream, for each task.
//
//   ImageBuilder kernels;
//   kernels.AddKernel(kernels.AddRegisteredPart("keel"), "keel_add");
//   KEEL_ASSIGN(const Image image, kernels.BuildKernels());
//   KEEL_ASSIGN(const Callable add, orchestrator->Register(
//       [](HostCall& call) -> Status {
//         const ArgumentsView& arguments = call.arguments();
//         ...
//         return call.Launch(0, dims, args);
//       },
//       image));
//
// It runs in the thread of a worker, one task at a time for each worker, and on several workers at
// a time. After a timeout the worker goes on in another thread, while the function may still run in
// the old one: what it launches from then on is kCancelled. It may use every function of the
// orchestrator but those that wait for its own task. What it returns is the outcome of the task;
// but for kUnavailable, kDeadlineExceeded and kDeviceLost, which are the worker's to say and become
// kUnknown with the same message. What it throws is kUnknown too. It lives until it is unregistered
// and its last task has ended, and is destroyed by any thread, with no lock of Keel's held.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "keel/base/deadline.h"
#include "keel/base/result.h"
#include "keel/hal/command.h"
#include "keel/task/arguments.h"

namespace keel::memory {
class DeviceMemory;
}  // namespace keel::memory

namespace keel::task {

// What the function is given, by the thread that calls it. Valid during the call.
class HostCall {
 public:
  HostCall(const HostCall&) = delete;
  HostCall& operator=(const HostCall&) = delete;

  // Every tensor has an address of the device by now, whether it was there before or was copied for
  // this call.
  virtual const ArgumentsView& arguments() const = 0;
  // Of the image that the function was registered with.
  virtual std::uint32_t kernel_count() const = 0;
  // Launches a kernel by its number, in the order of the calls. A launch that was refused makes the
  // task fail even if the function ignores it.
  virtual Status Launch(std::uint32_t kernel, const hal::LaunchDims& dims,
                        std::span<const hal::KernelArg> args) = 0;
  // Makes the task fail so, if nothing else did before: for a launch that did not get as far.
  virtual void Refuse(const Status& why) = 0;

  // Where the task runs. What is put on the stream is waited for before the task ends.
  virtual const std::shared_ptr<memory::DeviceMemory>& memory() const = 0;
  virtual hal::StreamHandle stream() const = 0;
  // Whoever has memory that was allocated for the stream after the call holds this as long.
  virtual std::shared_ptr<const void> stream_owner() const = 0;
  // When the worker is given up.
  virtual Deadline deadline() const = 0;

 protected:
  HostCall() = default;
  ~HostCall() = default;
};

using HostFunction = std::function<Status(HostCall& call)>;

}  // namespace keel::task
