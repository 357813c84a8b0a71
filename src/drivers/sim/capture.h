// Captures: recording what streams are told to do instead of doing it.
//
// A capture begins on one stream and spreads to others that wait for an event recorded in it. Each
// stream in it has a frontier: the nodes that its next command depends on. CaptureRegistry holds
// every capture that is open on a machine, and decides which calls break one.
//
// One lock for all captures: recording is rare and short, and an unsafe call must look at all of
// them. Streams and events keep their part of the state (SimStream::capture, SimEvent) under it.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "drivers/sim/graph.h"
#include "drivers/sim/stream.h"
#include "drivers/sim/ticket.h"
#include "keel/base/mutex.h"
#include "keel/base/result.h"
#include "keel/hal/types.h"

namespace keel::sim {

// Guarded by the registry's lock.
class Capture {
 public:
  hal::CaptureMode mode = hal::CaptureMode::kGlobal;
  std::thread::id thread;
  SimStream* origin = nullptr;
  std::shared_ptr<SimGraph> graph = std::make_shared<SimGraph>();
  std::vector<std::weak_ptr<SimStream>> members;
  bool over = false;
  std::string broken_by;  // empty: it is well
};

// An event stands for a ticket, or for nodes of a capture.
struct SimEvent {
  SimEvent(SimDevice& event_device, bool event_timing)
      : device(event_device), timing(event_timing) {}
  SimDevice& device;
  const bool timing;
  Mutex mutex;
  std::shared_ptr<Ticket> ticket KEEL_GUARDED_BY(mutex);  // null: never recorded
  // Guarded by the registry's lock. Null: not last recorded in a capture.
  std::shared_ptr<Capture> capture;
  std::vector<hal::NodeHandle> nodes;
  std::atomic<bool> captured{false};  // a hint without the lock
};

class CaptureRegistry {
 public:
  Status Begin(const std::shared_ptr<SimStream>& stream, hal::CaptureMode mode)
      KEEL_EXCLUDES(mutex_);
  Result<std::shared_ptr<SimGraph>> End(SimStream& stream) KEEL_EXCLUDES(mutex_);
  hal::CaptureState State(const SimStream& stream) KEEL_EXCLUDES(mutex_);
  Result<std::vector<hal::NodeHandle>> Frontier(const SimStream& stream) KEEL_EXCLUDES(mutex_);

  // Adds the command to the stream's capture. False: the stream does not capture (any more).
  Result<bool> Append(SimStream& stream, StoredCommand& command) KEEL_EXCLUDES(mutex_);
  // False: neither takes part in a capture, so the caller does the real thing.
  Result<bool> Record(SimStream& stream, SimEvent& event) KEEL_EXCLUDES(mutex_);
  Result<bool> Wait(const std::shared_ptr<SimStream>& stream, SimEvent& event)
      KEEL_EXCLUDES(mutex_);

  // For calls that are unsafe in a capture: refuses, and breaks the captures that forbid it.
  Status CheckUnsafe(std::string_view primitive) KEEL_EXCLUDES(mutex_);
  // For calls that contradict the capture of their own argument.
  Status CheckStream(const SimStream& stream, std::string_view primitive) KEEL_EXCLUDES(mutex_);
  Status CheckEvent(SimEvent& event, std::string_view primitive) KEEL_EXCLUDES(mutex_);

  // A device closes: its captures are over.
  void Forget(const SimDevice& device) KEEL_EXCLUDES(mutex_);

 private:
  // The stream's open capture; null if it is not part of one.
  static Capture* Of(const SimStream& stream);
  void OverLocked(Capture& capture) KEEL_REQUIRES(mutex_);
  static void Break(Capture& capture, std::string_view call);

  Mutex mutex_;
  std::vector<std::shared_ptr<Capture>> open_ KEEL_GUARDED_BY(mutex_);
  std::atomic<int> open_count_{0};
};

}  // namespace keel::sim
