#include "base/tick_clock.h"

#include <fstream>
#include <limits>
#include <string>

namespace keel {
namespace {

// The kernel has looked at the counter longer and more closely than a program could.
bool KernelTrustsCounter() {
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string name;
  return std::getline(file, name) && name == "tsc";
}

}  // namespace

TickClock::TickClock() {
#if defined(__x86_64__)
  static const bool trusted = KernelTrustsCounter();
  counter_ = trusted;
#endif
  made_ = Look();
}

// Both at one moment, as nearly as can be: of a few tries the one that took least.
TickClock::Moment TickClock::Look() const {
  Moment best;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < 5; ++i) {
    const std::int64_t before = Ticks();
    const std::int64_t ns = MonotonicNs();
    const std::int64_t took = Ticks() - before;
    if (took >= least) continue;
    least = took;
    best = {.ticks = before + took / 2, .ns = ns};
  }
  return best;
}

TickClock::Scale TickClock::ScaleNow() const {
  Scale scale;
  scale.ticks_ = made_.ticks;
  scale.ns_ = made_.ns;
  if (!counter_) return scale;
  const Moment now = Look();
  if (now.ticks <= made_.ticks) return scale;
  scale.ns_per_tick_ =
      static_cast<double>(now.ns - made_.ns) / static_cast<double>(now.ticks - made_.ticks);
  return scale;
}

}  // namespace keel
