// ScratchArena: one piece of device memory for the scratch bindings of several executables, of any
// shapes, whose steps follow each other.
//
// Scratch means nothing outside of its step, so steps that never run at once can share it. The
// arena sees to that: a step on another stream than the last one's comes after it, without the host
// waiting. Executables that should overlap have scratch of their own.
//
// Thread-safe. Streams must live until a step was launched on another, or the arena is gone.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "keel/base/bytes.h"
#include "keel/base/deadline.h"
#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/base/timed_mutex.h"
#include "keel/graph/replay_report.h"
#include "keel/hal/stream.h"
#include "keel/memory/event_pool.h"
#include "keel/memory/process_memory.h"

namespace keel::graph {

class KEEL_EXPORT ScratchArena {
 public:
  // Of the size of the largest need (Program::scratch_bytes says what a program needs).
  static Result<std::shared_ptr<ScratchArena>> Create(
      std::shared_ptr<memory::DeviceMemory> memory, Bytes size,
      std::chrono::milliseconds patience = std::chrono::seconds(10));
  // Waits for the last step, for as long as `patience` says. What still runs then keeps the memory
  // until the device's retry list finds it done (retry_list.h). While the last step's stream is
  // being captured nothing can be known of it: the memory is lost, and a warning says so.
  ~ScratchArena();
  ScratchArena(const ScratchArena&) = delete;
  ScratchArena& operator=(const ScratchArena&) = delete;

  const std::shared_ptr<memory::DeviceMemory>& memory() const { return memory_; }
  DeviceAddress address() const { return address_; }
  Bytes size() const { return size_; }

  // --- For executables ---------------------------------------------------------------------

  // Calls `queue_step`, which puts a step on the stream, after what came before it there and in the
  // arena. Nobody else's is called meanwhile, which is waited for until the deadline and then
  // reported.
  Status InTurn(hal::StreamHandle stream, Deadline deadline, ReplayReport& report,
                const std::function<Status()>& queue_step) KEEL_EXCLUDES(mutex_);

 private:
  ScratchArena(std::shared_ptr<memory::DeviceMemory> memory, hal::Stream stream,
               std::chrono::milliseconds patience)
      : memory_(std::move(memory)), stream_(std::move(stream)), patience_(patience) {}
  // Recorded behind the last step; nothing, if there was none.
  Result<memory::PooledEvent> MarkLast() KEEL_EXCLUDES(mutex_);
  static Status GiveBack(memory::DeviceMemory& memory, DeviceAddress address,
                         hal::StreamHandle stream);

  const std::shared_ptr<memory::DeviceMemory> memory_;
  hal::Stream stream_;  // that the memory was allocated for
  const std::chrono::milliseconds patience_;
  DeviceAddress address_;
  Bytes size_;
  TimedMutex mutex_;                                // also while a step's functions are called
  hal::StreamHandle last_ KEEL_GUARDED_BY(mutex_);  // that has a step
};

}  // namespace keel::graph
