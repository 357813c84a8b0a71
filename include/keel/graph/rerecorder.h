// Rerecorder: a program run as graphs without slots and bindings: recorded again in every step.
//
// It is what one does whose addresses move and who has only what a device's library offers: each
// step captures all commands at the addresses of the step, makes a launchable graph of that, or
// brings the one of the last step up to date, and launches it. Results are those of an Executable;
// the cost of a step is that of all its commands. It is here to be compared with, and for programs
// that run a few times only.
//
// Nothing here waits for the device. Graphs that are replaced, and those that go with this, are
// given back while launches of them may be queued, which the device layer allows; scratch memory
// goes back to the allocator, which keeps it from others until the streams are past its use.
//
// One thread's at a time. Streams that a step was launched on must outlive this. Steps on several
// streams are the caller's to put in order where they share bindings, and always where the program
// has scratch, of which there is one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/graph/program.h"
#include "keel/hal/graph.h"
#include "keel/hal/stream.h"
#include "keel/memory/process_memory.h"

namespace keel::graph {

// How a step gets from the captured graph to one that can be launched.
enum class Rerecording : std::uint8_t {
  kInstantiate,  // makes a new one, every time
  kUpdate,       // rewrites the kept one; makes a new one where the device refuses
};

struct RerecorderStats {
  std::uint64_t steps = 0;
  std::uint64_t captured = 0;      // graphs
  std::uint64_t instantiated = 0;  // of these
  std::uint64_t updated = 0;
};

class KEEL_EXPORT Rerecorder {
 public:
  // Takes the memory of scratch bindings. kUnimplemented: the device has no graphs, or
  // cannot update them.
  static Result<std::unique_ptr<Rerecorder>> Create(std::shared_ptr<const Program> program,
                                                    std::shared_ptr<memory::DeviceMemory> memory,
                                                    Rerecording how);
  ~Rerecorder();
  Rerecorder(const Rerecorder&) = delete;
  Rerecorder& operator=(const Rerecorder&) = delete;

  // Queues a step on the stream. `addresses` has one for each binding, in their order; those of
  // scratch are not looked at. Where the program has traced commands the first step runs without a
  // graph, because libraries want to have run before they are captured. kInvalidArgument names a
  // binding without an address. Graphs before an eager command may have been launched when what
  // comes after it fails.
  Status Run(hal::StreamHandle stream, std::span<const DeviceAddress> addresses);

  const RerecorderStats& stats() const { return stats_; }

 private:
  Rerecorder(std::shared_ptr<const Program> program, std::shared_ptr<memory::DeviceMemory> memory,
             Rerecording how);
  Status TakeScratch();
  Status RecordUse(hal::StreamHandle stream);
  // Commands [first, last) as graph number `index` of the step, launched.
  Status RunGraph(std::size_t index, std::size_t first, std::size_t last, hal::StreamHandle stream);
  Status Refresh(hal::GraphExec& exec, const hal::Graph& graph);

  const std::shared_ptr<const Program> program_;
  const std::shared_ptr<memory::DeviceMemory> memory_;
  const Rerecording how_;
  hal::Stream capture_stream_;
  hal::Stream memory_stream_;  // the scratch memory's: see SlotContext
  DeviceAddress scratch_;
  std::vector<hal::StreamHandle> scratch_users_;
  std::vector<DeviceAddress> addresses_;  // of the step; scratch has its own
  std::vector<hal::GraphExec> execs_;     // by graph of a step
  bool warm_;
  RerecorderStats stats_;
};

}  // namespace keel::graph
