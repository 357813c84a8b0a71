// For tests: a worker's program that has functions, by their names. It wants to be called with
// "serve" first.
//
//   twice   launches its kernel, keel_add, with its first tensor as both terms
//   count   fails, and says how often it was called
//   take    allocates 4 KiB of its device, and fails with the address
//   give    frees that
//   throw   is not found: looking for it throws
//   toss    the same, with what is no std::exception
//   crash   is not found: looking for it ends the process
#include <csignal>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "keel/memory/process_memory.h"
#include "keel/task/worker_main.h"

namespace keel::task {
namespace {

Status Twice(HostCall& call) {
  const ArgumentsView& arguments = call.arguments();
  const Tensor x = arguments.tensor(0);
  const Tensor sum = arguments.tensor(1);
  hal::LaunchDims dims;
  dims.block = {64, 1, 1};
  dims.grid = {static_cast<std::uint32_t>((sum.elements() + 63) / 64), 1, 1};
  const hal::KernelArg args[] = {
      hal::KernelArg::In(DeviceAddress(x.address), x.size()),
      hal::KernelArg::In(DeviceAddress(x.address), x.size()),
      hal::KernelArg::Out(DeviceAddress(sum.address), sum.size()),
      hal::KernelArg::Value(sum.elements()),
  };
  return call.Launch(0, dims, args);
}

// What "take" has.
DeviceAddress& Taken() {
  static DeviceAddress address;
  return address;
}
Status Take(HostCall& call) {
  KEEL_ASSIGN(Taken(), call.memory()->allocator().Allocate(4_KiB, call.stream()));
  return Status(StatusCode::kOutOfRange, std::to_string(Taken().value()));
}
Status Give(HostCall& call) { return call.memory()->allocator().Free(Taken()); }

Result<HostFunction> Find(std::span<const std::byte> reference) {
  const std::string_view name(reinterpret_cast<const char*>(reference.data()), reference.size());
  if (name == "twice") return HostFunction(Twice);
  if (name == "take") return HostFunction(Take);
  if (name == "give") return HostFunction(Give);
  if (name == "count") {
    return HostFunction([calls = std::make_shared<int>(0)](HostCall&) {
      return Status(StatusCode::kOutOfRange, std::to_string(++*calls));
    });
  }
  if (name == "throw") throw std::runtime_error("no luck");
  if (name == "toss") throw 7;  // NOLINT(hicpp-exception-baseclass)
  if (name == "crash") std::raise(SIGKILL);
  return NotFound("there is no function '" + std::string(name) + "'");
}

}  // namespace
}  // namespace keel::task

int main(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != "serve") return 3;
  return keel::task::RunWorker(argc - 1, argv + 1, keel::task::Find);
}
