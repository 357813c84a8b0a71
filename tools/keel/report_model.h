// What a report shows, computed from a recording and its replays; report_page.h and report_trace.h
// write it.
//
// A history can have millions of blocks, of which a picture shows thousands: blocks that are large
// enough are kept one by one, the small ones as one band, of which only size and number are known.
// Of the moments, those are kept at which something that is kept changes, and of the rest the
// highest and the lowest of each of some thousand stretches. Such a moment is a tick.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "keel/base/bytes.h"
#include "keel/base/result.h"
#include "keel/trace/groups.h"
#include "keel/trace/segment_history.h"
#include "keel/trace/snapshot.h"
#include "keel/trace/summary.h"
#include "keel/trace/timeline.h"
#include "replay_report.h"

namespace keel::cli {

inline constexpr std::size_t kMaxKeptBlocks = 20000;

struct Tick {
  trace::Moment moment = 0;
  trace::TimelinePoint point;
  std::uint64_t small_bytes = 0;  // in blocks that are not kept
  std::uint64_t small_blocks = 0;
};

// The segments of one moment.
struct SegmentPicture {
  std::string name;  // "peak", "end"
  std::uint32_t tick = 0;
  std::vector<trace::Segment> segments;
};

struct ReportModel {
  std::string title;
  std::string file;
  const trace::Snapshot* snapshot = nullptr;
  trace::DeviceSummary recorded;
  trace::Timeline timeline;
  std::vector<ReplayRow> replays;

  std::uint64_t small_below = 0;             // smaller blocks are not kept
  std::vector<std::uint32_t> kept;           // in timeline.allocations
  std::vector<Tick> ticks;                   // in order
  std::vector<std::uint32_t> tick_of;        // by moment: the last tick that is not after it
  std::vector<std::uint32_t> out_of_memory;  // ticks

  std::optional<trace::Grouping> grouping;
  std::vector<trace::GroupShare> peak_groups;  // largest first
  std::vector<trace::Region> regions;          // empty: unknown, or too many to show
  std::vector<SegmentPicture> pictures;        // none if the recording has no segments
};

// `snapshot` must outlive the model. `small_below`: absent, it is chosen so that no more than
// kMaxKeptBlocks are kept, and none of which a picture would show nothing.
Result<ReportModel> BuildReportModel(std::string file, std::string title,
                                     const trace::Snapshot& snapshot,
                                     const trace::DeviceSummary& recorded,
                                     std::vector<ReplayRow> replays,
                                     std::optional<Bytes> small_below);

// What the report says, in two or three sentences.
std::string Summarize(const ReportModel& model);

}  // namespace keel::cli
