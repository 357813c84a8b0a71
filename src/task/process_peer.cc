#include "task/process_peer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "keel/base/mutex.h"
#include "keel/base/unique_fd.h"
#include "task/peer.h"
#include "task/worker_program.h"

namespace keel::task {
namespace {

Result<UniqueFd> OpenProcess(pid_t process) {
  UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
  if (!fd.valid()) return SystemError(fmt::format("pidfd_open of process {}", process), errno);
  return fd;
}

// A copy beyond the standard streams, which the new process gets others for: a program that has
// closed its own may have been given their numbers.
Result<UniqueFd> Duplicate(int descriptor) {
  UniqueFd copy(fcntl(descriptor, F_DUPFD_CLOEXEC, 3));
  if (!copy.valid()) return SystemError("a descriptor for a worker", errno);
  return copy;
}

// The signals and descriptors of the new process, freed on every path.
class SpawnPlan {
 public:
  SpawnPlan() {
    posix_spawn_file_actions_init(&files_);
    posix_spawnattr_init(&attributes_);
  }
  ~SpawnPlan() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&files_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  Result<pid_t> Spawn(const std::string& program, std::span<const int> inherited,
                      std::span<char* const> argv) {
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    int error =
        posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (error == 0) error = posix_spawnattr_setsigmask(&attributes_, &none);
    if (error == 0) error = posix_spawnattr_setsigdefault(&attributes_, &all);
    if (error == 0) error = posix_spawn_file_actions_addopen(&files_, 0, "/dev/null", O_RDONLY, 0);
    // Onto itself: that only makes it stay over exec, in the new process alone.
    for (const int fd : inherited) {
      if (error == 0) error = posix_spawn_file_actions_adddup2(&files_, fd, fd);
    }
    pid_t process = 0;
    if (error == 0) {
      error = posix_spawn(&process, program.c_str(), &files_, &attributes_, argv.data(), environ);
    }
    if (error != 0) return SystemError(fmt::format("starting {}", program), error);
    return process;
  }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

std::string SignalName(int signal) {
  const char* const name = sigabbrev_np(signal);
  return name != nullptr ? fmt::format("signal {} (SIG{})", signal, name)
                         : fmt::format("signal {}", signal);
}

// What the peer and its watcher share, and the watcher alone once it was left behind.
class Watched {
 public:
  Watched(std::unique_ptr<Region> region, std::shared_ptr<Doorbell> doorbell, UniqueFd wake,
          pid_t process, UniqueFd descriptor)
      : region_(std::move(region)),
        data_(*region_, [this] { eventfd_write(wake_.get(), 1); }),
        doorbell_(std::move(doorbell)),
        wake_(std::move(wake)),
        process_(process),
        descriptor_(std::move(descriptor)) {}

  Region& region() { return *region_; }
  DataArea& data() { return data_; }
  int process() const { return process_; }
  const std::atomic<bool>& ended() const { return ended_; }

  Status Ended() const {
    if (!ended_.load(std::memory_order_acquire)) return OkStatus();
    const MutexLock lock(mutex_);
    return why_;
  }
  void Kill() const {
    // By the descriptor: the number may be somebody else's by now.
    syscall(SYS_pidfd_send_signal, descriptor_.get(), SIGKILL, nullptr, 0);
  }
  bool WaitEnded(Deadline deadline) {
    const MutexLock lock(mutex_);
    while (why_.ok()) {
      if (deadline.never()) {
        changed_.Wait(mutex_);
      } else if (deadline.Passed() || !changed_.WaitUntil(mutex_, deadline.when())) {
        return !why_.ok();
      }
    }
    return true;
  }
  // Until the process has ended: reaps it, tells whoever waits. Empties the data when it is idle.
  void Watch() {
    bool used = false;
    for (;;) {
      std::array<pollfd, 2> wait{{{.fd = descriptor_.get(), .events = POLLIN, .revents = 0},
                                  {.fd = wake_.get(), .events = POLLIN, .revents = 0}}};
      constexpr int kIdleMilliseconds = 1000;
      const int ready = poll(wait.data(), wait.size(), used ? kIdleMilliseconds : -1);
      if (wait[0].revents != 0) break;
      if (wait[1].revents != 0) {
        eventfd_t count = 0;
        eventfd_read(wake_.get(), &count);
        used = true;
      }
      if (ready == 0) used = data_.EmptyIfIdle();
    }
    Status why = Reap();
    {
      const MutexLock lock(mutex_);
      why_ = std::move(why);
      ended_.store(true, std::memory_order_release);
      changed_.NotifyAll();
    }
    doorbell_->Ring();
    Ring(region_->lane(LaneName::kControlReplies).state->bell);
  }

 private:
  Status Reap() {
    siginfo_t info{};
    int result = 0;
    do {
      result = waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED);
    } while (result != 0 && errno == EINTR);
    if (result != 0) {
      return Unavailable(
          "has ended; how, was taken by another part of this program that waits for "
          "children");
    }
    if (info.si_code != CLD_EXITED) {
      return Unavailable("was killed by " + SignalName(info.si_status));
    }
    if (info.si_status != kGaveUpExit) {
      return Unavailable(fmt::format("has ended with exit code {}", info.si_status));
    }
    char words[sizeof(RegionHeader::last_words)];
    std::memcpy(words, region_->header().last_words, sizeof(words));
    std::string text(words, strnlen(words, sizeof(words)));
    for (char& c : text) {
      if (c < ' ' || c > '~') c = '?';
    }
    return Unavailable("gave up: " + text);
  }

  const std::unique_ptr<Region> region_;
  DataArea data_;
  const std::shared_ptr<Doorbell> doorbell_;
  const UniqueFd wake_;
  const pid_t process_;
  const UniqueFd descriptor_;
  mutable Mutex mutex_;
  CondVar changed_;
  Status why_ KEEL_GUARDED_BY(mutex_);  // OK while it runs
  std::atomic<bool> ended_{false};
};

class ProcessPeer final : public Peer {
 public:
  explicit ProcessPeer(std::shared_ptr<Watched> watched)
      : Peer(watched->ended()), watched_(std::move(watched)) {}
  Status Start() {
    try {
      watcher_ = std::thread([watched = watched_] { watched->Watch(); });
    } catch (const std::system_error& error) {
      return SystemError("the thread that watches a worker", error.code().value());
    }
    return OkStatus();
  }
  ~ProcessPeer() override {
    Kill();
    if (!watcher_.joinable()) {
      waitpid(watched_->process(), nullptr, 0);
      return;
    }
    // What was killed ends at once, but where the system keeps it in a call.
    constexpr auto kPatience = std::chrono::seconds(10);
    if (WaitEnded(Deadline::After(kPatience))) {
      watcher_.join();
    } else {
      watcher_.detach();
    }
  }

  Region& region() override { return watched_->region(); }
  DataArea* data() override { return &watched_->data(); }
  std::string name() const override { return fmt::format("process {}", process()); }
  int process() const override { return watched_->process(); }
  Status Ended() const override { return watched_->Ended(); }
  void Kill() override { watched_->Kill(); }
  bool WaitEnded(Deadline deadline) override { return watched_->WaitEnded(deadline); }

 private:
  const std::shared_ptr<Watched> watched_;
  std::thread watcher_;
};

}  // namespace

Result<std::unique_ptr<Peer>> StartProcessPeer(const WorkerStart& start) {
  KEEL_ASSIGN(std::string program, FindWorkerProgram(start.program));
  KEEL_ASSIGN(std::unique_ptr<Region> region, Region::CreateShared(start.shared_memory));
  KEEL_ASSIGN(const UniqueFd self, OpenProcess(getpid()));
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return SystemError("eventfd for a worker", errno);

  KEEL_ASSIGN(const UniqueFd region_copy, Duplicate(region->descriptor()));
  KEEL_ASSIGN(const UniqueFd doorbell_copy, Duplicate(start.doorbell->descriptor()));
  KEEL_ASSIGN(const UniqueFd self_copy, Duplicate(self.get()));
  const std::array<int, 3> inherited{region_copy.get(), doorbell_copy.get(), self_copy.get()};
  std::vector<std::string> words{program};
  words.insert(words.end(), start.arguments.begin(), start.arguments.end());
  for (const int fd : inherited) words.push_back(std::to_string(fd));
  words.push_back(std::to_string(static_cast<int>(start.orchestration)));
  words.push_back(start.options.device);
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  KEEL_ASSIGN(const pid_t process, SpawnPlan().Spawn(program, inherited, argv));
  Result<UniqueFd> descriptor = OpenProcess(process);
  if (!descriptor.ok()) {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
    return descriptor.status();
  }
  auto peer = std::make_unique<ProcessPeer>(std::make_shared<Watched>(
      std::move(region), start.doorbell, std::move(wake), process, *std::move(descriptor)));
  KEEL_TRY(peer->Start());
  return std::unique_ptr<Peer>(std::move(peer));
}

}  // namespace keel::task
