// A worker on a rank of an MPI run, as a Peer.
#include "task/peer.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "task/lane_worker.h"
#include "task/mpi/bridge.h"

namespace keel::task {
namespace mpi {
namespace {

class MpiPeer final : public Peer {
 public:
  MpiPeer(Bridge& bridge, std::string name, std::shared_ptr<Session> session)
      : Peer(session->lost_flag()),
        bridge_(bridge),
        name_(std::move(name)),
        session_(std::move(session)) {}
  ~MpiPeer() override { Kill(); }

  Region& region() override { return session_->region(); }
  DataArea* data() override { return &session_->data(); }
  std::string name() const override { return name_; }
  Status Ended() const override { return session_->Ended(); }
  void Kill() override { bridge_.Kill(session_); }
  bool WaitEnded(Deadline deadline) override { return session_->WaitOver(deadline); }
  int process() const override { return 0; }

 private:
  Bridge& bridge_;
  const std::string name_;
  const std::shared_ptr<Session> session_;
};

// A worker that is started again waits so long for the one before it.
constexpr auto kFormer = std::chrono::seconds(10);

Result<std::unique_ptr<Peer>> StartPeer(const WorkerStart& start) {
  const int rank = static_cast<int>(start.index) + 1;
  const Deadline deadline = Deadline::After(kFormer);
  KEEL_ASSIGN(Bridge* const bridge, Bridge::Get(deadline));
  KEEL_ASSIGN(std::string name, bridge->NameOf(rank, deadline));
  KEEL_ASSIGN(std::shared_ptr<Session> session, bridge->Start(rank, start, deadline));
  return std::unique_ptr<Peer>(
      std::make_unique<MpiPeer>(*bridge, std::move(name), std::move(session)));
}

}  // namespace
}  // namespace mpi

Result<std::unique_ptr<Worker>> StartMpiWorker(const WorkerStart& start, Deadline deadline) {
  // MPI itself takes its time, once.
  KEEL_ASSIGN(mpi::Bridge* const bridge, mpi::Bridge::Get(deadline));
  KEEL_TRY(bridge->NameOf(static_cast<int>(start.index) + 1, deadline).status());
  return LaneWorker::Create(
      start.options.device.empty() ? "default" : start.options.device, start,
      [start] { return mpi::StartPeer(start); }, deadline);
}

}  // namespace keel::task
