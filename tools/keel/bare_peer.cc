#include "bare_peer.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <new>
#include <system_error>

#include "base/futex_wait.h"

namespace keel::cli {

// As far apart as words of a lane are, and written as they are. Each has a bell of its own, for who
// sleeps.
struct BarePeer::Words {
  struct Word {
    // Without a look at it: whoever waits for it has it in another core's cache.
    void Set(std::uint32_t next) {
      value.store(next, std::memory_order_release);
      RingSleepers(bell);
    }
    bool IsNot(std::uint32_t seen) const { return value.load(std::memory_order_acquire) != seen; }
    // Until it is not. False: the deadline.
    bool Await(std::uint32_t seen, Deadline deadline) {
      const auto ready = [&] { return IsNot(seen); };
      return SpinUntil(ready) || WaitUntil(bell, ready, deadline);
    }
    alignas(256) std::atomic<std::uint32_t> value;
    alignas(256) FutexWord bell;
  };
  Word call;
  Word answer;
  std::atomic<bool> stop;
};

Result<std::shared_ptr<BarePeer>> BarePeer::Create() {
  RingWithoutFence();
  void* const page =
      mmap(nullptr, sizeof(Words), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return SystemError("mmap of two words", errno);
  return std::shared_ptr<BarePeer>(new BarePeer(new (page) Words{}));
}

Result<std::shared_ptr<BarePeer>> BarePeer::StartThread() {
  KEEL_ASSIGN(std::shared_ptr<BarePeer> peer, Create());
  try {
    peer->thread_ = std::thread([words = peer->words_] { Serve(*words); });
  } catch (const std::system_error& error) {
    return SystemError("the thread of a bare round trip", error.code().value());
  }
  return peer;
}

Result<std::shared_ptr<BarePeer>> BarePeer::StartProcess() {
  KEEL_ASSIGN(std::shared_ptr<BarePeer> peer, Create());
  const pid_t parent = getpid();
  const pid_t process = fork();
  if (process < 0) return SystemError("fork for a bare round trip", errno);
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);  // it ended before it could take this one with it
    Serve(*peer->words_);
    _exit(0);
  }
  peer->process_ = process;
  return peer;
}

BarePeer::~BarePeer() {
  words_->stop.store(true);
  words_->call.Set(++calls_);
  if (thread_.joinable()) thread_.join();
  if (process_ > 0) waitpid(process_, nullptr, 0);
  munmap(words_, sizeof(Words));
}

void BarePeer::Serve(Words& words) {
  RingWithoutFence();
  for (std::uint32_t seen = 0;;) {
    static_cast<void>(words.call.Await(seen, Deadline::Never()));
    seen = words.call.value.load(std::memory_order_acquire);
    if (words.stop.load(std::memory_order_relaxed)) return;
    words.answer.Set(seen);
  }
}

Status BarePeer::RoundTrips(std::uint64_t count) {
  constexpr auto kPatience = std::chrono::seconds(60);
  const Deadline deadline = Deadline::After(kPatience);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t seen = calls_;
    words_->call.Set(++calls_);
    if (!words_->answer.Await(seen, deadline)) {
      return Unavailable("the peer of a bare round trip does not answer");
    }
  }
  return OkStatus();
}

}  // namespace keel::cli
