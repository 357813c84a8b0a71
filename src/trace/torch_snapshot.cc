#include "trace/torch_snapshot.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "trace/pickle.h"

namespace keel::trace {
namespace {

constexpr std::array<std::pair<std::string_view, Action>, 9> kActions = {{
    {"alloc", Action::kAlloc},
    {"free_requested", Action::kFreeRequested},
    {"free_completed", Action::kFreeCompleted},
    {"segment_alloc", Action::kSegmentAlloc},
    {"segment_free", Action::kSegmentFree},
    {"segment_map", Action::kSegmentMap},
    {"segment_unmap", Action::kSegmentUnmap},
    {"snapshot", Action::kSnapshot},
    {"oom", Action::kOutOfMemory},
}};

std::optional<Action> FindAction(std::string_view name) {
  for (const auto& [known, action] : kActions) {
    if (known == name) return action;
  }
  return std::nullopt;
}

// The fields of one dict, with errors that say where it is.
class Fields {
 public:
  Fields(PickleValue dict, std::string_view list, std::size_t index)
      : dict_(dict), list_(list), index_(index) {}

  Status Check() const {
    if (dict_.kind() == PickleValue::Kind::kDict) return OkStatus();
    return InvalidArgument(fmt::format("{}[{}] is not a dict", list_, index_));
  }

  Status Wrong(std::string_view name, std::string_view what) const {
    return InvalidArgument(fmt::format("{}[{}]: '{}' is {}", list_, index_, name, what));
  }

  Result<std::int64_t> Integer(std::string_view name) const {
    const std::optional<PickleValue> value = dict_.Find(name);
    if (!value) return Wrong(name, "missing");
    const std::optional<std::int64_t> integer = value->AsInt();
    if (!integer) return Wrong(name, "not an integer");
    return *integer;
  }

  // A size, an address, a stream.
  Result<std::uint64_t> Count(std::string_view name) const {
    KEEL_ASSIGN(const std::int64_t integer, Integer(name));
    if (integer < 0) return Wrong(name, fmt::format("negative: {}", integer));
    return static_cast<std::uint64_t>(integer);
  }

  Result<std::string_view> Text(std::string_view name) const {
    const std::optional<PickleValue> value = dict_.Find(name);
    if (!value) return Wrong(name, "missing");
    const std::optional<std::string_view> text = value->AsString();
    if (!text) return Wrong(name, "not a string");
    return *text;
  }

  bool Flag(std::string_view name) const {
    const std::optional<PickleValue> value = dict_.Find(name);
    return value && value->AsInt().value_or(0) != 0;
  }

 private:
  const PickleValue dict_;
  const std::string_view list_;
  const std::size_t index_;
};

Result<PickleValue> FindList(PickleValue root, std::string_view name) {
  const std::optional<PickleValue> list = root.Find(name);
  if (!list)
    return InvalidArgument(fmt::format("this is no memory snapshot: it has no '{}'", name));
  if (list->kind() != PickleValue::Kind::kList) {
    return InvalidArgument(fmt::format("'{}' is not a list", name));
  }
  return *list;
}

Status ReadEvents(PickleValue list, std::string_view where, std::vector<Event>& events) {
  if (list.kind() != PickleValue::Kind::kList) {
    return InvalidArgument(fmt::format("{} is not a list", where));
  }
  events.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Fields fields(list[i], where, i);
    KEEL_TRY(fields.Check());
    KEEL_ASSIGN(const std::string_view name, fields.Text("action"));
    const std::optional<Action> action = FindAction(name);
    if (!action) continue;
    Event event;
    event.action = *action;
    if (event.action != Action::kSnapshot) {
      KEEL_ASSIGN(event.address,
                  fields.Count(event.action == Action::kOutOfMemory ? "device_free" : "addr"));
      KEEL_ASSIGN(event.size, fields.Count("size"));
      KEEL_ASSIGN(event.stream, fields.Count("stream"));
    }
    KEEL_ASSIGN(event.time_us, fields.Integer("time_us"));
    events.push_back(event);
  }
  return OkStatus();
}

Status ReadSegments(PickleValue list, std::vector<RecordedSegment>& segments) {
  segments.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Fields fields(list[i], "segments", i);
    KEEL_TRY(fields.Check());
    RecordedSegment segment;
    KEEL_ASSIGN(const std::uint64_t device, fields.Count("device"));
    if (device > 1023) return fields.Wrong("device", fmt::format("out of range: {}", device));
    segment.device = static_cast<int>(device);
    KEEL_ASSIGN(segment.address, fields.Count("address"));
    KEEL_ASSIGN(segment.size, fields.Count("total_size"));
    KEEL_ASSIGN(segment.stream, fields.Count("stream"));
    segment.expandable = fields.Flag("is_expandable");
    segments.push_back(segment);
  }
  return OkStatus();
}

}  // namespace

std::string_view ActionName(Action action) {
  for (const auto& [name, known] : kActions) {
    if (known == action) return name;
  }
  return "unknown";
}

Result<History> ReadTorchSnapshot(std::string pickle) {
  KEEL_ASSIGN(const PickleDocument document, PickleDocument::Parse(std::move(pickle)));
  const PickleValue root = document.root();
  History history;
  KEEL_ASSIGN(const PickleValue traces, FindList(root, "device_traces"));
  history.devices.resize(traces.size());
  for (std::size_t i = 0; i < traces.size(); ++i) {
    KEEL_TRY(ReadEvents(traces[i], fmt::format("device_traces[{}]", i), history.devices[i]));
  }
  KEEL_ASSIGN(const PickleValue segments, FindList(root, "segments"));
  KEEL_TRY(ReadSegments(segments, history.segments));
  if (const auto settings = root.Find("allocator_settings")) {
    for (const std::string_view key :
         {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}) {  // vendor-ok: PyTorch's name
      const auto conf = settings->Find(key);
      if (conf && conf->AsString() && !conf->AsString()->empty()) {
        history.configuration = *conf->AsString();
        break;
      }
    }
  }
  return history;
}

}  // namespace keel::trace
