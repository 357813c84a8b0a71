#include "trace/torch_snapshot.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/quote.h"
#include "trace/budget.h"

namespace keel::trace {
namespace {

// No dict of the schema has half as many. A field is looked for among all of them, and a hostile
// file can have one large dict a million times.
constexpr std::size_t kMaxFields = 64;
constexpr std::size_t kMaxSettingDepth = 4;

// Where in the file something is, for messages: "device_traces[0][17]". Made into text only then.
struct Place {
  const Place* parent = nullptr;
  std::string_view name;
  std::optional<std::size_t> index = std::nullopt;

  std::string ToString() const {
    const std::string before = parent == nullptr ? "" : parent->ToString();
    if (index) return fmt::format("{}[{}]", before, *index);
    return before.empty() ? std::string(name) : fmt::format("{}.{}", before, name);
  }
};

Status Wrong(const Place& place, std::optional<Value> container, std::string_view what) {
  if (!container) return InvalidArgument(fmt::format("{} {}", place.ToString(), what));
  return InvalidArgument(
      fmt::format("{} (byte {}) {}", place.ToString(), container->offset(), what));
}

// The fields of one dict, with errors that say where it is.
class Fields {
 public:
  static Result<Fields> Of(Value dict, const Place& place) {
    if (dict.kind() != Value::Kind::kDict) return Wrong(place, std::nullopt, "is not a dict");
    if (dict.size() > kMaxFields) {
      return Wrong(place, dict,
                   fmt::format("has {} fields; at most {} are read", dict.size(), kMaxFields));
    }
    return Fields(dict, place);
  }

  Status WrongField(std::string_view name, std::string_view what) const {
    return Wrong(place_, dict_, fmt::format("is wrong: '{}' is {}", name, what));
  }

  std::optional<Value> Find(std::string_view name) const { return dict_.Find(name); }

  // A size, an address, a stream.
  Result<std::uint64_t> Count(std::string_view name) const {
    const std::optional<Value> value = Find(name);
    if (!value) return WrongField(name, "missing");
    return AsCount(name, *value);
  }
  Result<std::uint64_t> CountOr(std::string_view name, std::uint64_t otherwise) const {
    const std::optional<Value> value = Find(name);
    if (!value) return otherwise;
    return AsCount(name, *value);
  }

  Result<std::int64_t> IntegerOr(std::string_view name, std::int64_t otherwise) const {
    const std::optional<Value> value = Find(name);
    if (!value) return otherwise;
    const std::optional<std::int64_t> integer = value->AsInt();
    if (!integer) return WrongField(name, "not an integer");
    return *integer;
  }

  Result<int> Device() const {
    KEEL_ASSIGN(const std::uint64_t device, Count("device"));
    if (device >= static_cast<std::uint64_t>(kMaxDevices)) {
      return WrongField("device", fmt::format("out of range: {}", device));
    }
    return static_cast<int>(device);
  }

  Result<std::string_view> Text(std::string_view name) const {
    const std::optional<Value> value = Find(name);
    if (!value) return WrongField(name, "missing");
    const std::optional<std::string_view> text = value->AsString();
    if (!text) return WrongField(name, "not a string");
    return *text;
  }
  std::string_view TextOr(std::string_view name, std::string_view otherwise) const {
    const std::optional<Value> value = Find(name);
    return value ? value->AsString().value_or(otherwise) : otherwise;
  }

  bool Flag(std::string_view name) const {
    const std::optional<Value> value = Find(name);
    return value && value->AsInt().value_or(0) != 0;
  }

 private:
  Fields(Value dict, const Place& place) : dict_(dict), place_(place) {}

  Result<std::uint64_t> AsCount(std::string_view name, Value value) const {
    if (const std::optional<std::uint64_t> count = value.AsUnsigned()) return *count;
    if (const std::optional<std::int64_t> integer = value.AsInt()) {
      return WrongField(name, fmt::format("negative: {}", *integer));
    }
    return WrongField(name, "not an integer");
  }

  Value dict_;
  const Place& place_;
};

class Reader {
 public:
  Reader(const Document& document, Bytes limit)
      : document_(document), budget_(limit), interner_(snapshot_) {}

  Result<Snapshot> Read() {
    KEEL_ASSIGN(const Value traces, List("device_traces"));
    if (traces.size() > static_cast<std::size_t>(kMaxDevices)) {
      return InvalidArgument(
          fmt::format("device_traces has {} devices, more than {}", traces.size(), kMaxDevices));
    }
    const Place place{.name = "device_traces"};
    snapshot_.devices.resize(traces.size());
    for (std::size_t i = 0; i < traces.size(); ++i) {
      KEEL_TRY(ReadEvents(traces[i], {.parent = &place, .index = i}, snapshot_.devices[i]));
    }
    KEEL_ASSIGN(const Value segments, List("segments"));
    KEEL_TRY(ReadSegments(segments));
    const Value root = document_.root();
    if (const auto annotations = root.Find("external_annotations")) {
      KEEL_TRY(ReadAnnotations(*annotations));
    }
    if (const auto settings = root.Find("allocator_settings")) {
      KEEL_TRY(ReadSettings(*settings, 0, snapshot_.settings));
    }
    return std::move(snapshot_);
  }

 private:
  Result<Value> List(std::string_view name) {
    const std::optional<Value> list = document_.root().Find(name);
    if (!list) {
      return InvalidArgument(fmt::format("this is no memory snapshot: it has no '{}'", name));
    }
    if (!list->is_sequence()) return InvalidArgument(fmt::format("'{}' is not a list", name));
    return *list;
  }

  Status Take(std::uint64_t bytes, const Place& place) {
    if (budget_.Take(bytes)) return OkStatus();
    return OutOfRange(
        fmt::format("{}: the snapshot takes more than {}; allow more if you trust the file",
                    place.ToString(), ToString(budget_.limit())));
  }

  // The vector is made no larger than what may be used, and at once, because it is long.
  template <class T>
  Status Reserve(Value list, const Place& place, std::vector<T>& items) {
    if (!list.is_sequence()) return Wrong(place, std::nullopt, "is not a list");
    KEEL_TRY(Take(list.size() * sizeof(T), place));
    items.reserve(list.size());
    return OkStatus();
  }

  Status ReadEvents(Value list, const Place& place, std::vector<Event>& events) {
    KEEL_TRY(Reserve(list, place, events));
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Place here{.parent = &place, .index = i};
      KEEL_ASSIGN(const Fields fields, Fields::Of(list[i], here));
      KEEL_ASSIGN(const std::string_view name, fields.Text("action"));
      const std::optional<Action> action = FindAction(name);
      if (!action) continue;
      Event event;
      event.action = *action;
      // A mark may come without them.
      const bool optional = event.action == Action::kSnapshot;
      const auto count = [&](std::string_view field) {
        return optional ? fields.CountOr(field, 0) : fields.Count(field);
      };
      KEEL_ASSIGN(event.address,
                  count(event.action == Action::kOutOfMemory ? "device_free" : "addr"));
      KEEL_ASSIGN(event.size, count("size"));
      KEEL_ASSIGN(event.stream, count("stream"));
      KEEL_ASSIGN(event.time_us, fields.IntegerOr("time_us", 0));
      KEEL_TRY(ReadOrigin(fields, here, event.stack, &event.tag));
      events.push_back(event);
    }
    return OkStatus();
  }

  Status ReadSegments(Value list) {
    const Place place{.name = "segments"};
    KEEL_TRY(Reserve(list, place, snapshot_.segments));
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Place here{.parent = &place, .index = i};
      KEEL_ASSIGN(const Fields fields, Fields::Of(list[i], here));
      Segment segment;
      KEEL_ASSIGN(segment.device, fields.Device());
      KEEL_ASSIGN(segment.address, fields.Count("address"));
      KEEL_ASSIGN(segment.total_size, fields.Count("total_size"));
      KEEL_ASSIGN(segment.stream, fields.Count("stream"));
      if (const std::optional<Value> blocks = fields.Find("blocks")) {
        KEEL_TRY(ReadBlocks(*blocks, {.parent = &here, .name = "blocks"}, segment));
      }
      KEEL_ASSIGN(segment.allocated_size, fields.CountOr("allocated_size", 0));
      KEEL_ASSIGN(segment.active_size, fields.CountOr("active_size", 0));
      KEEL_ASSIGN(segment.requested_size, fields.CountOr("requested_size", 0));
      segment.is_small = fields.TextOr("segment_type", "large") == "small";
      segment.is_expandable = fields.Flag("is_expandable");
      if (const std::optional<Value> pool = fields.Find("segment_pool_id")) {
        const bool pair = pool->is_sequence() && pool->size() == 2 && (*pool)[0].AsUnsigned() &&
                          (*pool)[1].AsUnsigned();
        if (!pair) return fields.WrongField("segment_pool_id", "not a pair of integers");
        segment.pool = {.owner = *(*pool)[0].AsUnsigned(), .number = *(*pool)[1].AsUnsigned()};
      }
      KEEL_TRY(ReadOrigin(fields, here, segment.stack, nullptr));
      snapshot_.segments.push_back(std::move(segment));
    }
    return OkStatus();
  }

  Status ReadBlocks(Value list, const Place& place, Segment& segment) {
    KEEL_TRY(Reserve(list, place, segment.blocks));
    std::uint64_t address = segment.address;  // early versions leave it out
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Place here{.parent = &place, .index = i};
      KEEL_ASSIGN(const Fields fields, Fields::Of(list[i], here));
      Block block;
      KEEL_ASSIGN(block.address, fields.CountOr("address", address));
      KEEL_ASSIGN(block.size, fields.Count("size"));
      KEEL_ASSIGN(const std::string_view name, fields.Text("state"));
      const std::optional<BlockState> state = FindBlockState(name);
      if (!state) return fields.WrongField("state", "not known: " + Quote(name));
      block.state = *state;
      KEEL_ASSIGN(block.requested_size, fields.CountOr("requested_size", block.size));
      KEEL_TRY(ReadOrigin(fields, here, block.stack, &block.tag));
      segment.blocks.push_back(block);
      address = block.address + block.size;
    }
    return OkStatus();
  }

  Status ReadAnnotations(Value list) {
    const Place place{.name = "external_annotations"};
    KEEL_TRY(Reserve(list, place, snapshot_.annotations));
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Place here{.parent = &place, .index = i};
      KEEL_ASSIGN(const Fields fields, Fields::Of(list[i], here));
      Annotation annotation;
      KEEL_ASSIGN(const std::string_view name, fields.Text("name"));
      KEEL_TRY(Take(name.size(), here));
      annotation.name = name;
      KEEL_ASSIGN(const std::string_view stage, fields.Text("stage"));
      if (stage != "START" && stage != "END") {
        return fields.WrongField("stage", "neither START nor END: " + Quote(stage));
      }
      annotation.starts = stage == "START";
      KEEL_ASSIGN(annotation.device, fields.Device());
      KEEL_ASSIGN(annotation.time_us, fields.IntegerOr("time_us", 0));
      snapshot_.annotations.push_back(std::move(annotation));
    }
    return OkStatus();
  }

  // What is no dict of plain values is passed over.
  Status ReadSettings(Value dict, std::size_t depth, std::vector<Setting>& settings) {
    if (dict.kind() != Value::Kind::kDict || depth >= kMaxSettingDepth) return OkStatus();
    const Place place{.name = "allocator_settings"};
    for (std::size_t i = 0; i < dict.size(); ++i) {
      const std::optional<std::string_view> name = dict.key(i).AsString();
      const Value value = dict.value(i);
      // Also for what is passed over: a dict that contains itself costs time at least.
      KEEL_TRY(
          Take(sizeof(Setting) + name.value_or("").size() + value.AsString().value_or("").size(),
               place));
      if (!name) continue;
      Setting setting{.name = std::string(*name), .value = false};
      switch (value.kind()) {
        case Value::Kind::kBool:
          setting.value = *value.AsInt() != 0;
          break;
        case Value::Kind::kInt:
          setting.value = *value.AsInt();
          break;
        case Value::Kind::kFloat:
          setting.value = *value.AsFloat();
          break;
        case Value::Kind::kString:
          setting.value = std::string(*value.AsString());
          break;
        case Value::Kind::kDict: {
          std::vector<Setting> inner;
          KEEL_TRY(ReadSettings(value, depth + 1, inner));
          setting.value = std::move(inner);
          break;
        }
        default:
          continue;
      }
      settings.push_back(std::move(setting));
    }
    return OkStatus();
  }

  // --- Stacks and tags ---------------------------------------------------------------------------

  Status ReadOrigin(const Fields& fields, const Place& place, std::uint32_t& stack,
                    std::uint32_t* tag) {
    if (const std::optional<Value> frames = fields.Find("frames")) {
      KEEL_ASSIGN(stack, ReadStack(*frames, {.parent = &place, .name = "frames"}));
    }
    if (tag == nullptr) return OkStatus();
    const std::string_view text = fields.TextOr("user_metadata", "");
    const std::size_t before = snapshot_.tags.size();
    *tag = interner_.Tag(text);
    if (snapshot_.tags.size() == before) return OkStatus();
    return Take(sizeof(std::string) + text.size(), place);
  }

  // The same list, or the same frame, stands at many events: it is looked at once.
  Result<std::uint32_t> ReadStack(Value list, const Place& place) {
    if (!list.is_sequence()) return Wrong(place, std::nullopt, "is not a list");
    if (list.size() == 0) return 0u;
    if (seen_.empty()) seen_.resize(document_.size(), kUnseen);
    if (seen_[list.id()] != kUnseen) return seen_[list.id()];
    scratch_.clear();
    for (std::size_t i = 0; i < list.size(); ++i) {
      KEEL_ASSIGN(const std::uint32_t frame, ReadFrame(list[i], {.parent = &place, .index = i}));
      scratch_.push_back(frame);
    }
    const std::size_t before = snapshot_.stacks.size();
    const std::uint32_t stack = interner_.Stack(scratch_);
    if (snapshot_.stacks.size() != before) {
      KEEL_TRY(Take((scratch_.size() + 10) * sizeof(std::uint32_t), place));
    }
    seen_[list.id()] = stack;
    return stack;
  }

  Result<std::uint32_t> ReadFrame(Value dict, const Place& place) {
    // A value is a list or a dict, so that both can be remembered in one table.
    if (dict.kind() == Value::Kind::kDict && seen_[dict.id()] != kUnseen) return seen_[dict.id()];
    KEEL_ASSIGN(const Fields fields, Fields::Of(dict, place));
    const std::string_view function = fields.TextOr("name", "");
    const std::string_view file = fields.TextOr("filename", "");
    KEEL_ASSIGN(const std::int64_t line, fields.IntegerOr("line", 0));
    const std::size_t before = snapshot_.frames.size();
    const std::uint32_t frame = interner_.Frame(function, file, line);
    if (snapshot_.frames.size() != before) {
      KEEL_TRY(Take(sizeof(Frame) + function.size() + file.size(), place));
    }
    seen_[dict.id()] = frame;
    return frame;
  }

  static constexpr std::uint32_t kUnseen = std::numeric_limits<std::uint32_t>::max();

  const Document& document_;
  Budget budget_;
  Snapshot snapshot_;
  SnapshotInterner interner_;
  std::vector<std::uint32_t> seen_;  // by a value's id: its stack or frame
  std::vector<std::uint32_t> scratch_;
};

}  // namespace

Result<Snapshot> ReadTorchSnapshot(const Document& document, Bytes limit) {
  return Reader(document, limit).Read();
}

}  // namespace keel::trace
