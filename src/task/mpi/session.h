// Session: one worker on a rank, as the orchestrator's process has it: the region that a LaneWorker
// writes to and reads from, and what of it is under way to the rank or back.
//
// What the LaneWorker writes into the lanes is sent (Forward), and what comes back is written into
// the other two. To the LaneWorker that is a worker process: a control request counts as begun when
// it is sent.
//
// Two threads: that of the bridge (bridge.h), which alone has MPI, and any for what says so.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "keel/base/deadline.h"
#include "keel/base/mutex.h"
#include "keel/base/result.h"
#include "task/answers.h"
#include "task/data_area.h"
#include "task/lane.h"
#include "task/messages.h"
#include "task/mpi/frames.h"
#include "task/region.h"
#include "task/worker.h"

namespace keel::task::mpi {

class Session {
 public:
  Session(int rank, std::uint64_t id, std::shared_ptr<Region> region,
          std::shared_ptr<Doorbell> doorbell);

  // --- Any thread ----------------------------------------------------------------------------

  int rank() const { return rank_; }
  std::uint64_t id() const { return id_; }
  Region& region() { return *region_; }
  DataArea& data() { return data_; }
  // OK, or why the worker is lost.
  Status Ended() const;
  // Whether the rank has nothing of it any more. False: the deadline.
  bool WaitOver(Deadline deadline);
  bool over() const;
  // Whether Ended says why; costs nothing.
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  const std::atomic<bool>& lost_flag() const { return lost_; }

  // --- The bridge's thread -------------------------------------------------------------------

  // Sends what is in the lanes. True: there was something. kInternal: it made no sense.
  Result<bool> Forward(Outbox& outbox);
  // Where the bytes of an answer go. An error: it makes no sense.
  Result<std::vector<Piece>> ExpectTaskReply(std::span<const std::byte> message);
  Result<std::vector<Piece>> ExpectControlReply(std::span<const std::byte> message);
  // The answer, with its bytes, is there: into the lane.
  Status DeliverTaskReply(std::span<const std::byte> message);
  Status DeliverControlReply(std::span<const std::byte> message);
  // So many have been delivered.
  std::uint64_t task_replies() const { return task_replies_; }
  std::uint64_t control_replies() const { return control_replies_; }
  // Whether a rank that says that it gave so many in all may be right.
  bool CanHaveGiven(std::uint64_t task_replies, std::uint64_t control_replies) const {
    return task_replies <= task_replies_ + tasks_.size() &&
           control_replies <= control_replies_ + (control_.has_value() ? 1 : 0);
  }
  // Somebody waits for an answer.
  bool awaiting() const { return !tasks_.empty() || control_.has_value(); }
  // What the receives of pieces, and the sends, hold.
  std::shared_ptr<const void> hold() const { return region_; }
  // The worker is lost, though the rank may not know it yet.
  void Lose(const Status& why);
  // The rank has nothing of it any more.
  void End(const Status& why);

 private:
  // An answer that is due: to which number, and the bytes that come if it is OK.
  struct Due {
    std::uint64_t number = 0;
    std::vector<Extent> bytes;
  };
  Result<bool> ForwardTask(Outbox& outbox);
  Result<bool> ForwardControl(Outbox& outbox);
  void Tell();

  const int rank_;
  const std::uint64_t id_;
  const std::shared_ptr<Region> region_;
  const std::shared_ptr<Doorbell> doorbell_;
  DataArea data_;

  LaneReader task_lane_;
  LaneReader control_lane_;
  AnswerWriter answers_;
  LaneWriter control_reply_lane_;
  std::vector<std::byte> message_;
  std::deque<Due> tasks_;
  std::optional<Due> control_ = Due{};  // the greeting, which nobody asks for
  std::uint64_t task_replies_ = 0;
  std::uint64_t control_replies_ = 0;

  std::atomic<bool> lost_{false};
  mutable Mutex mutex_;
  CondVar changed_;
  Status why_ KEEL_GUARDED_BY(mutex_);
  bool over_ KEEL_GUARDED_BY(mutex_) = false;
};

}  // namespace keel::task::mpi
