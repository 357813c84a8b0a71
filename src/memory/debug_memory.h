// DebugMemory: what the allocator's debug mode knows about blocks, and how it finds writes that
// should not have been (docs/memory.md, "Finding memory errors").
//
// With guards, a block that the program gets has 512 bytes before it and at least as many behind
// its last one that are filled with a pattern. With poison, contents are filled when a block is
// handed out and when it is freed, and freed blocks are kept for a while, oldest leave first, to
// see whether the pattern is still there. Filling and reading happen on the block's own stream, so
// they come after the work that used it; who compares waits for that stream, but not for longer
// than ten seconds. A stream that is being captured, and a device that is lost, cannot be asked:
// the block then is not compared, which is counted, and goes on its way.
//
// Every call is recorded with its stack, under one lock, which is never held while something waits:
// exactly one of two racing frees of a block succeeds. Blocks belong to the allocator: DebugMemory
// takes one over when it is freed and gives it to `release` when it has seen enough of it.
//
// Thread-safe. Slow: microseconds for a stack, a fill and a wait for each call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "keel/base/mutex.h"
#include "keel/base/result.h"
#include "keel/hal/memory.h"
#include "keel/hal/stream.h"
#include "keel/memory/device_allocator.h"
#include "keel/telemetry/stacks.h"
#include "memory/arena.h"

namespace keel::memory {

struct DebugOptions {
  bool guards = false;
  bool poison = false;
  std::uint64_t quarantine = 0;  // bytes of freed blocks that are kept, at most
};

class DebugMemory {
 public:
  // Chosen so that a stray zero, a one, a NaN or a -1 is seen. New memory reads as NaN in every
  // floating point format, freed memory as a large negative number.
  static constexpr std::uint8_t kNew = 0xFF;
  static constexpr std::uint8_t kFreed = 0xDE;
  static constexpr std::uint8_t kGuard = 0xB9;
  static constexpr std::uint64_t kGuardBytes = kQuantum;

  // What to ask the pool for.
  struct Layout {
    std::uint64_t size = 0;
    std::uint64_t alignment = 0;
    std::uint64_t front = 0;   // the program's address lies so far in the block
    std::uint64_t usable = 0;  // from there, without guards
  };
  // A block of the program's, from its allocation until it is given to `release`.
  struct Allocation {
    Block* block = nullptr;     // to be looked into only by who holds it, or under the lock
    std::uint64_t begin = 0;    // its address
    std::uint64_t address = 0;  // as the program knows it
    std::uint64_t usable = 0;
    std::uint64_t requested = 0;
    telemetry::TagId tag = telemetry::TagId::kNone;
    telemetry::StackId allocated = telemetry::StackId::kNone;
    telemetry::StackId freed = telemetry::StackId::kNone;
    bool guarded = false;              // its guards are there
    bool live = true;                  // not freed
    bool reported = false;             // somebody wrote outside of it, and that was said
    std::uint64_t serial = 0;          // no other allocation has it
    std::uint64_t order = 0;           // of its free, while it is kept
    std::vector<StreamClock*> uses{};  // that RecordUse named
  };

  // `release` takes a block that nobody needs any more.
  using Release = std::function<Status(Block*)>;
  DebugMemory(std::shared_ptr<hal::Device> device, const DebugOptions& options, Release release)
      : device_(std::move(device)), options_(options), release_(std::move(release)) {}
  DebugMemory(const DebugMemory&) = delete;
  DebugMemory& operator=(const DebugMemory&) = delete;
  // What is kept is not released.
  ~DebugMemory();

  // For a request of `size` bytes, rounded.
  Layout LayOut(std::uint64_t size, std::uint64_t alignment) const;
  // The block is the program's from now on: fills it and returns the program's address. With an
  // error it is not recorded, and stays the caller's.
  Result<DeviceAddress> Add(Block* block, const Layout& layout, Bytes requested,
                            telemetry::TagId tag, telemetry::StackId stack) KEEL_EXCLUDES(mutex_);

  // The program frees it: the caller goes on with Compare and, when no recorded stream uses it any
  // more, Retire. kInvalidArgument names the block that the address belongs, or belonged, to.
  Result<Allocation> Claim(DeviceAddress address, const Bytes* size, telemetry::StackId stack)
      KEEL_EXCLUDES(mutex_);
  // Looks at the guards of a block that was claimed. kOutOfRange: somebody wrote there.
  Status Compare(const Allocation& allocation) KEEL_EXCLUDES(mutex_);
  // Keeps a claimed block, or releases it; and releases others that have been kept for long enough.
  // kOutOfRange: somebody wrote to one of those.
  Status Retire(Block* block) KEEL_EXCLUDES(mutex_);
  // Work on the clock's stream uses the block.
  Status AddUse(DeviceAddress address, StreamClock& clock) KEEL_EXCLUDES(mutex_);

  // Compares all that can be compared now: guards of live blocks, contents of freed ones. The first
  // finding, after all of them were made.
  Status CheckAll() KEEL_EXCLUDES(mutex_);
  Status CheckLive() KEEL_EXCLUDES(mutex_);
  // Compares and releases everything that is kept.
  Status Empty() KEEL_EXCLUDES(mutex_) { return Shrink(0); }

  // The live block that has the byte at `address`, if that is not in a guard.
  Result<Allocation> Find(DeviceAddress address) KEEL_EXCLUDES(mutex_);
  // How far in this block the program's address lies; 0 for a block that is not the program's.
  std::uint64_t FrontOf(const Block& block) KEEL_EXCLUDES(mutex_);
  DebugFindings findings() KEEL_EXCLUDES(mutex_);

 private:
  static constexpr std::size_t kMostReports = 100;
  static constexpr std::size_t kRemembered = 4096;
  static constexpr std::uint64_t kWindow = 1 << 20;

  // Bytes that are not what they should be; offsets are from the program's address.
  struct Damage {
    std::uint8_t expected = 0;
    std::uint64_t count = 0;
    std::int64_t first = 0;
    std::int64_t last = 0;
    std::uint8_t found = 0;  // in the first
    void Look(std::span<const std::uint8_t> bytes, std::int64_t offset);
  };
  // A range of bytes around the program's address, offsets as above.
  struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::uint64_t size() const { return static_cast<std::uint64_t>(end - begin); }
  };
  static Range FrontGuard() { return {-static_cast<std::int64_t>(kGuardBytes), 0}; }
  static Range BackGuard(const Allocation& allocation);
  // What is filled when it is freed.
  static Range Whole(const Allocation& allocation);

  // Where to put work on the block's bytes. A stream of our own for a block whose stream is gone,
  // which was idle then.
  Result<hal::StreamHandle> StreamOf(const Allocation& allocation) KEEL_EXCLUDES(mutex_);
  Result<hal::StreamHandle> StreamOfLocked(const Allocation& allocation) KEEL_REQUIRES(mutex_);
  Status EnqueueFill(const Allocation& allocation, hal::StreamHandle stream, const Range& range,
                     std::uint8_t value);
  // Pinned memory through which device memory is looked at, for a scope.
  class Window {
   public:
    Window(DebugMemory& owner, hal::HostMemory memory)
        : owner_(owner), memory_(std::move(memory)) {}
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;
    ~Window() { owner_.Give(std::move(memory_), busy_); }
    // Enqueues reading of a range into the window, at `at`.
    Status Read(const Allocation& allocation, hal::StreamHandle stream, const Range& range,
                std::uint64_t at);
    // Until that is done.
    Status Wait();
    std::span<const std::uint8_t> bytes(std::uint64_t at, std::uint64_t size) const {
      return {static_cast<const std::uint8_t*>(memory_.data()) + at, size};
    }

   private:
    DebugMemory& owner_;
    hal::HostMemory memory_;
    hal::StreamHandle busy_{};  // may still write to it
  };
  Result<hal::HostMemory> Take() KEEL_EXCLUDES(mutex_);
  void Give(hal::HostMemory memory, hal::StreamHandle busy) KEEL_EXCLUDES(mutex_);

  static Status ReadGuards(const Allocation& allocation, hal::StreamHandle stream, Window& window);
  // What was read of them. An error: not known.
  static Result<Damage> LookAtGuards(const Allocation& allocation, Window& window);
  Result<Damage> LookAtGuards(const Allocation& allocation) KEEL_EXCLUDES(mutex_);
  Result<Damage> LookAtContents(const Allocation& allocation) KEEL_EXCLUDES(mutex_);
  // What became of it: a finding, or a block that could not be looked at.
  Status Judge(const Allocation& allocation, const Result<Damage>& damage) KEEL_EXCLUDES(mutex_);
  // Fills a freed block. Not OK: it cannot be told later whether somebody writes to it.
  Status Poison(const Allocation& allocation) KEEL_EXCLUDES(mutex_);
  // Whether nothing of ours is on our own stream, after waiting for it. Blocks of streams that are
  // gone are in no order with it.
  bool OwnStreamIsIdle() KEEL_EXCLUDES(mutex_);
  // Forgets the block, but for a short memory of it, and releases it.
  Status Drop(const Allocation& allocation) KEEL_EXCLUDES(mutex_);
  Status Shrink(std::uint64_t most) KEEL_EXCLUDES(mutex_);
  Status CheckKept() KEEL_EXCLUDES(mutex_);
  void CountUnchecked(const Allocation& allocation, const Status& why) KEEL_EXCLUDES(mutex_);

  using Allocations = std::map<std::uint64_t, Allocation>;  // by the block's address
  using Kept = std::map<std::uint64_t, std::uint64_t>;      // address of the block by `order`
  void KeepLocked(const Allocation& allocation) KEEL_REQUIRES(mutex_);
  Allocation TakeKeptLocked(Kept::iterator kept) KEEL_REQUIRES(mutex_);
  // Whose block has the byte.
  Allocations::iterator FindLocked(std::uint64_t address) KEEL_REQUIRES(mutex_);
  // The same, or the newest of those that are gone that had the byte.
  std::optional<Allocation> BelongsToLocked(std::uint64_t address) KEEL_REQUIRES(mutex_);
  // Into the list and the log.
  Status Found(StatusCode code, std::string message) KEEL_EXCLUDES(mutex_);

  const std::shared_ptr<hal::Device> device_;
  const DebugOptions options_;
  const Release release_;
  Mutex mutex_;
  Allocations allocations_ KEEL_GUARDED_BY(mutex_);
  // Freed and filled, by the order of their frees.
  Kept kept_ KEEL_GUARDED_BY(mutex_);
  std::uint64_t kept_bytes_ KEEL_GUARDED_BY(mutex_) = 0;
  std::uint64_t frees_ KEEL_GUARDED_BY(mutex_) = 0;
  std::uint64_t serials_ KEEL_GUARDED_BY(mutex_) = 0;
  // Released, newest last: for who frees them again.
  std::deque<Allocation> gone_ KEEL_GUARDED_BY(mutex_);
  std::vector<std::string> reports_ KEEL_GUARDED_BY(mutex_);
  std::uint64_t found_ KEEL_GUARDED_BY(mutex_) = 0;
  std::uint64_t unchecked_ KEEL_GUARDED_BY(mutex_) = 0;
  hal::Stream own_stream_ KEEL_GUARDED_BY(mutex_);
  std::vector<hal::HostMemory> windows_ KEEL_GUARDED_BY(mutex_);
  // Those that a stream may still write to, because it could not be waited for; until the end.
  struct BusyWindow {
    hal::HostMemory memory;
    hal::StreamHandle stream;
  };
  std::vector<BusyWindow> busy_windows_ KEEL_GUARDED_BY(mutex_);
};

}  // namespace keel::memory
