#include "report_trace.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace keel::cli {
namespace {

using Json = nlohmann::ordered_json;

class TraceEvents {
 public:
  explicit TraceEvents(const ReportModel& model)
      : model_(model), start_(model.timeline.points.front().time_us) {}

  std::string Write() {
    text_ = R"({"displayTimeUnit":"ms","traceEvents":[)";
    Add("M", "process_name", 0,
        {{"args", {{"name", fmt::format("{}, device {}", model_.title, model_.recorded.device)}}}});
    AddLevels();
    for (const ReplayRow& row : model_.replays) AddReplay(row);
    AddBlocks();
    AddPhases();
    for (const std::uint32_t tick : model_.out_of_memory) {
      Add("i", "out of memory", model_.ticks[tick].point.time_us, {{"s", "p"}});
    }
    text_ += "\n]}\n";
    return std::move(text_);
  }

 private:
  void Add(std::string_view phase, std::string_view name, std::int64_t time_us, const Json& more) {
    Json event = {{"ph", phase}, {"name", name}, {"pid", 1}, {"tid", 1}};
    if (phase != "M") {
      event["ts"] = static_cast<std::uint64_t>(time_us) - static_cast<std::uint64_t>(start_);
    }
    event.update(more);
    text_ += text_.ends_with('[') ? "\n" : ",\n";
    text_ += event.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  void Count(std::string_view name, std::int64_t time_us, std::uint64_t bytes) {
    Add("C", name, time_us, {{"args", {{"bytes", bytes}}}});
  }

  void AddLevels() {
    const bool reserved = !model_.recorded.peak_reserved.empty();
    const Tick* before = nullptr;
    for (const Tick& tick : model_.ticks) {
      const trace::TimelinePoint& point = tick.point;
      if (before == nullptr || before->point.requested != point.requested) {
        Count("recorded: requested", point.time_us, point.requested);
      }
      if (reserved && (before == nullptr || before->point.reserved != point.reserved)) {
        Count("recorded: reserved", point.time_us, point.reserved);
      }
      before = &tick;
    }
  }

  void AddReplay(const ReplayRow& row) {
    const std::string name = "Keel, " + (row.conf.empty() ? "defaults" : row.conf);
    for (const trace::ReplaySample& sample : row.result.samples) {
      const std::int64_t time = model_.timeline.points[sample.events].time_us;
      Count(name + ": allocated", time, sample.allocated);
      Count(name + ": reserved", time, sample.reserved);
    }
  }

  void AddBlocks() {
    for (const std::uint32_t index : model_.kept) {
      const trace::Allocation& block = model_.timeline.allocations[index];
      const trace::Moment end = block.end == trace::kNever ? model_.timeline.last() : block.end;
      Json arguments = {{"bytes", block.size},
                        {"address", fmt::format("{:#x}", block.address)},
                        {"stream", block.stream}};
      if (block.tag != 0) arguments["tag"] = model_.snapshot->tags[block.tag];
      Json frames = Json::array();
      for (const std::uint32_t number : model_.snapshot->stacks[block.stack]) {
        const trace::Frame& frame = model_.snapshot->frames[number];
        frames.push_back(fmt::format("{}:{} {}", frame.file, frame.line, frame.function));
      }
      if (!frames.empty()) arguments["frames"] = std::move(frames);
      const std::string name = ToString(Bytes(block.size));
      Add("b", name, model_.timeline.points[block.start].time_us,
          {{"cat", "block"}, {"id", index}, {"args", std::move(arguments)}});
      Add("e", name, model_.timeline.points[end].time_us, {{"cat", "block"}, {"id", index}});
    }
  }

  void AddPhases() {
    for (const trace::Annotation& annotation : model_.snapshot->annotations) {
      if (annotation.device != model_.recorded.device || annotation.time_us < start_) continue;
      Add(annotation.starts ? "b" : "e", annotation.name, annotation.time_us,
          {{"cat", "phase"}, {"id", annotation.name}});
    }
  }

  const ReportModel& model_;
  const std::int64_t start_;
  std::string text_;
};

}  // namespace

std::string ReportTrace(const ReportModel& model) { return TraceEvents(model).Write(); }

}  // namespace keel::cli
