// The checks of a command's arguments that are the same for every driver: what the contracts of
// keel/hal/device.h say about numbers, before any device is asked. Errors name the argument.
#pragma once

#include <span>

#include "keel/base/status.h"
#include "keel/hal/command.h"

namespace keel::hal {

// Width, value, alignment, and that the range is one. A count of zero is fine.
Status CheckFill(const Fill& fill);

// That both ranges are ranges, that host pointers are not null and, where both sides have the same
// address space, that they do not overlap. Zero bytes are fine.
Status CheckCopy(const Copy& copy, bool same_space);

// Of a value write or wait: aligned to its 8 bytes.
Status CheckValueAddress(DeviceAddress address);

// Of a launch: together no more than KernelArg::kMaxArguments, and no value is at a null pointer.
Status CheckArguments(std::span<const KernelArg> arguments);

}  // namespace keel::hal
