#include "graph/commands.h"

#include <utility>

namespace keel::graph {
namespace {

DeviceAddress At(const Operand& operand, std::span<const DeviceAddress> addresses) {
  return addresses[operand.binding.index] + operand.offset;
}

hal::KernelArg ArgumentAt(const Argument& argument, std::span<const DeviceAddress> addresses) {
  if (const auto* value = std::get_if<hal::KernelArg>(&argument.get())) return *value;
  const Operand& operand = std::get<Operand>(argument.get());
  const DeviceAddress address = At(operand, addresses);
  switch (operand.access) {
    case hal::Access::kWrite:
      return hal::KernelArg::Out(address, operand.extent);
    case hal::Access::kReadWrite:
      return hal::KernelArg::InOut(address, operand.extent);
    case hal::Access::kNone:
    case hal::Access::kRead:
      break;
  }
  return hal::KernelArg::In(address, operand.extent);
}

}  // namespace

hal::Command CommandAt(const ProgramCommand& command, std::span<const DeviceAddress> addresses,
                       hal::DeviceId device, std::vector<hal::KernelArg>& arguments) {
  if (const auto* kernel = std::get_if<command::Kernel>(&command)) {
    arguments.clear();
    for (const Argument& argument : kernel->arguments) {
      arguments.push_back(ArgumentAt(argument, addresses));
    }
    return hal::KernelLaunch{.kernel = kernel->kernel, .dims = kernel->dims, .args = arguments};
  }
  if (const auto* copy = std::get_if<command::Copy>(&command)) {
    return hal::Copy{.destination = hal::Location::On(device, At(copy->destination, addresses)),
                     .source = hal::Location::On(device, At(copy->source, addresses)),
                     .size = copy->destination.extent};
  }
  if (const auto* fill = std::get_if<command::Fill>(&command)) {
    return hal::Fill{.destination = At(fill->destination, addresses),
                     .value = fill->value,
                     .width = fill->width,
                     .count = fill->destination.extent.count() / fill->width};
  }
  if (const auto* call = std::get_if<command::Call>(&command)) return call->call;
  return hal::EmptyNode{};
}

Status Enqueue(hal::Device& device, hal::StreamHandle stream, const ProgramCommand& command,
               std::span<const DeviceAddress> addresses, bool capturing) {
  const auto call = [&](const std::string& name, const TraceFunction& function) {
    Status status = function(TraceContext(device, stream, addresses, capturing));
    return status.ok() ? status : std::move(status).Annotate("'" + name + "'");
  };
  if (const auto* traced = std::get_if<command::Traced>(&command)) {
    return call(traced->name, traced->function);
  }
  if (const auto* eager = std::get_if<command::Eager>(&command)) {
    return call(eager->name, eager->function);
  }
  std::vector<hal::KernelArg> arguments;
  const hal::Command made = CommandAt(command, addresses, device.id(), arguments);
  if (const auto* launch = std::get_if<hal::KernelLaunch>(&made)) {
    return device.LaunchKernel(stream, *launch);
  }
  if (const auto* copy = std::get_if<hal::Copy>(&made)) return device.EnqueueCopy(stream, *copy);
  if (const auto* fill = std::get_if<hal::Fill>(&made)) return device.EnqueueFill(stream, *fill);
  return device.CallHost(stream, std::get<hal::HostCall>(made));
}

}  // namespace keel::graph
