// What a worker answers to tasks: for most, that one more is done; for the others, what was wrong.
//
// Tasks are numbered from 1 on and answered in that order, so one word says how many are, and who
// waits for them looks at nothing else: a thousand that are done cost it one cache line. A task
// that failed has a message in the lane of replies besides, which is written before the word.
//
// The word is trusted as little as a lane is (lane.h): its upper half is a checksum of the number,
// of which the lower half has the lower bits; and no more can be answered than were given. What is
// answered was read from its lane before, and the lane said so before: who sees the answer finds
// the room there.
//
// One thread writes, one reads; each has its own object, which owns nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "keel/base/result.h"
#include "task/lane.h"
#include "task/messages.h"
#include "task/region.h"

namespace keel::task {

class AnswerWriter {
 public:
  AnswerWriter() = default;
  explicit AnswerWriter(Region& region)
      : word_(&region.header().answered), replies_(region.lane(LaneName::kTaskReplies)) {}
  // The number of the task that is answered next.
  std::uint64_t next() const { return answered_ + 1; }
  // Who looks sees it from now on; who sleeps must be woken. kInternal: the lane of failures is
  // full or damaged.
  Status Answer(const Status& status);
  // kInternal: somebody else has written the word, or the lane is damaged.
  Status Check();

 private:
  Status CheckWord() const;

  std::uint64_t* word_ = nullptr;
  LaneWriter replies_;
  std::uint64_t answered_ = 0;
  std::vector<std::byte> message_;
};

class AnswerReader {
 public:
  AnswerReader() = default;
  explicit AnswerReader(Region& region)
      : word_(&region.header().answered), replies_(region.lane(LaneName::kTaskReplies)) {}
  // How many of `outstanding` tasks are answered that were not taken yet. kInternal: that cannot
  // be.
  Result<std::size_t> Look(std::size_t outstanding);
  // The next one's. Precondition: Look has counted it. kInternal: it makes no sense.
  Status Take(Status& status);
  // Takes all that are answered, if all went well. 0: none is, or Look and Take must tell.
  std::size_t TakeDone(std::size_t outstanding);
  // What tells of the next one that was not taken.
  Sign next() const { return {word_, static_cast<std::uint32_t>(taken_ + 1)}; }
  // For who has waited for a while.
  Status Check() { return replies_.Check(); }

 private:
  std::uint64_t* word_ = nullptr;
  LaneReader replies_;
  std::uint64_t taken_ = 0;
  std::uint64_t most_ = 0;      // the last number that was given, at the last Look
  bool looked_ = false;         // into the lane, since the word was looked at
  std::optional<Reply> reply_;  // the next in the lane
  std::vector<std::byte> message_;
};

}  // namespace keel::task
