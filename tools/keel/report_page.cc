#include "report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "keel/base/version.h"
#include "report_files.h"

namespace keel::cli {
namespace {

using Json = nlohmann::ordered_json;
using trace::Allocation;
using trace::kNever;

// Enough for every step of a long job.
constexpr std::size_t kMaxPhases = 5000;
// More groups than anybody reads; the rest is told as a sum.
constexpr std::size_t kMaxPeakGroups = 1000;

// A column of numbers: seven bits to a byte, the lowest first, the highest bit set on all bytes but
// the last; the bytes as base64. page.js reads it back.
class Column {
 public:
  void Add(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }
  // What changed since the last one, with the sign in the lowest bit.
  void AddChange(std::uint64_t value) {
    const auto change = static_cast<std::int64_t>(value - last_);
    Add((static_cast<std::uint64_t>(change) << 1) ^ static_cast<std::uint64_t>(change >> 63));
    last_ = value;
  }

  std::string ToBase64() const {
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    text.reserve(bytes_.size() / 3 * 4 + 4);
    for (std::size_t i = 0; i < bytes_.size(); i += 3) {
      std::uint32_t word = 0;
      for (std::size_t j = 0; j < 3; ++j) {
        word = word << 8 | (i + j < bytes_.size() ? static_cast<unsigned char>(bytes_[i + j]) : 0);
      }
      for (std::size_t j = 0; j < 4; ++j) {
        text += i + j <= bytes_.size() ? kDigits[word >> (18 - 6 * j) & 63] : '=';
      }
    }
    return text;
  }

 private:
  std::string bytes_;
  std::uint64_t last_ = 0;
};

// Numbers things in the order in which they come up, so that the page has only those that it uses.
class Numbering {
 public:
  std::uint32_t Of(std::uint64_t thing) {
    const auto [found, is_new] = numbers_.try_emplace(thing, things_.size());
    if (is_new) things_.push_back(thing);
    return static_cast<std::uint32_t>(found->second);
  }
  const std::vector<std::uint64_t>& things() const { return things_; }

 private:
  std::unordered_map<std::uint64_t, std::size_t> numbers_;
  std::vector<std::uint64_t> things_;
};

class PageData {
 public:
  explicit PageData(ReportModel& model) : model_(model) {
    stacks_.Of(0);
    tags_.Of(0);
    base_ = UINT64_MAX;
    for (const std::uint32_t index : model_.kept) {
      base_ = std::min(base_, model_.timeline.allocations[index].address);
    }
    for (const trace::Region& region : model_.regions) base_ = std::min(base_, region.address);
    for (const SegmentPicture& picture : model_.pictures) {
      for (const trace::Segment& segment : picture.segments) {
        base_ = std::min(base_, segment.address);
      }
    }
    if (base_ == UINT64_MAX) base_ = 0;
  }

  Json Build() {
    Json data;
    data["version"] = KEEL_VERSION_STRING;
    data["title"] = model_.title;
    data["file"] = model_.file;
    data["recorded"] = Recorded();
    data["replays"] = Replays();
    data["ticks"] = Ticks();
    data["peak"] = model_.tick_of[model_.timeline.peak];
    data["out_of_memory"] = model_.out_of_memory;
    data["small"] = {{"below", model_.small_below},
                     {"blocks", model_.timeline.allocations.size() - model_.kept.size()}};
    data["blocks"] = Blocks();
    data["peak_groups"] = PeakGroups();
    data["pictures"] = Pictures();
    data["regions"] = Regions();
    data["phases"] = Phases();
    // What the others refer to, after them.
    data["base"] = fmt::format("{}", base_);  // text: it may not fit in what a browser counts in
    data["groups"] = Groups();
    data["streams"] =
        Texts(streams_, [](std::uint64_t stream) { return fmt::format("{}", stream); });
    data["tags"] = Texts(tags_, [this](std::uint64_t tag) { return model_.snapshot->tags[tag]; });
    data["stacks"] = Stacks();
    return data;
  }

 private:
  Json Recorded() const {
    const trace::DeviceSummary& recorded = model_.recorded;
    return {{"device", recorded.device},
            {"configuration", trace::Configuration(*model_.snapshot)},
            {"events", recorded.events},
            {"allocs", recorded.allocs},
            {"frees", recorded.frees},
            {"out_of_memory", recorded.out_of_memory},
            {"streams", recorded.streams},
            {"duration_us", recorded.duration_us},
            {"peak_requested", recorded.peak_requested.count()},
            {"requested_at_start", recorded.requested_at_start.count()},
            {"live_at_end", recorded.live_at_end},
            {"peak_reserved", recorded.peak_reserved.count()}};
  }

  Json Replays() const {
    Json list = ReplayJson(model_.replays);
    for (std::size_t i = 0; i < model_.replays.size(); ++i) {
      Column ticks;
      Column reserved;
      for (const trace::ReplaySample& sample : model_.replays[i].result.samples) {
        ticks.AddChange(model_.tick_of[sample.events]);
        reserved.AddChange(sample.reserved);
      }
      list[i]["samples"] = {{"tick", ticks.ToBase64()}, {"reserved", reserved.ToBase64()}};
    }
    return list;
  }

  Json Ticks() const {
    Column event;
    Column time;
    Column requested;
    Column reserved;
    Column small_bytes;
    Column small_blocks;
    for (const Tick& tick : model_.ticks) {
      event.AddChange(tick.moment);
      time.AddChange(Since(tick.point.time_us));
      requested.AddChange(tick.point.requested);
      reserved.AddChange(tick.point.reserved);
      small_bytes.AddChange(tick.small_bytes);
      small_blocks.AddChange(tick.small_blocks);
    }
    return {{"event", event.ToBase64()},
            {"time", time.ToBase64()},
            {"requested", requested.ToBase64()},
            {"reserved", reserved.ToBase64()},
            {"small_bytes", small_bytes.ToBase64()},
            {"small_blocks", small_blocks.ToBase64()}};
  }

  // The recording began. Not before; times from a file may be too far apart for a signed number.
  std::uint64_t Since(std::int64_t time_us) const {
    return static_cast<std::uint64_t>(time_us) -
           static_cast<std::uint64_t>(model_.timeline.points.front().time_us);
  }

  // 0: never; else one more than the tick.
  std::uint64_t EndTick(trace::Moment end) const {
    return end == kNever ? 0 : std::uint64_t{model_.tick_of[end]} + 1;
  }

  Json Blocks() {
    std::array<Column, 9> columns;
    for (const std::uint32_t index : model_.kept) {
      const Allocation& each = model_.timeline.allocations[index];
      columns[0].AddChange(model_.tick_of[each.start]);
      columns[1].AddChange(EndTick(each.end));
      // When it was given back, in microseconds after the recording began, and one.
      columns[2].Add(each.free_requested == kNever
                         ? 0
                         : Since(model_.timeline.points[each.free_requested].time_us) + 1);
      columns[3].Add(each.size);
      columns[4].AddChange(each.address - base_);
      columns[5].Add(streams_.Of(each.stream));
      columns[6].Add(groups_.Of(model_.grouping->Find(each)));
      columns[7].Add(stacks_.Of(each.stack));
      columns[8].Add(tags_.Of(each.tag));
    }
    constexpr std::array<const char*, 9> kNames = {
        "start", "end", "given_back", "size", "address", "stream", "group", "stack", "tag"};
    Json blocks = {{"count", model_.kept.size()}};
    for (std::size_t i = 0; i < kNames.size(); ++i) blocks[kNames[i]] = columns[i].ToBase64();
    return blocks;
  }

  Json PeakGroups() {
    Json list = Json::array();
    std::uint64_t bytes = 0;
    std::uint64_t blocks = 0;
    std::size_t groups = 0;
    for (const trace::GroupShare& share : model_.peak_groups) {
      if (list.size() < kMaxPeakGroups) {
        list.push_back({groups_.Of(share.group), share.bytes, share.blocks, share.largest});
      } else {
        ++groups;
        bytes += share.bytes;
        blocks += share.blocks;
      }
    }
    return {{"list", std::move(list)},
            {"rest", {{"groups", groups}, {"bytes", bytes}, {"blocks", blocks}}}};
  }

  // A block's kind: 0 a hole, 1 a small block, 2 one that waits to become free, else 3 and its
  // group.
  std::uint64_t KindOf(const trace::Block& block) {
    if (block.state == trace::BlockState::kInactive) return 0;
    if (block.requested_size < model_.small_below) return 1;
    if (block.state == trace::BlockState::kPendingFree) return 2;
    Allocation allocation;
    allocation.size = block.requested_size;
    allocation.stack = block.stack;
    allocation.tag = block.tag;
    return 3 + std::uint64_t{groups_.Of(model_.grouping->Find(allocation))};
  }

  Json Pictures() {
    Json list = Json::array();
    for (const SegmentPicture& picture : model_.pictures) {
      Column address;
      Column size;
      Column stream;
      Column kind;
      Column count;
      Column block_size;
      Column block_kind;
      for (const trace::Segment& segment : picture.segments) {
        address.AddChange(segment.address - base_);
        size.Add(segment.total_size);
        stream.Add(streams_.Of(segment.stream));
        kind.Add((segment.is_small ? 1u : 0u) + (segment.is_expandable ? 2u : 0u));
        count.Add(segment.blocks.size());
        for (const trace::Block& block : segment.blocks) {
          block_size.Add(block.size);
          block_kind.Add(KindOf(block));
        }
      }
      list.push_back({{"name", picture.name},
                      {"tick", picture.tick},
                      {"address", address.ToBase64()},
                      {"size", size.ToBase64()},
                      {"stream", stream.ToBase64()},
                      {"kind", kind.ToBase64()},
                      {"count", count.ToBase64()},
                      {"block_size", block_size.ToBase64()},
                      {"block_kind", block_kind.ToBase64()}});
    }
    return list;
  }

  Json Regions() {
    Column address;
    Column size;
    Column stream;
    Column start;
    Column end;
    Column expandable;
    for (const trace::Region& region : model_.regions) {
      address.AddChange(region.address - base_);
      size.Add(region.size);
      stream.Add(streams_.Of(region.stream));
      start.AddChange(model_.tick_of[region.start]);
      end.AddChange(EndTick(region.end));
      expandable.Add(region.is_expandable ? 1 : 0);
    }
    return {{"count", model_.regions.size()},
            {"address", address.ToBase64()},
            {"size", size.ToBase64()},
            {"stream", stream.ToBase64()},
            {"start", start.ToBase64()},
            {"end", end.ToBase64()},
            {"expandable", expandable.ToBase64()}};
  }

  // Phases that the program named: [name, from, to] in microseconds after the recording began. One
  // that does not end ends with the recording, one that does not begin is left out; so are those
  // beyond the first kMaxPhases.
  Json Phases() const {
    const trace::TimelinePoint& first = model_.timeline.points.front();
    const trace::TimelinePoint& last = model_.timeline.points.back();
    Json list = Json::array();
    std::map<std::string, std::vector<std::size_t>> open;  // indices in `list`
    for (const trace::Annotation& annotation : model_.snapshot->annotations) {
      if (annotation.device != model_.recorded.device) continue;
      const std::uint64_t time = Since(std::clamp(annotation.time_us, first.time_us, last.time_us));
      if (annotation.starts && list.size() < kMaxPhases) {
        open[annotation.name].push_back(list.size());
        list.push_back({annotation.name, time, Since(last.time_us)});
      } else if (auto& indices = open[annotation.name]; !annotation.starts && !indices.empty()) {
        list[indices.back()][2] = time;
        indices.pop_back();
      }
    }
    return list;
  }

  Json Groups() const {
    Json list = Json::array();
    for (const std::uint64_t group : groups_.things()) {
      const auto number = static_cast<std::uint32_t>(group);
      list.push_back(
          {model_.grouping->Name(number), trace::GroupKindName(model_.grouping->kind(number))});
    }
    return list;
  }

  template <class Text>
  static Json Texts(const Numbering& numbering, Text text) {
    Json list = Json::array();
    for (const std::uint64_t thing : numbering.things()) list.push_back(text(thing));
    return list;
  }

  Json Stacks() {
    Numbering frames;
    Json stacks = Json::array();
    for (const std::uint64_t stack : stacks_.things()) {
      Json list = Json::array();
      for (const std::uint32_t frame : model_.snapshot->stacks[stack]) {
        list.push_back(frames.Of(frame));
      }
      stacks.push_back(std::move(list));
    }
    Json table = Json::array();
    for (const std::uint64_t index : frames.things()) {
      const trace::Frame& frame = model_.snapshot->frames[index];
      table.push_back({frame.function, frame.file, frame.line});
    }
    return {{"frames", std::move(table)}, {"list", std::move(stacks)}};
  }

  ReportModel& model_;
  std::uint64_t base_ = 0;  // the lowest address
  Numbering groups_, streams_, stacks_, tags_;
};

// JSON that can stand in a script element: without the characters that could end it.
std::string InScript(const Json& json) {
  std::string text;
  for (const char c : json.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    switch (c) {
      case '<':
        text += "\\u003c";
        break;
      case '>':
        text += "\\u003e";
        break;
      case '&':
        text += "\\u0026";
        break;
      default:
        text += c;
    }
  }
  return text;
}

// Text between tags. Bytes that are not UTF-8 become U+FFFD, as in JSON.
std::string InMarkup(const std::string& raw) {
  const Json valid =
      Json::parse(Json(raw).dump(-1, ' ', false, Json::error_handler_t::replace), nullptr, false);
  std::string text;
  for (const char c : valid.get<std::string>()) {
    switch (c) {
      case '<':
        text += "&lt;";
        break;
      case '>':
        text += "&gt;";
        break;
      case '&':
        text += "&amp;";
        break;
      case '"':
        text += "&quot;";
        break;
      default:
        text += c;
    }
  }
  return text;
}

// One script, in the order in which its parts use each other.
std::string Program() {
  std::string text;
  for (const std::string_view part :
       {embedded::DataJs(), embedded::RasterJs(), embedded::TimelineJs(), embedded::SegmentsJs(),
        embedded::PageJs()}) {
    text += part;
    text += '\n';
  }
  return text;
}

}  // namespace

std::string ReportPage(ReportModel& model) {
  const std::map<std::string_view, std::string> parts = {
      {"title", InMarkup(model.title)},
      {"summary", InMarkup(Summarize(model))},
      {"style", std::string(embedded::PageCss())},
      {"program", Program()},
      {"data", InScript(PageData(model).Build())}};
  // In one pass, so that what is put in is not looked at again.
  std::string page;
  std::string_view rest = embedded::PageHtml();
  for (std::size_t begin = rest.find("{{"); begin != std::string_view::npos;
       begin = rest.find("{{")) {
    const std::size_t end = rest.find("}}", begin);
    page += rest.substr(0, begin);
    page += parts.at(rest.substr(begin + 2, end - begin - 2));
    rest.remove_prefix(end + 2);
  }
  page += rest;
  return page;
}

}  // namespace keel::cli
