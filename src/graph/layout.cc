#include "graph/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>

namespace keel::graph {
namespace {

// Small enough that a few copies use the whole device, large enough that looking up the row is
// little beside the copying.
constexpr std::uint64_t kLeastPiece = 32 << 10;
constexpr std::uint64_t kMostPieces = 512;  // of a row
// So many can look their rows up far away, all at once, in less time than fetching them takes.
constexpr std::size_t kFewPieces = 128;
// An element for each thread of a team: with larger rows, one to a block uses more of the device.
constexpr std::uint64_t kSmallRow = 4 << 10;
// So many go out at once in as many blocks as there are marks. More than that are done sooner by
// more blocks, although those count each other.
constexpr std::uint32_t kMostSmallOut = 64;

// Of rows with these sizes: the first of each row, then the rest.
std::vector<CopyPiece> PiecesOf(std::span<const std::uint64_t> sizes) {
  std::vector<CopyPiece> pieces(sizes.size());
  for (std::size_t row = 0; row < sizes.size(); ++row) {
    const std::uint64_t size = sizes[row];
    const std::uint64_t even = (size / kMostPieces + 4095) / 4096 * 4096;
    const std::uint64_t most = std::max(kLeastPiece, even);
    pieces[row] = {.row = row, .offset = 0, .size = std::min(most, size)};
    for (std::uint64_t at = most; at < size; at += most) {
      pieces.push_back({.row = row, .offset = at, .size = std::min(most, size - at)});
    }
  }
  return pieces;
}

// What a traced or eager command uses begins copied: tracing is dear, and is done for what has
// shown that it stays.
Policy Resolve(const BindingSpec& spec, bool opaque, bool node_update) {
  if (spec.access == BindingAccess::kScratch) return Policy::kInPlace;
  if (spec.access == BindingAccess::kResident) return Policy::kResident;
  if (spec.policy != Policy::kAuto) return spec.policy;
  return opaque || !node_update ? Policy::kCopy : Policy::kPatch;
}

Status Supported(const BindingSpec& spec, Policy policy, const hal::Capabilities& can) {
  const auto lacks = [&](std::string_view what) {
    return Unimplemented(fmt::format("binding '{}': policy '{}' needs {}, which this device lacks",
                                     spec.name, PolicyName(policy), what));
  };
  if (policy == Policy::kCopy && !can.kernels) return lacks("kernels");
  if (policy == Policy::kPatch && !can.node_update) return lacks("updates of graph nodes");
  if (policy == Policy::kRemap && !can.virtual_memory) return lacks("virtual memory");
  return OkStatus();
}

Status TooLarge(const BindingSpec& spec) {
  return InvalidArgument(fmt::format("binding '{}': {} is more than there are addresses for",
                                     spec.name, keel::ToString(spec.size)));
}

void AddUse(std::vector<std::uint32_t>& uses, std::uint32_t command) {
  if (uses.empty() || uses.back() != command) uses.push_back(command);
}

std::vector<Stretch> Split(std::span<const ProgramCommand> commands, bool copies_in) {
  std::vector<Stretch> stretches;
  const auto count = static_cast<std::uint32_t>(commands.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const bool eager = std::holds_alternative<command::Eager>(commands[i]);
    if (stretches.empty() && eager && copies_in) stretches.push_back({false, i, i});
    if (stretches.empty() || eager || stretches.back().eager) {
      stretches.push_back({eager, i, i});
    }
    stretches.back().last = i + 1;
  }
  // The end of the step is marked by a graph.
  if (stretches.empty() || stretches.back().eager) stretches.push_back({false, count, count});
  return stretches;
}

}  // namespace

Result<Layout> Layout::Of(const Program& program, const hal::Capabilities& capabilities, bool arena,
                          bool alias) {
  Layout layout;
  layout.bindings.resize(program.bindings().size());
  Bytes slot_end;
  Bytes arena_end;
  Bytes aliased_end;
  for (std::uint32_t i = 0; i < layout.bindings.size(); ++i) {
    const BindingSpec& spec = program.bindings()[i];
    BindingLayout& binding = layout.bindings[i];
    const bool opaque = program.used_opaquely(BindingId{i});
    binding.size = spec.size;
    binding.in = spec.access == BindingAccess::kIn || spec.access == BindingAccess::kInOut;
    binding.out = spec.access == BindingAccess::kOut || spec.access == BindingAccess::kInOut;
    binding.policy = Resolve(spec, opaque, capabilities.node_update);
    KEEL_TRY(Supported(spec, binding.policy, capabilities));
    const bool chosen = spec.policy == Policy::kAuto && binding.out + binding.in > 0;
    binding.optional = chosen && spec.access == BindingAccess::kOut;
    binding.dynamic = chosen && capabilities.node_update && capabilities.kernels;
    binding.direct = opaque ? Policy::kRetrace : Policy::kPatch;
    if (binding.policy == Policy::kRemap || (binding.dynamic && capabilities.virtual_memory)) {
      const auto rounded = AlignUp(spec.size, capabilities.granularity.minimum);
      if (!rounded) return TooLarge(spec);
      binding.window = *rounded;
    }
    layout.dynamic += binding.dynamic ? 1 : 0;
    binding.plain = binding.policy != Policy::kInPlace && binding.policy != Policy::kRemap;
    binding.needs_buffer = binding.policy != Policy::kInPlace && !binding.optional;
    binding.arena = arena && spec.access == BindingAccess::kScratch;
    binding.aliased = alias && binding.policy == Policy::kInPlace && binding.out;
    binding.home = binding.policy == Policy::kCopy ||
                   (binding.policy == Policy::kInPlace && !binding.arena && !binding.aliased);
    if (binding.home || binding.arena || binding.aliased) {
      Bytes& end = binding.arena ? arena_end : binding.aliased ? aliased_end : slot_end;
      binding.offset = end;
      const auto aligned = AlignUp(spec.size, kAlignment);
      const auto next = aligned ? CheckedAdd(end, *aligned) : std::nullopt;
      if (!next) return TooLarge(spec);
      end = *next;
    }
  }
  layout.slot_bytes = slot_end;
  layout.arena_bytes = arena_end;
  layout.aliased_bytes = aliased_end;
  layout.AddRows(capabilities);

  for (std::uint32_t i = 0; i < program.commands().size(); ++i) {
    const ProgramCommand& command = program.commands()[i];
    const auto use = [&](const Operand& operand) {
      AddUse(layout.bindings[operand.binding.index].explicit_uses, i);
    };
    if (const auto* kernel = std::get_if<command::Kernel>(&command)) {
      for (const Argument& argument : kernel->arguments) {
        if (const auto* operand = std::get_if<Operand>(&argument.get())) use(*operand);
      }
    } else if (const auto* copy = std::get_if<command::Copy>(&command)) {
      use(copy->destination);
      use(copy->source);
    } else if (const auto* fill = std::get_if<command::Fill>(&command)) {
      use(fill->destination);
      BindingLayout& filled = layout.bindings[fill->destination.binding.index];
      filled.alignment = std::max(filled.alignment, fill->width);
    } else if (const auto* traced = std::get_if<command::Traced>(&command)) {
      for (const Operand& operand : traced->uses) {
        AddUse(layout.bindings[operand.binding.index].traced_uses, i);
      }
    }
  }
  for (std::uint32_t i = 0; i < layout.bindings.size(); ++i) {
    const BindingLayout& binding = layout.bindings[i];
    if (binding.policy != Policy::kRetrace || binding.explicit_uses.empty()) continue;
    if (capabilities.node_update) continue;
    return Unimplemented(fmt::format(
        "binding '{}': policy 'retrace' with explicit commands needs updates of graph nodes, which "
        "this device lacks",
        program.bindings()[i].name));
  }
  layout.stretches = Split(program.commands(), !layout.pieces_in.empty());
  return layout;
}

void Layout::AddRows(const hal::Capabilities& capabilities) {
  std::vector<std::uint64_t> sizes_in;
  std::vector<std::uint64_t> sizes_out;
  bool always = false;
  for (BindingLayout& binding : bindings) {
    rewrites |= binding.policy == Policy::kRemap;
    if (binding.policy != Policy::kCopy && !binding.dynamic) continue;
    always |= !binding.dynamic && !binding.optional;
    if (binding.in) {
      binding.in_row = rows_in++;
      sizes_in.push_back(binding.size.count());
    }
    if (binding.out) sizes_out.push_back(binding.size.count());
  }
  rows = rows_in;
  for (BindingLayout& binding : bindings) {
    if (binding.policy != Policy::kCopy && !binding.dynamic) continue;
    if (binding.out) binding.out_row = rows++;
  }
  pieces_in = PiecesOf(sizes_in);
  pieces_out = PiecesOf(sizes_out);
  const auto at_most = [](std::span<const CopyPiece> pieces, std::uint64_t most) {
    return std::all_of(pieces.begin(), pieces.end(),
                       [&](const CopyPiece& piece) { return piece.size <= most; });
  };
  by_value = capabilities.node_update && rows_in != 0 && rows <= hal::kernels::kMostRows &&
             at_most(pieces_in, std::numeric_limits<std::uint32_t>::max());
  // A row of several pieces begins with a large one.
  small_in = by_value && at_most(pieces_in, kSmallRow);
  small_out = rows_out() != 0 && rows_out() <= kMostSmallOut && at_most(pieces_out, kSmallRow);
  fetch = !by_value && std::max(pieces_in.size(), pieces_out.size()) > kFewPieces;
  may_rest = rows != 0 && !always;
  rewrites |= rows != 0 && !by_value;
}

std::vector<CopyPiece> Layout::AllPieces() const {
  std::vector<CopyPiece> pieces = pieces_in;
  pieces.insert(pieces.end(), pieces_out.begin(), pieces_out.end());
  if (fetch) pieces.push_back({.row = 0, .offset = 0, .size = rows * sizeof(CopyRow)});
  return pieces;
}

}  // namespace keel::graph
