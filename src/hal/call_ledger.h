// CallLedger: the bookkeeping of an InstrumentedDevice. Numbers and counts calls, applies the
// rules that fail or delay one, and holds the list of live objects. Knows no device.
//
// Thread-safe. A call that no rule waits for takes no lock.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "keel/base/bytes.h"
#include "keel/base/mutex.h"
#include "keel/base/result.h"
#include "keel/hal/instrumented.h"
#include "keel/hal/primitive.h"

namespace keel::hal {

class CallLedger {
 public:
  // What a live object's value is a value of: equal values of different kinds are different
  // objects, and one kind may be created by more than one primitive.
  enum class Kind : std::uint8_t {
    kPlain,
    kMemory,
    kRange,
    kMapping,
    kHost,
    kRegistration,
    kPeer,
    kStream,
    kEvent,
    kModule,
    kCapture,
    kGraph,
    kExec,
  };
  struct Record {
    LiveObject object;
    Bytes size;  // of a mapping
  };
  // More than one record of a key: importing memory twice may return the same handle twice.
  using Records = std::multimap<std::pair<Kind, std::uint64_t>, Record>;

  // To be called first in every primitive: the number of the call, or the error that it must
  // return without reaching the device. kFailedPrecondition in a forked child.
  Result<std::uint64_t> Begin(Primitive primitive) KEEL_EXCLUDES(mutex_);

  std::uint64_t calls() const;
  std::uint64_t calls(Primitive primitive) const;
  void ResetCounts();

  // `scope` nothing: any primitive.
  void FailNth(std::optional<Primitive> scope, std::uint64_t n, Status error) KEEL_EXCLUDES(mutex_);
  void DelayNth(Primitive primitive, std::uint64_t n, std::chrono::microseconds delay)
      KEEL_EXCLUDES(mutex_);
  void ClearRules() KEEL_EXCLUDES(mutex_);
  std::optional<Primitive> failed() const KEEL_EXCLUDES(mutex_);

  void Add(Kind kind, const LiveObject& object, Bytes size = Bytes(0)) KEEL_EXCLUDES(mutex_);
  // Nothing if the key is there: for what is idempotent.
  void AddOnce(Kind kind, const LiveObject& object) KEEL_EXCLUDES(mutex_);
  // A give-back takes the record out before it calls the device and restores it if that fails. The
  // other way round, an object that another thread creates with the same value in between would
  // be struck off instead.
  Records Take(Kind kind, std::uint64_t value) KEEL_EXCLUDES(mutex_);
  // The mappings that lie in the range.
  Records TakeMappings(DeviceAddress address, Bytes size) KEEL_EXCLUDES(mutex_);
  void Restore(Records records) KEEL_EXCLUDES(mutex_);
  // By age.
  std::vector<LiveObject> Live() const KEEL_EXCLUDES(mutex_);

 private:
  using Counts = std::array<std::atomic<std::uint64_t>, kPrimitiveCount>;
  // Fires for the first call of its scope whose number is at least `target`.
  struct FailRule {
    std::uint64_t target = 0;
    Status error;
  };
  struct DelayRule {
    std::uint64_t target = 0;
    std::chrono::microseconds delay{0};
  };

  Status Obey(Primitive primitive, std::uint64_t number, std::uint64_t nth) KEEL_EXCLUDES(mutex_);
  void UpdateArmedLocked() KEEL_REQUIRES(mutex_);

  // Counted since the beginning; what is reported is the difference to the last reset, so that
  // call numbers stay unique and a reset cannot move the target of a rule.
  std::atomic<std::uint64_t> number_{0};
  std::atomic<std::uint64_t> number_at_reset_{0};
  Counts counts_{};
  Counts counts_at_reset_{};
  std::atomic<bool> armed_{false};  // whether there is any rule

  const Home home_;
  mutable Mutex mutex_;
  std::optional<FailRule> fail_any_ KEEL_GUARDED_BY(mutex_);
  std::map<Primitive, FailRule> fail_ KEEL_GUARDED_BY(mutex_);
  std::map<Primitive, DelayRule> delay_ KEEL_GUARDED_BY(mutex_);
  std::optional<Primitive> failed_ KEEL_GUARDED_BY(mutex_);
  Records live_ KEEL_GUARDED_BY(mutex_);
};

}  // namespace keel::hal
