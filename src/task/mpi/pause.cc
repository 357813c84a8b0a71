#include "task/mpi/pause.h"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <ctime>

namespace keel::task::mpi {
namespace {

using std::chrono::microseconds;

// A peer that answers sooner is worth it; more would steal its core where there are few.
constexpr auto kYield = microseconds(50);
constexpr auto kFirst = microseconds(20);
// With somebody who waits; the other with nobody.
constexpr auto kAwaited = microseconds(200);
constexpr auto kLongest = std::chrono::milliseconds(1);

}  // namespace

void Pause::Add(int descriptor) { descriptors_.push_back(descriptor); }

void Pause::Remove(int descriptor) { std::erase(descriptors_, descriptor); }

bool Pause::Wait(bool awaiting) {
  const Clock::time_point now = Clock::now();
  if (idle_since_ == Clock::time_point{}) {
    idle_since_ = now;
    sleep_ = kFirst;
  }
  if (now - idle_since_ < kYield) {
    sched_yield();
    return false;
  }
  std::vector<pollfd> polled;
  polled.reserve(descriptors_.size());
  for (const int fd : descriptors_) polled.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  sleep_ = std::min<std::chrono::nanoseconds>(
      sleep_, awaiting ? std::chrono::nanoseconds(kAwaited) : std::chrono::nanoseconds(kLongest));
  const timespec time{.tv_sec = 0, .tv_nsec = static_cast<long>(sleep_.count())};
  const int ready = ppoll(polled.data(), polled.size(), &time, nullptr);
  sleep_ += sleep_ / 2;
  return ready > 0;
}

}  // namespace keel::task::mpi
