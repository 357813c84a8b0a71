// Region: the memory between an orchestrator and one worker: four lanes, and for a process the
// places of bytes on the host.
//
// For a thread it is memory of the process. For a process it is a memfd without a name anywhere,
// sealed so that neither side can change its size under the other, which the worker inherits as a
// descriptor. Pages cost nothing until they are used.
//
//   header with the count of answers and the lanes' cursors | slots of four lanes | their rings |
//   window of control calls | data of tasks
//
// A place is an offset from the beginning; those of the window and the data are never 0. Tasks and
// control share no byte but the header's page, and no word at all.
//
// Owns the mapping and the descriptor. What is in it may be changed by the peer at any time: the
// layout is kept outside of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "keel/base/bytes.h"
#include "keel/base/result.h"
#include "keel/base/unique_fd.h"
#include "task/lane.h"

namespace keel::task {

enum class LaneName : std::uint8_t { kTasks, kTaskReplies, kControl, kControlReplies };
inline constexpr std::size_t kLanes = 4;

struct RegionHeader {
  std::uint64_t magic;
  std::uint32_t version;  // kProtocolVersion
  std::uint32_t reserved;
  std::uint64_t size;  // of the region
  // The control request that may be begun: whoever exchanges it first, the worker that begins or
  // the orchestrator that gives up, decides (lane_worker.h).
  std::atomic<std::uint64_t> ticket;
  char last_words[256];                    // why a worker process gave up, for the orchestrator
  alignas(kApart) std::uint64_t answered;  // tasks (answers.h)
  LaneState lanes[kLanes];
};

class Region {
 public:
  // How much of a copy, or of an image, a control call moves at a time.
  static constexpr std::uint64_t kWindowSize = 4 << 20;
  static constexpr std::uint64_t kWindow = 4 << 20;  // its place
  static constexpr std::uint64_t kData = kWindow + kWindowSize;

  // For a thread: neither window nor data.
  static Result<std::unique_ptr<Region>> CreatePrivate();
  // For a process. kInvalidArgument: more data than a file can have.
  static Result<std::unique_ptr<Region>> CreateShared(Bytes data);
  // In the worker process: trusts nothing about the descriptor.
  static Result<std::unique_ptr<Region>> Open(UniqueFd file);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  RegionHeader& header() { return *reinterpret_cast<RegionHeader*>(base_); }
  Lane lane(LaneName name);
  std::byte* at(std::uint64_t place) { return base_ + place; }
  // Whether bytes at a place that the peer named are all of the window or all of the data.
  bool InWindow(std::uint64_t place, std::uint64_t size) const;
  bool InData(std::uint64_t place, std::uint64_t size) const;
  std::uint64_t data_size() const { return size_ > kData ? size_ - kData : 0; }
  std::uint64_t size() const { return size_; }
  int descriptor() const { return file_.get(); }

  // Gives the pages of the window and the data back to the system; they read as zeros then. For
  // when nobody uses them.
  void Empty();

 private:
  Region(UniqueFd file, std::byte* base, std::uint64_t size)
      : file_(std::move(file)), base_(base), size_(size) {}

  UniqueFd file_;  // of a process
  std::byte* const base_;
  const std::uint64_t size_;
};

}  // namespace keel::task
