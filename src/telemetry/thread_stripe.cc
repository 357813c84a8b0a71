#include "telemetry/thread_stripe.h"

#include <atomic>
#include <bit>
#include <cstdint>

namespace keel::telemetry::internal {

constinit __attribute__((tls_model("initial-exec"))) thread_local std::size_t thread_stripe =
    kNoStripe;

namespace {

// One bit for each that nobody owns. Not behind a lock: a fork could leave that taken.
constinit std::atomic<std::uint64_t> free_stripes{~std::uint64_t{0}};
static_assert(kOwnedStripes == 64);

std::size_t DealShared() {
  static std::atomic<std::size_t> next{0};
  return kOwnedStripes + next.fetch_add(1, std::memory_order_relaxed) % kSharedStripes;
}

// A thread's, if it owns a stripe.
class GiveBack {
 public:
  explicit GiveBack(std::size_t stripe) : stripe_(stripe) {}
  ~GiveBack() {
    thread_stripe = DealShared();
    // What this thread did to its stripes is seen by the next owner.
    free_stripes.fetch_or(std::uint64_t{1} << stripe_, std::memory_order_release);
  }
  GiveBack(const GiveBack&) = delete;
  GiveBack& operator=(const GiveBack&) = delete;

 private:
  const std::size_t stripe_;
};

}  // namespace

std::size_t DealStripe() {
  std::uint64_t free = free_stripes.load(std::memory_order_relaxed);
  do {
    if (free == 0) return thread_stripe = DealShared();
    // Without the lowest.
  } while (!free_stripes.compare_exchange_weak(free, free & (free - 1), std::memory_order_acquire,
                                               std::memory_order_relaxed));
  thread_stripe = static_cast<std::size_t>(std::countr_zero(free));
  static thread_local const GiveBack give_back(thread_stripe);
  return thread_stripe;
}

}  // namespace keel::telemetry::internal
