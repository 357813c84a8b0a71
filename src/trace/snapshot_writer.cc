#include "trace/snapshot_writer.h"

#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace keel::trace {
namespace {

class Emitter {
 public:
  Emitter(const Snapshot& snapshot, ValueWriter& writer) : snapshot_(snapshot), out_(writer) {}

  void Emit() {
    out_.BeginDict();
    out_.Key("segments");
    out_.BeginList();
    for (const Segment& segment : snapshot_.segments) {
      if (!out_.failed()) EmitSegment(segment);
    }
    out_.EndList();
    out_.Key("device_traces");
    out_.BeginList();
    for (const std::vector<Event>& events : snapshot_.devices) {
      out_.BeginList();
      for (const Event& event : events) {
        if (out_.failed()) break;
        EmitEvent(event);
      }
      out_.EndList();
    }
    out_.EndList();
    out_.Key("allocator_settings");
    EmitSettings(snapshot_.settings);
    out_.Key("external_annotations");
    out_.BeginList();
    for (const Annotation& annotation : snapshot_.annotations) EmitAnnotation(annotation);
    out_.EndList();
    out_.EndDict();
  }

 private:
  void Count(std::string_view name, std::uint64_t count) {
    out_.Key(name);
    out_.Unsigned(count);
  }
  void Integer(std::string_view name, std::int64_t integer) {
    out_.Key(name);
    out_.Int(integer);
  }
  void Text(std::string_view name, std::string_view text) {
    out_.Key(name);
    out_.Text(text);
  }

  void EmitSegment(const Segment& segment) {
    out_.BeginDict();
    Integer("device", segment.device);
    Count("address", segment.address);
    Count("total_size", segment.total_size);
    Count("allocated_size", segment.allocated_size);
    Count("active_size", segment.active_size);
    Count("requested_size", segment.requested_size);
    Count("stream", segment.stream);
    Text("segment_type", segment.is_small ? "small" : "large");
    out_.Key("segment_pool_id");
    out_.Pair(segment.pool.owner, segment.pool.number);
    out_.Key("is_expandable");
    out_.Bool(segment.is_expandable);
    EmitFrames(segment.stack);
    out_.Key("blocks");
    out_.BeginList();
    for (const Block& block : segment.blocks) EmitBlock(block);
    out_.EndList();
    out_.EndDict();
  }

  void EmitBlock(const Block& block) {
    out_.BeginDict();
    Count("address", block.address);
    Count("size", block.size);
    Count("requested_size", block.requested_size);
    Text("state", BlockStateName(block.state));
    // PyTorch's blocks have no tags; its viewer shows what it finds.
    if (block.tag != 0) Text("user_metadata", snapshot_.tags[block.tag]);
    EmitFrames(block.stack);
    out_.EndDict();
  }

  void EmitEvent(const Event& event) {
    out_.BeginDict();
    Text("action", ActionName(event.action));
    Count(event.action == Action::kOutOfMemory ? "device_free" : "addr", event.address);
    Count("size", event.size);
    Count("stream", event.stream);
    Integer("time_us", event.time_us);
    Text("compile_context", "N/A");
    Text("user_metadata", snapshot_.tags[event.tag]);
    if (event.stack != 0) EmitFrames(event.stack);
    out_.EndDict();
  }

  // Stacks and frames are shared under even and odd numbers.
  void EmitFrames(std::uint32_t stack) {
    out_.Key("frames");
    const std::uint64_t number = 2 * std::uint64_t{stack};
    if (out_.Again(number)) return;
    out_.BeginList();
    for (const std::uint32_t frame : snapshot_.stacks[stack]) EmitFrame(frame);
    out_.EndList();
    out_.Share(number);
  }

  void EmitFrame(std::uint32_t index) {
    const std::uint64_t number = 2 * std::uint64_t{index} + 1;
    if (out_.Again(number)) return;
    const Frame& frame = snapshot_.frames[index];
    out_.BeginDict();
    Text("name", frame.function);
    Text("filename", frame.file);
    Integer("line", frame.line);
    out_.EndDict();
    out_.Share(number);
  }

  void EmitSettings(const std::vector<Setting>& settings) {
    out_.BeginDict();
    for (const Setting& setting : settings) {
      out_.Key(setting.name);
      std::visit(
          [this](const auto& value) {
            using T = std::decay_t<decltype(value)>;
            if constexpr (std::is_same_v<T, bool>) {
              out_.Bool(value);
            } else if constexpr (std::is_same_v<T, std::int64_t>) {
              out_.Int(value);
            } else if constexpr (std::is_same_v<T, double>) {
              out_.Float(value);
            } else if constexpr (std::is_same_v<T, std::string>) {
              out_.Text(value);
            } else {
              EmitSettings(value);
            }
          },
          setting.value);
    }
    out_.EndDict();
  }

  void EmitAnnotation(const Annotation& annotation) {
    out_.BeginDict();
    Text("stage", annotation.starts ? "START" : "END");
    Text("name", annotation.name);
    Integer("device", annotation.device);
    Integer("time_us", annotation.time_us);
    out_.EndDict();
  }

  const Snapshot& snapshot_;
  ValueWriter& out_;
};

}  // namespace

void WriteTorchSnapshot(const Snapshot& snapshot, ValueWriter& writer) {
  Emitter(snapshot, writer).Emit();
}

}  // namespace keel::trace
