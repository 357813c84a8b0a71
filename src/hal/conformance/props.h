// Props: one object of every kind on one device, and a table with a call of every primitive on
// them. For rules that hold for all primitives: after a loss, from inside a host call, without a
// capability.
#pragma once

#include <functional>
#include <vector>

#include "hal/conformance/context.h"
#include "keel/hal/primitive.h"

namespace keel::hal::conformance {

// What the device cannot have stays empty, and calls on it get the zero handle.
struct Props {
  static Result<Props> Create(CaseContext& context, int i = 0);

  DeviceId self = DeviceId::kNone;
  Bytes granule = 64_KiB;
  std::vector<std::byte> pageable = std::vector<std::byte>(4096);
  // For RegisterHost: pages that belong to nobody else.
  std::shared_ptr<void> pages;

  Stream stream;
  Stream capturing;  // last used by `capture`
  Event event;
  Event start;  // with timing; recorded
  Event end;
  PlainMemory plain;
  PhysicalMemory memory;  // not mapped
  AddressRange range;     // holds no mapping
  MappedMemory mapped;
  HostMemory host;
  ModuleSource source;  // of the standard kernels
  Module module;
  KernelHandle fill;
  Graph graph;
  NodeHandle node;  // of `graph`: a fill of `plain`
  GraphExec exec;   // of `graph`
  Capture capture;
};

struct PrimitiveCall {
  Primitive primitive;
  std::function<Status(Device& device, const Props& props)> call;
};

// One call of each primitive, which would succeed or at least be accepted on a device that works
// (those that give back included: a call that succeeds where it should not takes from the props).
const std::vector<PrimitiveCall>& AllPrimitives();

// The primitives of a capability: kUnimplemented without it.
std::vector<Primitive> PrimitivesOf(bool Capabilities::* capability);

// Calls each primitive that `wanted` lists (all, if it is empty), and fails for each that does not
// return `code`.
void ExpectFromPrimitives(Device& device, const Props& props, StatusCode code,
                          const std::vector<Primitive>& wanted = {});

}  // namespace keel::hal::conformance
