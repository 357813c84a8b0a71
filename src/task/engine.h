// Engine: what a worker does, on the device that it owns. It knows nothing of transports: a worker
// thread calls it directly, a worker process calls it for what its messages ask.
//
// Tasks run on one stream, one at a time (Run is for one thread at a time, and for another one only
// after that one has left it for good). Everything else may be called from any thread meanwhile,
// and uses a stream of its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "keel/base/bytes.h"
#include "keel/base/deadline.h"
#include "keel/base/result.h"
#include "keel/memory/process_memory.h"
#include "keel/task/arguments.h"
#include "keel/task/host_function.h"
#include "keel/task/image.h"
#include "keel/task/orchestrator.h"

namespace keel::task {

struct EngineStats {
  std::uint64_t tasks = 0;
  std::uint64_t bytes_to_device = 0;
  std::uint64_t bytes_from_device = 0;
  std::uint64_t uploads = 0;    // what was there already, by another engine of the memory, is none
  std::uint64_t callables = 0;  // distinct ones that are registered now
  friend bool operator==(const EngineStats&, const EngineStats&) = default;
};

// A function as a callable, with its kernels; or, if there is none, an image.
struct HostCode {
  std::shared_ptr<const HostFunction> function;  // of this process
  Image kernels;                                 // of a function: without orchestration code
  // What a worker's program finds its own function by. Null: the function is of this process.
  std::shared_ptr<const std::vector<std::byte>> reference;
};

class Engine {
 public:
  static Result<std::unique_ptr<Engine>> Create(const std::shared_ptr<memory::DeviceMemory>& memory,
                                                Orchestration orchestration);
  // Gives everything back, blocks that were not freed included.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // --- Control: any thread -------------------------------------------------------------------

  Result<DeviceAddress> Allocate(Bytes size);
  // kInvalidArgument: not what Allocate returned, or freed before. The block is gone after every
  // error, which is then of something else: that somebody wrote beyond its end (debug:guards), say.
  Status Free(DeviceAddress address);
  // Done when they return.
  Status CopyTo(DeviceAddress destination, const void* source, Bytes size, Deadline deadline);
  Status CopyFrom(void* destination, DeviceAddress source, Bytes size, Deadline deadline);

  // Returns a number of this engine's. Equal images may get different numbers; they share the rest.
  Result<std::uint64_t> Register(const Image& image, Deadline deadline);
  // The same for a function: it runs instead of orchestration code, wherever that would run, and
  // nothing but its kernels is loaded.
  Result<std::uint64_t> RegisterFunction(const HostCode& code, Deadline deadline);
  // A task that runs keeps what it needs.
  Status Unregister(std::uint64_t callable);

  // --- Tasks: one thread ---------------------------------------------------------------------

  // Runs a callable and waits for it. Host tensors have addresses of this process here: they are
  // copied to temporary memory, in the order of their tags, and those that are written back from it
  // when the callable succeeded; resident ones are passed as they are, at their places. An error
  // leaves the host's tensors as they were, except a failed copy back. kNotFound: no such callable.
  // kDeadlineExceeded: the device still works on it; the engine must then be thrown away.
  // kCancelled: `killed`, which any thread may set meanwhile, was true before a copy; none of the
  // host's tensors was touched since. `arguments` are a block that passes Arguments::CheckBlock,
  // which orchestration code may be given as it is.
  Status Run(std::uint64_t callable, std::span<const std::byte> arguments, Deadline deadline,
             const std::atomic<bool>* killed = nullptr);

  EngineStats Stats() const;

 private:
  struct State;
  explicit Engine(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace keel::task
