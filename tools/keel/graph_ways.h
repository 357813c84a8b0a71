// The ways to run a program whose buffers move, for `keel bench graph`.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "keel/base/bytes.h"
#include "keel/base/deadline.h"
#include "keel/base/result.h"
#include "keel/graph/executable.h"
#include "keel/hal/device.h"
#include "keel/hal/module.h"
#include "keel/hal/stream.h"
#include "keel/memory/process_memory.h"

namespace keel::cli {

// How many of a program's bindings have another address in each step.
enum class Moving : std::uint8_t { kNone, kOne, kHalf, kAll };
// What is done about it; graph::Policy and what there is without Keel.
enum class Way : std::uint8_t {
  kBare,  // a graph made by hand and launched, whatever moves: what the others are measured by
  // That, with as many bytes copied as move, by the driver in one piece in and one out: what its
  // memory takes for them.
  kBareCopies,
  kEager,     // no graph: every kernel is launched
  kRerecord,  // captured and instantiated in every step
  kUpdate,    // captured in every step, the instantiated graph updated
  kResident,  // where nothing moves, as for kInPlace
  kInPlace,
  kCopy,
  kCopyTable,  // kCopy with one row more than go with the launch: the graph looks them up
  kPatch,
  kRemap,
  kRetrace,
  kAuto,
};
inline constexpr std::uint32_t kMostBindings = 64;
inline constexpr Bytes kSmallBuffer = 4_KiB;
inline constexpr Bytes kLargeBuffer = 1_MiB;
// Steps that are on their way at once: no more, so that nobody waits for a slot while the host's
// time is taken.
inline constexpr int kGraphSlots = 4;

// For what the benchmark waits for.
Deadline Patience();

struct GraphShape {
  std::uint32_t commands = 0;
  Moving moving = Moving::kNone;
  Bytes bytes;
  bool traced = false;
  Way way = Way::kBare;

  std::uint32_t bindings() const { return std::min(commands, kMostBindings); }
  std::uint32_t moving_bindings() const {
    switch (moving) {
      case Moving::kNone:
        return 0;
      case Moving::kOne:
        return 1;
      case Moving::kHalf:
        return bindings() / 2;
      case Moving::kAll:
        break;
    }
    return bindings();
  }
};

// The device, its memory and a kernel, for all cases.
struct GraphPlace {
  static Result<std::shared_ptr<GraphPlace>> Create(std::shared_ptr<hal::Device> device,
                                                    const memory::AllocatorConfig& config);

  std::shared_ptr<hal::Device> device;
  hal::Module module;
  hal::KernelHandle axpy;
  hal::KernelHandle spin;
  hal::Stream stream;
  std::shared_ptr<memory::DeviceMemory> memory;
};

// Where the bindings are. The first few move: each step they are one buffer further.
class GraphBuffers {
 public:
  GraphBuffers() = default;
  GraphBuffers(const GraphBuffers&) = delete;
  GraphBuffers& operator=(const GraphBuffers&) = delete;
  ~GraphBuffers();

  // Those that move are physical memory where that is remapped.
  Status Allocate(std::shared_ptr<GraphPlace> place, const GraphShape& shape);

  bool empty() const { return buffers_.empty(); }
  std::uint32_t moving() const { return moving_; }
  const graph::Buffer& At(std::uint32_t binding, std::uint64_t step) const {
    return binding < moving_ ? buffers_[(binding + step) % pool_]
                             : buffers_[pool_ + binding - moving_];
  }

 private:
  std::shared_ptr<GraphPlace> place_;
  std::uint32_t moving_ = 0;
  std::uint32_t pool_ = 0;
  std::vector<graph::Buffer> buffers_;
};

// One way to run the steps.
class GraphRunner {
 public:
  GraphRunner() = default;
  virtual ~GraphRunner() = default;
  GraphRunner(const GraphRunner&) = delete;
  GraphRunner& operator=(const GraphRunner&) = delete;
  // Queues one.
  virtual Status Step(std::uint64_t step) = 0;
  // By the last step.
  virtual Bytes copied() const { return Bytes(0); }
};

// kUnimplemented: the device cannot do it that way. The buffers are there as long as the runner.
Result<std::unique_ptr<GraphRunner>> MakeRunner(const std::shared_ptr<GraphPlace>& place,
                                                const GraphShape& shape,
                                                const GraphBuffers& buffers);

}  // namespace keel::cli
