#include "report_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

#include "format.h"

namespace keel::cli {
namespace {

using trace::Allocation;
using trace::kNever;
using trace::Moment;

constexpr std::size_t kStretches = 8192;
constexpr std::size_t kMaxRegions = 50000;
// A block below so small a part of the highest level is thinner than a pixel of any screen.
constexpr std::uint64_t kThinnest = 16384;

std::uint64_t ChooseSmallBelow(const trace::Timeline& timeline) {
  const std::uint64_t peak = timeline.points[timeline.peak].requested;
  std::uint64_t below = std::bit_floor(peak / kThinnest);
  std::vector<std::uint64_t> sizes;
  sizes.reserve(timeline.allocations.size());
  for (const Allocation& allocation : timeline.allocations) sizes.push_back(allocation.size);
  if (sizes.size() > kMaxKeptBlocks) {
    const auto nth = sizes.begin() + kMaxKeptBlocks;
    std::nth_element(sizes.begin(), nth, sizes.end(), std::greater<>());
    // All of that size go, or more than so many would stay.
    below = std::max(below, *nth == UINT64_MAX ? UINT64_MAX : *nth + 1);
  }
  return below;
}

// Which moments become ticks.
class TickMarks {
 public:
  explicit TickMarks(std::size_t moments) : marks_(moments) {}

  void Add(Moment moment) {
    if (moment < marks_.size()) marks_[moment] = true;
  }

  void AddExtremes(const std::vector<trace::TimelinePoint>& points) {
    const std::size_t length = (points.size() - 1) / kStretches + 1;
    for (std::size_t begin = 0; begin < points.size(); begin += length) {
      const auto first = points.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto last =
          points.begin() + static_cast<std::ptrdiff_t>(std::min(begin + length, points.size()));
      const auto [low, high] = std::minmax_element(
          first, last, [](const auto& a, const auto& b) { return a.requested < b.requested; });
      Add(static_cast<Moment>(low - points.begin()));
      Add(static_cast<Moment>(high - points.begin()));
    }
  }

  const std::vector<bool>& marks() const { return marks_; }

 private:
  std::vector<bool> marks_;
};

void ChooseTicks(ReportModel& model) {
  const trace::Timeline& timeline = model.timeline;
  TickMarks marks(timeline.points.size());
  for (const Moment moment : {Moment{0}, timeline.last(), timeline.peak, timeline.peak_reserved}) {
    marks.Add(moment);
  }
  marks.AddExtremes(timeline.points);
  for (const std::uint32_t index : model.kept) {
    marks.Add(timeline.allocations[index].start);
    marks.Add(timeline.allocations[index].end);
  }
  for (const trace::Region& region : model.regions) {
    marks.Add(region.start);
    marks.Add(region.end);
  }
  for (const ReplayRow& row : model.replays) {
    for (const trace::ReplaySample& sample : row.result.samples) {
      marks.Add(static_cast<Moment>(sample.events));
    }
  }
  std::vector<Moment> out_of_memory;
  if (timeline.last() > 0) {
    const auto& events = model.snapshot->devices[static_cast<std::size_t>(timeline.device)];
    for (Moment moment = 1; moment <= timeline.last(); ++moment) {
      if (events[moment - 1].action != trace::Action::kOutOfMemory) continue;
      if (out_of_memory.size() >= kStretches) break;
      marks.Add(moment);
      out_of_memory.push_back(moment);
    }
  }

  // How much is in small blocks: the changes, by moment.
  std::vector<std::int64_t> blocks(timeline.points.size());
  std::vector<std::uint64_t> bytes(timeline.points.size());  // changes modulo 2^64
  for (const Allocation& allocation : timeline.allocations) {
    if (allocation.size >= model.small_below) continue;
    ++blocks[allocation.start];
    bytes[allocation.start] += allocation.size;
    if (allocation.end == kNever) continue;
    --blocks[allocation.end];
    bytes[allocation.end] -= allocation.size;
  }
  model.tick_of.resize(timeline.points.size());
  std::int64_t small_blocks = 0;
  std::uint64_t small_bytes = 0;
  for (Moment moment = 0; moment <= timeline.last(); ++moment) {
    small_blocks += blocks[moment];
    small_bytes += bytes[moment];
    if (marks.marks()[moment]) {
      model.ticks.push_back(
          {moment, timeline.points[moment], small_bytes, static_cast<std::uint64_t>(small_blocks)});
    }
    model.tick_of[moment] = static_cast<std::uint32_t>(model.ticks.size() - 1);
  }
  for (const Moment moment : out_of_memory) model.out_of_memory.push_back(model.tick_of[moment]);
}

std::string Times(std::uint64_t reserved, std::uint64_t requested) {
  return fmt::format("{:.3f} times as much",
                     static_cast<double>(reserved) / static_cast<double>(requested));
}

}  // namespace

Result<ReportModel> BuildReportModel(std::string file, std::string title,
                                     const trace::Snapshot& snapshot,
                                     const trace::DeviceSummary& recorded,
                                     std::vector<ReplayRow> replays,
                                     std::optional<Bytes> small_below) {
  ReportModel model;
  model.title = std::move(title);
  model.file = std::move(file);
  model.snapshot = &snapshot;
  model.recorded = recorded;
  KEEL_ASSIGN(model.timeline, trace::BuildTimeline(snapshot, recorded.device));
  model.replays = std::move(replays);
  model.small_below = small_below ? small_below->count() : ChooseSmallBelow(model.timeline);
  for (std::uint32_t i = 0; i < model.timeline.allocations.size(); ++i) {
    if (model.timeline.allocations[i].size >= model.small_below) model.kept.push_back(i);
  }
  std::vector<trace::Region> regions = trace::ReservedRegions(snapshot, recorded.device);
  const Moment peak = model.timeline.peak;
  const Moment last = model.timeline.last();
  std::vector<trace::Segment> at_peak = trace::SegmentsAt(snapshot, model.timeline, regions, peak);
  std::vector<trace::Segment> at_end = trace::SegmentsAt(snapshot, model.timeline, regions, last);
  if (regions.size() <= kMaxRegions) model.regions = std::move(regions);
  ChooseTicks(model);
  if (!at_peak.empty() && peak != last) {
    model.pictures.push_back({"peak", model.tick_of[peak], std::move(at_peak)});
  }
  if (!at_end.empty()) model.pictures.push_back({"end", model.tick_of[last], std::move(at_end)});
  model.grouping.emplace(snapshot);
  model.peak_groups = trace::GroupsAt(model.timeline, peak, *model.grouping);
  return model;
}

std::string Summarize(const ReportModel& model) {
  const trace::DeviceSummary& recorded = model.recorded;
  const std::uint64_t requested = recorded.peak_requested.count();
  std::string text;
  if (recorded.events > 0) {
    text = fmt::format(
        "{} allocations on {} stream{} in {}. At its peak the program had asked for {}",
        FormatCount(recorded.allocs), recorded.streams, recorded.streams == 1 ? "" : "s",
        FormatDuration(std::chrono::microseconds(recorded.duration_us)),
        ToString(recorded.peak_requested));
  } else {
    text = fmt::format(
        "The file has no history, only what was held at one moment: the program had asked for {}",
        ToString(recorded.peak_requested));
  }
  if (!recorded.peak_reserved.empty() && requested > 0) {
    text += fmt::format("; the allocator that was recorded had reserved {}, {}",
                        ToString(recorded.peak_reserved),
                        Times(recorded.peak_reserved.count(), requested));
  }
  text += ".";
  for (const ReplayRow& row : model.replays) {
    const trace::ReplayResult& result = row.result;
    text += fmt::format(" Keel {} would have reserved {}",
                        row.conf.empty() ? "with its defaults" : fmt::format("with {}", row.conf),
                        ToString(Bytes(result.peak_reserved)));
    if (result.ooms > 0) {
      text += fmt::format(", and {} allocations would not have fit", FormatCount(result.ooms));
    } else if (result.peak_requested > 0) {
      text += fmt::format(", {}", Times(result.peak_reserved, result.peak_requested));
    }
    text += ".";
  }
  return text;
}

}  // namespace keel::cli
