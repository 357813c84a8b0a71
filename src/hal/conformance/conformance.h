// The conformance suite: what every driver must do, checked through the contracts of
// keel/hal/device.h and nothing else.
//
// A driver joins with a program of a few lines:
//
//   int main(int argc, char** argv) {
//     auto driver = ...;
//     return keel::hal::conformance::Main(
//         argc, argv,
//         {.driver = "mine",
//          .devices = 2,
//          .open = keel::hal::conformance::OpenFrom(*driver),
//          .expect = {.virtual_memory = true, ...},
//          .unsupported = {{"Export.OtherProcessSharesTheBytes", "no descriptors on this system"}},
//          .expected_failures = {{"Events.ElapsedTimeIsRight", "the clock is coarse; issue 12"}}});
//   }
//
// Every case is a GoogleTest test named <driver>/<Group>.<Case>, so --gtest_filter and the
// other flags work. A case gets devices that were opened for it, wrapped so that what it leaves
// alive is found, and has a time limit. Cases that lose their device run in a process of their own:
// the program starts itself again, with the same arguments. main() must therefore get to Main() in
// the same way when it is run again.
//
// The two lists keep the expectations honest:
//  - `unsupported`: the device cannot do it and says so. The case must need a capability that the
//    device does not have (or, if it needs none, must fail). A case that needs a missing
//    capability and is not listed fails, and so does a listed one whose capability is there.
//  - `expected_failures`: the device should do it and does not yet. The case runs, and must fail.
// An entry that names no case, or has no reason, ends the program before any test runs.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "keel/base/result.h"
#include "keel/hal/capabilities.h"
#include "keel/hal/device.h"
#include "keel/hal/driver.h"

namespace keel::hal::conformance {

struct Listed {
  std::string name;  // "Group.Case"
  std::string reason;
};

using OpenDevices = std::function<Result<std::vector<std::shared_ptr<Device>>>(int count)>;
using StreamHook = std::function<Status(Device& device, StreamHandle stream)>;

struct Join {
  std::string driver;  // for the names of the tests: lower case letters, digits and '_'
  std::string flag;    // what the program's own argument begins with ("--sim="); empty: it has none
  int devices = 1;     // how many `open` can open
  // Opens the first `count` devices, all of one driver. Called for each case, when nobody holds
  // the devices of the case before.
  OpenDevices open;
  // What every device must report. A capability that gets lost is a failure, not a skipped case.
  Capabilities expect;

  // What device.h leaves to drivers:
  bool detects_stale_handles = false;    // handles that were given back, or were never handed out
  bool checks_kernel_arguments = false;  // their number and sizes
  bool names_fault_address = false;      // the message of a loss has the address
  bool names_arguments = false;          // every error says which argument is wrong
  bool checks_fills = false;             // a fill of what is not mapped is refused, not a fault
  bool checks_import_size = false;       // ImportMemory knows the size that was exported
  bool loss_stops_running_work = false;  // a fault ends what runs elsewhere on the device
  bool reopens_after_loss = false;       // closing a lost device and opening it again works
  bool names_breaking_call = false;      // EndCapture of a broken capture says which call broke it

  // For drivers without kernels: the stream starts no further command until it is released. Where
  // there are kernels the suite keeps a stream busy with one.
  StreamHook hold;
  StreamHook release;

  // For devices with a controller: orchestration_code.cc, compiled for it.
  std::vector<std::byte> orchestration;

  std::vector<Listed> unsupported;
  std::vector<Listed> expected_failures;
};

// Takes the flags of GoogleTest out of argv and runs the tests. The value is main()'s.
int Main(int argc, char** argv, const Join& join);

// Opens ordinals 0 .. count-1 of `driver`, which must outlive the tests.
OpenDevices OpenFrom(Driver& driver);

}  // namespace keel::hal::conformance
