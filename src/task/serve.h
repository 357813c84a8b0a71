// Server: the worker's side of the lanes: an Engine that does what comes in, in a thread of this
// process or in a process of its own.
//
// The thread that calls Main opens the engine, greets, and answers control requests; a second one
// runs tasks. They share the engine and nothing else.
//
// It ends when it is told to (kStop, or Stop), after the task that runs and before those that wait;
// and it gives up, which it says through `give_up`, when the lanes are damaged, when a message
// makes no sense, when the device is lost, and when a task was not done by its deadline, because
// the device may still work on it.
//
// A request is begun only if its number is still on the ticket (region.h); otherwise the
// orchestrator no longer waits for it, and there is no answer: answers that nobody reads would fill
// the lane.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "keel/base/result.h"
#include "keel/memory/process_memory.h"
#include "keel/task/orchestrator.h"
#include "keel/task/worker_main.h"
#include "task/engine.h"
#include "task/lane.h"
#include "task/messages.h"
#include "task/region.h"

namespace keel::task {

// Set on the ticket by the worker that has begun the request.
inline constexpr std::uint64_t kBegun = std::uint64_t{1} << 63;

// How long a wait in memory that a peer can damage lasts before it looks again by itself.
inline constexpr std::chrono::milliseconds kLookAgain{500};

class Server {
 public:
  struct Options {
    std::shared_ptr<Region> region;
    // Called once, by Main: a device that cannot be opened is an error of the greeting.
    std::function<Result<std::shared_ptr<memory::DeviceMemory>>()> open;
    Orchestration orchestration = Orchestration::kAuto;
    bool in_place = false;           // places are addresses of this process
    FindFunction find;               // null: this program has no functions
    std::function<void()> answered;  // wakes who waits for a task
    // Any of the two threads. It need not return.
    std::function<void(const Status&)> give_up;
  };
  explicit Server(Options options);

  // Returns when both threads have ended; the engine is gone then.
  void Main();
  // Any thread. Does not wait.
  void Stop();
  // And the task that runs no longer touches tensors of the host, but for a copy that is under way.
  void Kill();

 private:
  void ServeControl();
  void ServeTasks();
  void ServeTasksUntilTheEnd();
  // Gives up if the device is lost: false.
  bool HasDevice();
  Reply Do(const Request& request);
  Result<std::uint64_t> Register(const Request& request);
  Result<std::uint64_t> RegisterReference(const Request& request);
  // The bytes of a control request. kInvalidArgument: the place is not in the window.
  Result<std::byte*> HostBytes(const Request& request);
  // Host tensors get addresses of this process. Of one that is not in place.
  Status Localize(std::span<std::byte> arguments);
  void GiveUp(const Status& why);

  const Options options_;
  std::shared_ptr<memory::DeviceMemory> memory_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::byte> image_;  // the parts so far; the control thread's
  LaneWriter control_replies_;    // the control thread's
  std::atomic<bool> stopping_{false};
  std::atomic<bool> killed_{false};
};

}  // namespace keel::task
