// Program: what a stream runs, in a form that owns all it needs. A command of the device layer
// (keel/hal/command.h) refers to its caller's arguments and to handles; a StoredCommand has copies
// of the first and the objects behind the second, so it can wait in a queue or a graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "drivers/sim/kernel_registry.h"
#include "keel/hal/command.h"

namespace keel::sim {

struct StoredKernel {
  std::shared_ptr<const Kernel> kernel;
  hal::LaunchDims dims;
  std::vector<hal::KernelArg> args;
  // What the large values of `args` refer to. Copies of the launch share it, and nobody writes it.
  std::shared_ptr<const std::byte[]> values;
};

// One side of a copy: an address of the device with this ordinal, or host memory.
struct CopySide {
  static constexpr int kHost = -1;
  int ordinal = kHost;
  std::uint64_t address = 0;
};

struct StoredCopy {
  CopySide destination;
  CopySide source;
  Bytes size;
  // Host memory that is not pinned: the caller keeps the destination alive by waiting, the source
  // was read when the copy was queued.
  bool pageable_destination = false;
  std::vector<std::byte> staged_source;
};

struct Program;

// The same order as hal::Command: an index means the same kind in both.
using StoredCommand =
    std::variant<hal::EmptyNode, StoredKernel, StoredCopy, hal::Fill, hal::HostCall,
                 hal::ValueWrite, hal::ValueWait, std::shared_ptr<const Program>>;
static_assert(std::variant_size_v<StoredCommand> == std::variant_size_v<hal::Command>);

// A graph's nodes, in an order in which they can run: dependencies point backwards.
struct Program {
  struct Node {
    StoredCommand command;
    // Whose addresses the command means: a capture may join streams of several devices.
    int ordinal = 0;
    std::vector<std::uint32_t> dependencies;
  };
  std::vector<Node> nodes;
};

}  // namespace keel::sim
