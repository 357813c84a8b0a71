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

// On a line each, as the cursors of a lane are.
struct BarePeer::Words {
  alignas(64) FutexWord call;
  alignas(64) FutexWord answer;
  std::atomic<bool> stop;
};

Result<std::shared_ptr<BarePeer>> BarePeer::Create() {
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
  Ring(words_->call);
  if (thread_.joinable()) thread_.join();
  if (process_ > 0) waitpid(process_, nullptr, 0);
  munmap(words_, sizeof(Words));
}

void BarePeer::Serve(Words& words) {
  for (std::uint32_t seen = 0;;) {
    if (!SpinBriefly(words.call, seen)) {
      static_cast<void>(WaitWhile(words.call, seen, Deadline::Never()));
    }
    seen = words.call.value.load(std::memory_order_acquire);
    if (words.stop.load()) return;
    Ring(words.answer);
  }
}

Status BarePeer::RoundTrips(std::uint64_t count) {
  constexpr auto kPatience = std::chrono::seconds(60);
  const Deadline deadline = Deadline::After(kPatience);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t seen = words_->answer.value.load(std::memory_order_acquire);
    Ring(words_->call);
    if (!SpinBriefly(words_->answer, seen) && !WaitWhile(words_->answer, seen, deadline)) {
      return Unavailable("the peer of a bare round trip does not answer");
    }
  }
  return OkStatus();
}

}  // namespace keel::cli
