#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "keel/base/mutex.h"
#include "task/peer.h"
#include "task/serve.h"

namespace keel::task {
namespace {

// What the thread and its owner share, and the thread alone once it was left behind.
struct Shared {
  std::shared_ptr<Region> region;
  std::shared_ptr<Doorbell> doorbell;
  std::unique_ptr<Server> server;
  std::atomic<const memory::DeviceMemory*> memory = nullptr;  // set before the thread greets
  mutable Mutex mutex;
  CondVar changed;
  bool ended KEEL_GUARDED_BY(mutex) = false;
  Status why KEEL_GUARDED_BY(mutex);  // OK while it runs
  std::atomic<bool> has_why{false};

  void End(const Status& status) {
    {
      const MutexLock lock(mutex);
      if (why.ok()) why = Unavailable(fmt::format("gave up: {}", status.message()));
      has_why.store(true, std::memory_order_release);
    }
    doorbell->Ring();
    Ring(region->lane(LaneName::kControlReplies).state->bell);
  }
  // False: it has not ended by then.
  bool WaitEnded(Deadline deadline) {
    const MutexLock lock(mutex);
    while (!ended) {
      if (deadline.never()) {
        changed.Wait(mutex);
      } else if (deadline.Passed() || !changed.WaitUntil(mutex, deadline.when())) {
        return ended;
      }
    }
    return true;
  }
};

// The threads of the process's workers, whoever's they are.
struct Threads {
  // Those that have this memory.
  std::vector<std::shared_ptr<Shared>> On(const memory::DeviceMemory* memory) {
    const MutexLock lock(mutex);
    std::erase_if(all, [](const auto& thread) { return thread.expired(); });
    std::vector<std::shared_ptr<Shared>> found;
    for (const std::weak_ptr<Shared>& known : all) {
      std::shared_ptr<Shared> thread = known.lock();
      if (thread != nullptr && thread->memory == memory) found.push_back(std::move(thread));
    }
    return found;
  }
  void Add(const std::shared_ptr<Shared>& thread) {
    const MutexLock lock(mutex);
    all.push_back(thread);
  }

  static Threads& Here() {
    static PerProcess<Threads> process;
    return process.Get();
  }

  Mutex mutex;
  std::vector<std::weak_ptr<Shared>> all KEEL_GUARDED_BY(mutex);
};

class ThreadPeer final : public Peer {
 public:
  explicit ThreadPeer(std::shared_ptr<Shared> shared)
      : Peer(shared->has_why), shared_(std::move(shared)) {}
  Status Start() {
    try {
      thread_ = std::thread([shared = shared_] {
        shared->server->Main();
        shared->End(Unavailable("it was told to end"));
        {
          const MutexLock lock(shared->mutex);
          shared->ended = true;
          shared->changed.NotifyAll();
        }
        Ring(shared->region->lane(LaneName::kControlReplies).state->bell);
      });
      Threads::Here().Add(shared_);
    } catch (const std::system_error& error) {
      return SystemError("the thread of a worker", error.code().value());
    }
    return OkStatus();
  }
  ~ThreadPeer() override {
    if (!thread_.joinable()) return;  // it never began
    Kill();
    // Only code that hangs takes longer.
    constexpr auto kPatience = std::chrono::milliseconds(200);
    if (WaitEnded(Deadline::After(kPatience))) {
      thread_.join();
    } else {
      thread_.detach();
    }
  }

  Region& region() override { return *shared_->region; }
  DataArea* data() override { return nullptr; }
  const memory::DeviceMemory* memory() const override { return shared_->memory; }
  std::string name() const override { return "a thread"; }
  Status Ended() const override {
    if (!has_ended()) return OkStatus();
    const MutexLock lock(shared_->mutex);
    return shared_->why;
  }
  void Kill() override { shared_->server->Kill(); }
  bool WaitEnded(Deadline deadline) override { return shared_->WaitEnded(deadline); }
  int process() const override { return 0; }

 private:
  const std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

// For other workers of a device that is lost, whose code may be running.
constexpr std::chrono::seconds kOthersEnd{1};

// The set of the process, opened anew if its device was lost.
Result<std::shared_ptr<memory::DeviceMemory>> OpenMemory(const WorkerOptions& options) {
  if (options.memory != nullptr) return options.memory;
  KEEL_ASSIGN(const hal::DeviceName name, hal::DeviceName::Parse(options.device));
  auto& process = memory::ProcessMemory::Global();
  // One at a time: the second of two would forget the device that the first has just opened.
  static auto& mutex = *new Mutex;
  const MutexLock lock(mutex);
  KEEL_ASSIGN(std::shared_ptr<memory::DeviceMemory> memory, process.For(name));
  const Status health = memory->device()->Health();
  if (health.ok()) return memory;
  // The device is closed, and can be opened, when nobody has it: other workers have lost it as
  // well, and need not wait for a task to find out.
  const auto others = Threads::Here().On(memory.get());
  memory.reset();
  for (const auto& other : others) {
    other->End(health);
    other->server->Kill();
  }
  const Deadline deadline = Deadline::After(kOthersEnd);
  for (const auto& other : others) other->WaitEnded(deadline);
  // Somebody else may have done so in between.
  if (const Status forgotten = process.Forget(name);
      !forgotten.ok() && forgotten.code() != StatusCode::kNotFound) {
    return forgotten;
  }
  return process.For(name);
}

}  // namespace

Result<std::unique_ptr<Peer>> StartThreadPeer(const WorkerStart& start) {
  auto shared = std::make_shared<Shared>();
  KEEL_ASSIGN(shared->region, Region::CreatePrivate());
  shared->doorbell = start.doorbell;
  // The server is a part of what it calls: it must not keep it alive.
  Shared* const raw = shared.get();
  shared->server = std::make_unique<Server>(Server::Options{
      .region = shared->region,
      .open = [raw, options = start.options]() -> Result<std::shared_ptr<memory::DeviceMemory>> {
        KEEL_ASSIGN(std::shared_ptr<memory::DeviceMemory> memory, OpenMemory(options));
        raw->memory = memory.get();
        return memory;
      },
      .orchestration = start.orchestration,
      .in_place = true,
      .answered = [raw] { raw->doorbell->RingSleepers(); },
      .give_up = [raw](const Status& why) { raw->End(why); },
  });
  auto peer = std::make_unique<ThreadPeer>(std::move(shared));
  KEEL_TRY(peer->Start());
  return std::unique_ptr<Peer>(std::move(peer));
}

}  // namespace keel::task
