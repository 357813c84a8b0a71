// Replay: a recorded history run again, through Keel's allocator.
//
// Requests and frees come in the order and on the streams of the recording; a block is freed when
// the recording says that the last work on it was done. Time is the recording's: work that frees a
// block is done `lag` later, which is what keeps memory from being moved or given to other streams.
// So the result is the same on every machine, and needs no GPU: on a simulated device, calls of the
// driver cost what a table of measured costs says; on a real one they are made and measured.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "keel/base/bytes.h"
#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/hal/device.h"
#include "keel/memory/allocator_config.h"
#include "keel/trace/snapshot.h"

namespace keel::trace {

struct ReplayOptions {
  memory::AllocatorConfig config;
  std::chrono::microseconds lag{0};
  // Instead of a lag: every block is filled on its stream when it is allocated and again right
  // before it is freed, at the recording's pace, and work is done when the device has done it. For
  // a device with the memory and the time for it: a real one.
  bool real_work = false;
  // Called now and then with the number of events that are through.
  std::function<void(std::uint64_t done)> progress;
  // How many times to look at what the allocator holds, evenly over the events; each costs a walk
  // over its blocks.
  std::uint64_t samples = 0;
};

// What the allocator held after so many events.
struct ReplaySample {
  std::uint64_t events = 0;
  std::uint64_t allocated = 0;
  std::uint64_t reserved = 0;
};

struct ReplayResult {
  std::int64_t lag_us = 0;
  std::uint64_t peak_requested = 0;
  std::uint64_t peak_allocated = 0;
  std::uint64_t peak_reserved = 0;
  std::uint64_t ooms = 0;
  std::map<std::string, std::uint64_t> driver_calls;  // by the primitive's name
  std::int64_t driver_us = 0;    // in calls that create, map, unmap, release: measured, or by table
  std::int64_t recorded_us = 0;  // from the first event to the last
  std::uint64_t operations = 0;  // allocations and frees
  double ns_per_operation = 0;   // on this machine
  std::vector<ReplaySample> samples;  // in order; the last is after all events

  double ratio() const {
    return peak_requested == 0
               ? 1
               : static_cast<double>(peak_reserved) / static_cast<double>(peak_requested);
  }
};

// Of one device of the recording, on `device`. kInvalidArgument: the recording has no such device.
// An allocation that fails for want of memory is counted, and its block left out of the rest.
KEEL_EXPORT Result<ReplayResult> Replay(const Snapshot& snapshot, int recorded_device,
                                        std::shared_ptr<hal::Device> device,
                                        const ReplayOptions& options);

}  // namespace keel::trace
