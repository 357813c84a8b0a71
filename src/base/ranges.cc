#include "base/ranges.h"

namespace keel {

namespace internal {
constinit std::atomic<const RangeSink*> range_sink{nullptr};
}  // namespace internal

void SetRangeSink(const RangeSink* sink) {
  internal::range_sink.store(sink, std::memory_order_release);
}

}  // namespace keel
