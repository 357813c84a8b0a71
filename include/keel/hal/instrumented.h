// InstrumentedDevice: any device, with its calls counted, failed on demand, delayed, and what they
// created listed until it is given back.
//
// It is how the claims about Keel are checked on every driver, real or simulated: "no driver call
// in steady state" (counts), "every call may fail and nothing leaks" (FailNth and Live), "slow
// calls do not break the order" (Delay). Costs an atomic increment and a look at the rules for
// each call; the list of live objects takes a lock on calls that create or give back.
//
// Thread-safe. Calls are numbered from 1 in the order in which they arrive.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "keel/base/export.h"
#include "keel/hal/device.h"
#include "keel/hal/primitive.h"

namespace keel::hal {

// What a call created and no call has given back.
struct KEEL_EXPORT LiveObject {
  Primitive created_by;
  std::uint64_t value = 0;       // handle or address
  std::uint64_t call = 0;        // the number of the call that created it
  std::string ToString() const;  // "CreateMemory #12: 0x5"
};

class KEEL_EXPORT InstrumentedDevice : public Device {
 public:
  // Of all primitives, and of one.
  virtual std::uint64_t calls() const = 0;
  virtual std::uint64_t calls(Primitive primitive) const = 0;
  // Counts start again at zero; rules and live objects stay.
  virtual void ResetCounts() = 0;

  // The n-th call from now (n >= 1), of any primitive or of one, returns `error` and does not
  // reach the device. Once. Replaces an earlier rule of the same scope.
  virtual void FailNth(std::uint64_t n, Status error) = 0;
  virtual void FailNth(Primitive primitive, std::uint64_t n, Status error) = 0;
  // The n-th call of a primitive from now sleeps first.
  virtual void DelayNth(Primitive primitive, std::uint64_t n, std::chrono::microseconds delay) = 0;
  virtual void ClearRules() = 0;
  // The call that FailNth failed, if one did since the last ClearRules.
  virtual std::optional<Primitive> failed() const = 0;

  virtual std::vector<LiveObject> Live() const = 0;
};

// Wraps a device. Handles made through the wrapper belong to the wrapper's retry list; the id is
// the device's own, so that both may be used in one copy.
KEEL_EXPORT std::shared_ptr<InstrumentedDevice> Instrumented(std::shared_ptr<Device> device);

}  // namespace keel::hal
