// Ranges: what a thread is doing while it is slow, for profilers that show that beside the device's
// own work. Put around what makes driver calls or waits, never on a path that is meant to be fast.
//
//   const ScopedRange range("trim");
//
// Where they go is somebody else's: a driver whose vendor has such a profiler sets the sink when
// one is attached. Without a sink a range costs a load. Any thread; ranges of a thread nest.
#pragma once

#include <atomic>

namespace keel {

struct RangeSink {
  // `name` is valid during the call only.
  void (*push)(const char* name);
  void (*pop)();
};

namespace internal {
extern std::atomic<const RangeSink*> range_sink;
}  // namespace internal

// From now on; ranges that are open end where they began. `sink` must live as long as the process.
// Null: nowhere.
void SetRangeSink(const RangeSink* sink);

class ScopedRange {
 public:
  explicit ScopedRange(const char* name)
      : sink_(internal::range_sink.load(std::memory_order_acquire)) {
    if (sink_ != nullptr) [[unlikely]] {
      sink_->push(name);
    }
  }
  ~ScopedRange() {
    if (sink_ != nullptr) [[unlikely]] {
      sink_->pop();
    }
  }
  ScopedRange(const ScopedRange&) = delete;
  ScopedRange& operator=(const ScopedRange&) = delete;

 private:
  const RangeSink* const sink_;
};

}  // namespace keel
