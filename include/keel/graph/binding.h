// Bindings: what a recorded program works on, by name instead of by address.
//
// A program is recorded once and replayed for ever. What it reads and writes is not an address but
// a binding, with a size and a declared access; where the bytes of a step are is said step by step,
// and the binding's policy says how the recording gets to them although its own addresses never
// change.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "keel/base/bytes.h"
#include "keel/base/export.h"
#include "keel/hal/memory.h"

namespace keel::graph {

// What the program does with a binding.
enum class BindingAccess : std::uint8_t {
  kIn,        // reads what the caller has there; never writes
  kOut,       // writes all of it that matters; what was there before means nothing
  kInOut,     // reads and writes
  kScratch,   // works in it within a step; nobody else sees it
  kResident,  // reads and writes; the caller promises that it stays where it is (weights)
};

// How a recording that has fixed addresses gets to bytes that move.
enum class Policy : std::uint8_t {
  kAuto,  // chosen by measured cost and by how often the binding moves; every change is reported
  kResident,  // the caller's address, promised not to move: a move is an error
  kInPlace,   // the caller works in the slot's own memory: Lease::address, Lease::Hold
  kCopy,      // copied into the slot before and out of it after, as the access needs, by the graph
  kPatch,     // the caller's address is written into the commands that use it; explicit ones only
  kRemap,     // the caller's physical memory is mapped under the slot's address; whole handles only
  kRetrace,   // traced commands are traced again for the caller's address: the last resort
};

KEEL_EXPORT std::string_view AccessName(BindingAccess access);  // "in-out"
KEEL_EXPORT std::string_view PolicyName(Policy policy);         // "in-place"
// kInvalidArgument lists the names that there are.
KEEL_EXPORT Result<Policy> ParsePolicy(std::string_view name);

struct BindingSpec {
  std::string name;
  Bytes size;  // of the bytes that the program works on; not zero
  BindingAccess access = BindingAccess::kIn;
  Policy policy = Policy::kAuto;
};

// A binding of one program, as ProgramBuilder::Bind returned it.
struct BindingId {
  std::uint32_t index = 0;
  friend constexpr auto operator<=>(BindingId, BindingId) = default;
};

// Where a binding's bytes are in a step.
//
// Bindings of a step may share memory that no command writes. Where one of them is written, what
// the others see of it depends on the policies: `copy` gives each a place of its own, from the
// step's beginning to its end, and commands that reach the caller's memory (`patch`, `retrace`,
// `remap`) see at once what an earlier one wrote there; of several that are copied out, the last
// row counts. `auto` changes between these as it finds cheapest: give such bindings a policy.
//
// Identity is the generation, not the address: memory that was freed and allocated again at the
// same address is other memory, and whoever knows says so with another generation. 0: not known;
// then the address is all there is to compare.
struct Buffer {
  DeviceAddress address;
  Bytes size;
  std::uint64_t generation = 0;
  // Policy::kRemap: the memory itself, which is mapped whole; `address` is not looked at. Kept
  // until other memory was mapped in its place. Policy::kAuto: may be mapped if its size is the
  // binding's, rounded up to the device's granularity, and the caller finds it at `address`.
  std::shared_ptr<const hal::PhysicalMemory> memory;
};

}  // namespace keel::graph
