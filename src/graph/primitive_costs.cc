#include "keel/graph/primitive_costs.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "base/fork.h"
#include "graph/layout.h"
#include "keel/base/mutex.h"
#include "keel/base/timed_mutex.h"
#include "keel/hal/event.h"
#include "keel/hal/graph.h"
#include "keel/hal/memory.h"
#include "keel/hal/module.h"
#include "keel/hal/owned_handle.h"
#include "keel/hal/standard_kernels.h"
#include "keel/hal/stream.h"
#include "keel/memory/device_buffer.h"

namespace keel::graph {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kTurns = 5;
constexpr std::uint64_t kCopied = 8 << 20;
// More than a device's cache has room for, or copies would seem to cost a third. A simulated one
// has none.
constexpr std::uint64_t kCopiedBeyondCaches = 64 << 20;
constexpr std::uint64_t kPieceSize = 32 << 10;

double UsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

// The least of a few: whatever else the machine did is not the primitive's.
template <class F>
Result<double> Least(F measure) {
  double least = 0;
  for (int i = 0; i < kTurns; ++i) {
    KEEL_ASSIGN(const double us, measure());
    least = i == 0 ? us : std::min(least, us);
  }
  return least;
}

// Two buffers, and the kernel that copies one to the other.
class Bench {
 public:
  // `deadline` is that of all waits but Close's.
  Bench(std::shared_ptr<memory::DeviceMemory> memory, Deadline deadline)
      : memory_(std::move(memory)), deadline_(deadline) {}

  // Before anything else.
  Status Prepare() {
    KEEL_ASSIGN(stream_, hal::Stream::Create(memory_->device()));
    KEEL_ASSIGN(module_, hal::Module::LoadStandard(memory_->device()));
    KEEL_ASSIGN(copy_, module_.Find(hal::kernels::kCopyTable));
    const hal::StreamHandle stream = stream_.get();
    const memory::AllocationOptions options{.deadline = deadline_};
    KEEL_ASSIGN(const DeviceAddress bytes, MakeBytes());
    std::vector<CopyPiece> pieces;
    for (std::uint64_t at = 0; at < copied_; at += kPieceSize) {
      pieces.push_back({.row = 0, .offset = at, .size = kPieceSize});
    }
    count_ = pieces.size();
    KEEL_ASSIGN(pieces_,
                memory::DeviceBuffer<CopyPiece>::Create(memory_, stream, pieces.size(), options));
    KEEL_TRY(pieces_.CopyFrom(pieces, 0, deadline_));
    KEEL_ASSIGN(rows_, memory::DeviceBuffer<CopyRow>::Create(memory_, stream, 1, options));
    const CopyRow row{.destination = bytes.value(), .source = bytes.value() + copied_};
    return rows_.CopyFrom(std::span(&row, 1), 0, deadline_);
  }

  // Of a copy of so many pieces, on the device.
  Result<double> CopyUs(std::uint64_t pieces) {
    return Least([&]() -> Result<double> {
      KEEL_TRY(stream_.Synchronize(deadline_));
      const Clock::time_point begin = Clock::now();
      const std::array arguments = Arguments(pieces);
      KEEL_TRY(memory_->device()->LaunchKernel(stream_.get(), Launch(pieces, arguments)));
      KEEL_TRY(stream_.Synchronize(deadline_));
      return UsSince(begin);
    });
  }

  // Of a kernel that copies one piece, behind another of its kind in a graph.
  Result<double> NodeUs() {
    constexpr int kNodes = 32;
    KEEL_ASSIGN(const double one, ChainUs(1));
    KEEL_ASSIGN(const double many, ChainUs(kNodes));
    return std::max(many - one, 0.0) / (kNodes - 1);
  }

  Result<double> PatchUs() {
    constexpr int kPatches = 16;
    hal::Device& device = *memory_->device();
    KEEL_ASSIGN(const hal::Graph graph, hal::Graph::Create(memory_->device()));
    const std::array arguments = Arguments(1);
    KEEL_ASSIGN(const hal::NodeHandle node, device.AddNode(graph.get(), {}, Launch(1, arguments)));
    KEEL_ASSIGN(const hal::GraphExec exec, hal::GraphExec::Create(graph));
    // As a step finds it: what was never launched is rewritten otherwise, and not as fast.
    KEEL_TRY(exec.Launch(stream_.get()));
    KEEL_TRY(stream_.Synchronize(deadline_));
    return Least([&]() -> Result<double> {
      const Clock::time_point begin = Clock::now();
      for (int i = 0; i < kPatches; ++i) {
        KEEL_TRY(device.SetNodeParams(exec.get(), node, Launch(1, arguments)));
      }
      return UsSince(begin) / kPatches;
    });
  }

  // Of two handles that take turns at an address.
  Result<double> RemapUs() {
    const std::shared_ptr<hal::Device>& device = memory_->device();
    const Bytes size = device->capabilities().granularity.minimum;
    const hal::AccessGrant grant{.device = device->id(), .access = hal::Access::kReadWrite};
    KEEL_ASSIGN(const hal::AddressRange range, hal::AddressRange::Create(device, size));
    KEEL_ASSIGN(const hal::PhysicalMemory one, hal::PhysicalMemory::Create(device, size));
    KEEL_ASSIGN(const hal::PhysicalMemory other, hal::PhysicalMemory::Create(device, size));
    hal::Mapping mapping;
    KEEL_ASSIGN(mapping, hal::Mapping::Create(range, Offset(0), one, {&grant, 1}));
    bool turn = false;
    return Least([&]() -> Result<double> {
      turn = !turn;
      const Clock::time_point begin = Clock::now();
      KEEL_TRY(mapping.Close());
      KEEL_ASSIGN(mapping, hal::Mapping::Create(range, Offset(0), turn ? other : one, {&grant, 1}));
      return UsSince(begin);
    });
  }

  // Its memory is its stream's, which may still work with it. May be tried again.
  Status Close(Deadline deadline) {
    if (!stream_) return OkStatus();
    KEEL_TRY(stream_.Synchronize(deadline));
    KEEL_TRY(large_.Close());
    KEEL_TRY(small_.Close());
    KEEL_TRY(pieces_.Close());
    KEEL_TRY(rows_.Close());
    return memory_->allocator().ForgetStream(stream_.get());
  }

  std::uint64_t count() const { return count_; }
  std::uint64_t copied() const { return copied_; }

 private:
  // What is copied, and where to. The large one is the device's again afterwards, without anybody
  // having waited; a device that has no room for it is measured by a small one.
  Result<DeviceAddress> MakeBytes() {
    const std::shared_ptr<hal::Device>& device = memory_->device();
    if (device->capabilities().virtual_memory && !device->info().simulated) {
      Result<hal::MappedMemory> large =
          hal::MappedMemory::Create(device, Bytes(2 * kCopiedBeyondCaches));
      if (large.ok()) {
        large_ = *std::move(large);
        copied_ = kCopiedBeyondCaches;
        return large_.address();
      }
      if (large.status().code() != StatusCode::kResourceExhausted) return large.status();
    }
    KEEL_ASSIGN(small_, memory::DeviceBuffer<std::byte>::Create(memory_, stream_.get(), 2 * kCopied,
                                                                {.deadline = deadline_}));
    copied_ = kCopied;
    return small_.address();
  }

  Result<double> ChainUs(int nodes) {
    KEEL_ASSIGN(const hal::Graph graph, hal::Graph::Create(memory_->device()));
    const std::array arguments = Arguments(1);
    std::vector<hal::NodeHandle> before;
    for (int i = 0; i < nodes; ++i) {
      KEEL_ASSIGN(const hal::NodeHandle node,
                  memory_->device()->AddNode(graph.get(), before, Launch(1, arguments)));
      before = {node};
    }
    KEEL_ASSIGN(const hal::GraphExec exec, hal::GraphExec::Create(graph));
    return Least([&]() -> Result<double> {
      KEEL_TRY(stream_.Synchronize(deadline_));
      const Clock::time_point begin = Clock::now();
      KEEL_TRY(exec.Launch(stream_.get()));
      KEEL_TRY(stream_.Synchronize(deadline_));
      return UsSince(begin);
    });
  }
  std::array<hal::KernelArg, 3> Arguments(std::uint64_t pieces) const {
    return {hal::KernelArg::In(pieces_.address(), Bytes(pieces * sizeof(CopyPiece))),
            hal::KernelArg::In(rows_.address(), Bytes(sizeof(CopyRow))),
            hal::KernelArg::Value(pieces)};
  }
  hal::KernelLaunch Launch(std::uint64_t pieces, std::span<const hal::KernelArg> arguments) const {
    return {.kernel = copy_,
            .dims = {.grid = {static_cast<std::uint32_t>(pieces), 1, 1}, .block = {256, 1, 1}},
            .args = arguments};
  }

  const std::shared_ptr<memory::DeviceMemory> memory_;
  const Deadline deadline_;
  hal::Stream stream_;
  hal::Module module_;
  hal::KernelHandle copy_;
  hal::MappedMemory large_;
  memory::DeviceBuffer<std::byte> small_;
  memory::DeviceBuffer<CopyPiece> pieces_;
  memory::DeviceBuffer<CopyRow> rows_;
  std::uint64_t count_ = 0;   // of pieces
  std::uint64_t copied_ = 0;  // bytes, in all of them
};

// Each device's under a lock of its own: measuring takes as long as the device does, which may
// hang.
struct Kept {
  struct OfDevice {
    TimedMutex mutex;
    std::optional<PrimitiveCosts> costs KEEL_GUARDED_BY(mutex);
  };
  OfDevice& At(hal::DeviceId device) KEEL_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    return devices[device];
  }

  Mutex mutex;
  std::map<hal::DeviceId, OfDevice> devices KEEL_GUARDED_BY(mutex);  // none ever goes
};
Kept& KeptCosts() {
  static constinit PerProcess<Kept> kept;
  return kept.Get();
}

}  // namespace

Result<PrimitiveCosts> MeasurePrimitiveCosts(const std::shared_ptr<memory::DeviceMemory>& memory,
                                             Deadline deadline) {
  const hal::Capabilities& can = memory->device()->capabilities();
  PrimitiveCosts costs;
  const auto kept = std::make_shared<Bench>(memory, deadline);
  Bench& bench = *kept;
  const auto measure = [&]() -> Status {
    KEEL_TRY(bench.Prepare());
    KEEL_ASSIGN(const double little, bench.CopyUs(1));
    KEEL_ASSIGN(const double much, bench.CopyUs(bench.count()));
    // What the launch and the wait take is in both.
    costs.copy_bytes_per_us = static_cast<double>(bench.copied()) / std::max(much - little, 0.1);
    if (can.graphs) {
      KEEL_ASSIGN(const double node, bench.NodeUs());
      costs.copy_step_us = 2 * node;
    }
    if (can.node_update) {
      KEEL_ASSIGN(costs.patch_us, bench.PatchUs());
    }
    if (can.virtual_memory) {
      const Result<double> remap_us = bench.RemapUs();
      // Without room for two handles it stays out of reach.
      if (remap_us.ok()) {
        costs.remap_us = *remap_us;
      } else if (remap_us.status().code() != StatusCode::kResourceExhausted) {
        return remap_us.status();
      }
    }
    return OkStatus();
  };
  Status status = measure();
  Status closed = bench.Close(deadline);
  if (!closed.ok()) {
    hal::internal::LeaveForRetry(*memory->device(), closed,
                                 "memory that a device was measured with, which may still use it",
                                 [kept] { return kept->Close(Deadline::Now()); });
  }
  KEEL_TRY(status);
  KEEL_TRY(closed);
  return costs;
}

Result<PrimitiveCosts> CostsOf(const std::shared_ptr<memory::DeviceMemory>& memory,
                               Deadline deadline) {
  KEEL_TRY(memory->device()->Health());
  Kept::OfDevice& kept = KeptCosts().At(memory->device()->id());
  if (!kept.mutex.LockBefore(deadline)) {
    return DeadlineExceeded("another thread was not done in time with measuring the same device");
  }
  const TimedMutexUnlocker unlocker(kept.mutex);
  if (!kept.costs) {
    KEEL_ASSIGN(kept.costs, MeasurePrimitiveCosts(memory, deadline));
  }
  return *kept.costs;
}

}  // namespace keel::graph
