// Life: what the orchestrator's process (rank 0) and a worker's rank say to each other beside the
// lanes: who they are, that a worker is to be started or ended, that it has, that they are there.
//
// Each is a frame without bytes (frames.h). What comes is trusted as little as anything else from
// there: DecodeLife.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "keel/base/result.h"
#include "keel/base/unique_fd.h"
#include "task/mpi/frames.h"

namespace keel::task::mpi {

// Rank 0 belongs to the orchestrator; worker i is rank i + 1.
inline constexpr int kOrchestratorRank = 0;

// How often each side says that it is there, and how long it may be silent. A rank runs no code of
// others, so that only one that is stopped, or out of reach, is.
inline constexpr std::chrono::milliseconds kBeatPeriod{500};
inline constexpr std::chrono::seconds kSilence{30};

enum class LifeKind : std::uint32_t {
  kHello = 1,  // to the other, once: process, machine, host
  kBeat = 2,
  kStart = 3,  // to a rank: a worker, for the frame's session
  kKill = 4,   // to a rank
  kEnded = 5,  // to rank 0: the session's worker has; why, and how many answers it gave
  kBye = 6,    // to a rank: there will be no other session; and back
  kEcho = 7,   // to a rank, and back at once; means nothing
};

struct Life {
  LifeKind kind = LifeKind::kBeat;
  std::uint64_t session = 0;  // travels in the frame's head
  std::uint32_t version = 0;  // kHello: kProtocolVersion
  std::uint32_t orchestration = 0;
  std::uint64_t process = 0;
  std::uint64_t shared_memory = 0;
  std::uint64_t task_replies = 0;
  std::uint64_t control_replies = 0;
  std::string text;     // kHello: the host's name; kStart: the device; kEnded: why
  std::string machine;  // kHello: equal on one machine, where process numbers mean the same
};

inline constexpr std::size_t kLifeSize = 592;
// Longer texts are cut.
std::vector<std::byte> Encode(const Life& life);
Result<Life> DecodeLife(std::span<const std::byte> bytes);

// Who this process is.
Life Hello();
// A descriptor that can be polled for the end of another process of this machine; none if the
// process is of another machine, or is not there.
UniqueFd Watch(const Life& hello);
// Whether the process of such a descriptor has; false without one.
bool HasEnded(const UniqueFd& process);
// Whether a frame was begun, and its next part has not come for as long as a side may be silent.
bool Overdue(const FrameReader& reader, std::chrono::steady_clock::time_point now);

}  // namespace keel::task::mpi
