// A program's explicit commands at given addresses: as the device layer takes them.
#pragma once

#include <span>
#include <vector>

#include "keel/base/result.h"
#include "keel/graph/program.h"
#include "keel/hal/device.h"

namespace keel::graph {

// Traced and eager commands have none. The result refers to `arguments`, which it fills.
hal::Command CommandAt(const ProgramCommand& command, std::span<const DeviceAddress> addresses,
                       hal::DeviceId device, std::vector<hal::KernelArg>& arguments);

// Puts any command on a stream, traced and eager ones by calling them.
Status Enqueue(hal::Device& device, hal::StreamHandle stream, const ProgramCommand& command,
               std::span<const DeviceAddress> addresses, bool capturing);

}  // namespace keel::graph
