// LaneWorker: the orchestrator's side of the lanes: a Worker whose peer, a thread, a process or a
// rank of MPI, serves the other (peer.h, serve.h). What is said here of a process holds for a rank.
//
// Tasks. Each has a number of this object's, and the answers must come in order. With a process the
// bytes of host tensors lie in the region's data from Post until Collect. If they are many a porter
// copies them, one for each direction: the message is kept until they have arrived, and so are all
// behind it, which Collect sends then; and a task that is answered stays until they are back.
//
// Control. Calls take turns, so that one request is under way at a time; a copy takes a turn for
// each piece, an image one for all. A call that gives up takes its number off the ticket, and then
// the worker never begins it. If the worker has begun, the call is left behind: the next one waits
// for its answer first, and undoes what it did (an allocation that nobody knows of). A process that
// has not answered it WorkerStart::call_grace after its deadline is lost, as one that hangs in a
// task is. With a thread, which works in the caller's own memory, a call that was begun is waited
// for: the engine observes its deadline; also if the worker is lost meanwhile.
//
// A task of a thread is given kThreadGrace beyond its deadline to say so itself, for the same
// reason. A thread that hangs for longer begins no copy of the tensors of its task any more; only
// one that is under way may still touch them.
//
// In a forked child every call is kFailedPrecondition, and nothing is given back.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "base/fork.h"
#include "task/peer.h"
#include "task/worker.h"

namespace keel::task {

using StartPeer = std::function<Result<std::unique_ptr<Peer>>()>;

class LaneWorker final : public Worker {
 public:
  static constexpr std::chrono::milliseconds kThreadGrace{200};

  // `start_peer` is called now and by every Restart. `device` is for messages.
  static Result<std::unique_ptr<Worker>> Create(std::string device, const WorkerStart& start,
                                                StartPeer start_peer, Deadline deadline);
  ~LaneWorker() override;

  Status Post(std::uint64_t task, std::uint64_t callable, const Arguments& arguments,
              Deadline deadline) override;
  bool TryPost(std::uint64_t task, std::uint64_t callable) override;
  void Wake() override;
  Status Fits(const Arguments& arguments) const override;
  void Collect(std::vector<TaskResult>& results) override;
  Sign NextAnswer() const override;
  std::size_t TakeDone() override;
  Deadline NextDeadline() const override;

  Result<DeviceAddress> Allocate(Bytes size, Deadline deadline) override;
  Status Free(DeviceAddress address, Deadline deadline) override;
  Status CopyTo(DeviceAddress destination, const void* source, Bytes size,
                Deadline deadline) override;
  Status CopyFrom(void* destination, DeviceAddress source, Bytes size, Deadline deadline) override;
  Result<std::uint64_t> Register(const Image& image, Deadline deadline) override;
  Result<std::uint64_t> RegisterFunction(const HostCode& code, Deadline deadline) override;
  Result<std::uint64_t> RegisterReference(const HostCode& code, Deadline deadline) override;
  Status Unregister(std::uint64_t callable, Deadline deadline) override;
  Result<EngineStats> Stats(Deadline deadline) override;

  std::string device() const override;
  const memory::DeviceMemory* memory() const override;
  Status Health() const override;
  Status Restart(Deadline deadline) override;
  void Stop(Deadline deadline) override;

  // For tests.
  Peer& peer();

 private:
  struct State;
  explicit LaneWorker(std::shared_ptr<State> state) : state_(std::move(state)) {}
  Status Here() const;
  // Why nothing can be posted now; OK: it can.
  Status WhyNot() const;

  const Home home_;
  const std::shared_ptr<State> state_;
};

}  // namespace keel::task
