// Layout: what a program is on one device, the same for each of its slots: which policy each
// binding has, where in a slot's memory its bytes are, which commands use it, and what is copied.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "keel/base/result.h"
#include "keel/graph/program.h"
#include "keel/hal/capabilities.h"
#include "keel/hal/standard_kernels.h"

namespace keel::graph {

inline constexpr std::uint32_t kNoRow = ~std::uint32_t{0};

struct BindingLayout {
  Policy policy = Policy::kAuto;  // to begin with, if it is dynamic; never kAuto
  Policy direct = Policy::kAuto;  // how a dynamic one is reached where the caller has it
  bool dynamic = false;           // `auto`: copied, remapped, or neither, as it moves
  bool plain = false;             // a buffer of the caller's that an address is enough for
  bool needs_buffer = false;      // a step cannot do without
  bool optional = false;          // an output that may stay in the slot
  bool in = false;                // the program reads what the caller has
  bool out = false;               // the caller reads what the program writes
  bool home = false;              // has memory in the slot from the start
  bool arena = false;             // scratch that is in the shared arena
  bool aliased = false;           // an output that is read at another address than it is written
  std::uint32_t alignment = 1;    // that the caller's address must have
  Bytes size;
  Bytes window;                   // of the caller's memory, where it can be mapped; else zero
  Bytes offset;                   // of the home in the slot's memory, the aliased, or the arena
  std::uint32_t in_row = kNoRow;  // of the copies into the slot
  std::uint32_t out_row = kNoRow;
  std::vector<std::uint32_t> explicit_uses;  // commands
  std::vector<std::uint32_t> traced_uses;
};

// A part of a row, as the kernel reads it (standard_kernels.h).
struct CopyPiece {
  std::uint64_t row = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};
struct CopyRow {
  std::uint64_t destination = 0;
  std::uint64_t source = 0;
  friend bool operator==(const CopyRow&, const CopyRow&) = default;
};

// All rows as a value of a launch, with the sizes of the first pieces of those that go in, as the
// kernel takes it (standard_kernels.h).
struct CopyRows {
  std::array<CopyRow, hal::kernels::kMostRows> rows{};
  std::array<std::uint32_t, hal::kernels::kMostRows> sizes{};
};

// Commands that are one graph, or one that is called between graphs.
struct Stretch {
  bool eager = false;
  std::uint32_t first = 0;
  std::uint32_t last = 0;  // one past
};

struct Layout {
  std::vector<BindingLayout> bindings;
  std::vector<Stretch>
      stretches;  // ends with a graph, which may be empty; begins with one if copies go in
  // Rows of the copies into the slot, then those out of it. Pieces count them from the first of
  // their kind, and begin with one of each row in the order of the rows.
  std::uint32_t rows = 0;
  std::uint32_t rows_in = 0;
  std::vector<CopyPiece> pieces_in;
  std::vector<CopyPiece> pieces_out;
  // Whether the rows are a value of the kernel that copies in, which leaves those of the copies out
  // near for the kernel that copies out. Each launch has its own then, and there is no table in the
  // host's memory: not if there are too many, nothing goes in, or a node cannot be rewritten.
  bool by_value = false;
  // Whether several of those that go in are copied at a time: they are values, and each is small.
  bool small_in = false;
  // Likewise those that go out, by a few blocks of which each marks the end of its part.
  bool small_out = false;
  // Whether the rows are fetched from the host's memory once, by a kernel of its own, before the
  // copies that look them up: there are so many pieces that each looking over there takes longer.
  bool fetch = false;
  // Whether there are steps that copy nothing although there are rows: they have graphs of their
  // own, without the kernels that copy.
  bool may_rest = false;
  // Whether a slot's last step must have ended before something is rewritten.
  bool rewrites = false;
  Bytes slot_bytes;           // device memory of a slot
  Bytes aliased_bytes;        // and of what is mapped twice, before it is rounded
  Bytes arena_bytes;          // of the shared arena that it needs
  std::uint32_t dynamic = 0;  // how many bindings are

  std::uint32_t rows_out() const { return rows - rows_in; }
  // Words that a step marks when it ends: all of them, each when some of the copies are done.
  static constexpr std::uint32_t kMostMarks = 8;  // in one line of the host's cache
  std::uint32_t marks() const { return small_out ? std::min(TeamsFor(rows_out()), kMostMarks) : 1; }
  // Of threads that copy as many small rows.
  static std::uint32_t TeamsFor(std::uint32_t small_rows) {
    constexpr std::uint32_t kTogether = hal::kernels::kRowsTogether;
    return (small_rows + kTogether - 1) / kTogether;
  }

  static constexpr Bytes kAlignment = Program::kScratchAlignment;
  // Of a slot's memory, behind the homes: counts, and the rows where they are fetched to.
  Bytes control_bytes() const {
    return kAlignment + *AlignUp(Bytes(rows * sizeof(CopyRow)), kAlignment);
  }
  // The pieces of all copies, in the order in which the device has them.
  std::vector<CopyPiece> AllPieces() const;

  // `arena`: scratch is not in the slots; `alias`: outputs that stay in the
  // slots are mapped twice.
  static Result<Layout> Of(const Program& program, const hal::Capabilities& capabilities,
                           bool arena, bool alias = false);

 private:
  void AddRows(const hal::Capabilities& capabilities);
};

}  // namespace keel::graph
