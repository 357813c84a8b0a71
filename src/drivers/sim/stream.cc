#include "drivers/sim/stream.h"

#include <fmt/format.h>

#include <chrono>
#include <system_error>
#include <utility>

#include "drivers/sim/execute.h"
#include "drivers/sim/sim_device.h"

namespace keel::sim {

Result<std::shared_ptr<SimStream>> SimStream::Create(SimDevice& device, Role role,
                                                     std::uint64_t seed) {
  std::shared_ptr<SimStream> stream(new SimStream(device, role, seed));
  // The one place where the standard library reports by exception what we must report by Status.
  try {
    stream->thread_ = std::thread([raw = stream.get()] { raw->Main(); });
  } catch (const std::system_error& error) {
    return ResourceExhausted(fmt::format("starting a stream's thread: {}", error.what()));
  }
  return stream;
}

SimStream::SimStream(SimDevice& device, Role role, std::uint64_t seed)
    : device_(device), role_(role), random_(seed) {}

SimStream::~SimStream() { Stop(); }

void SimStream::Push(Work work) {
  MutexLock lock(mutex_);
  queue_.push_back(std::move(work));
  pushed_.fetch_add(1, std::memory_order_release);
  if (sleeping_) work_arrived_.NotifyOne();
}

bool SimStream::Idle() {
  if (Reached(position())) return true;
  // An event's end and the stream's are one moment, which this lock covers.
  MutexLock lock(mutex_);
  return Reached(position());
}

bool SimStream::WaitFor(std::uint64_t position, Deadline deadline) {
  waiters_.fetch_add(1);
  {
    MutexLock lock(mutex_);
    while (!Reached(position) && !Cancelled() && !deadline.Passed()) {
      if (deadline.never()) {
        progress_.Wait(mutex_);
      } else {
        progress_.WaitUntil(mutex_, deadline.when());
      }
    }
  }
  waiters_.fetch_sub(1);
  return Reached(position) || Cancelled();
}

void SimStream::Hold() { holds_.fetch_add(1); }

bool SimStream::Release() {
  MutexLock lock(mutex_);
  if (holds_.load() == 0) return false;
  holds_.fetch_sub(1);
  work_arrived_.NotifyAll();
  return true;
}

void SimStream::Finish() {
  MutexLock lock(mutex_);
  finishing_ = true;
  work_arrived_.NotifyAll();
}

void SimStream::Stop() {
  stopped_.store(true);
  Wake();
  if (thread_.joinable()) thread_.join();
}

void SimStream::Wake() {
  MutexLock lock(mutex_);
  work_arrived_.NotifyAll();
  progress_.NotifyAll();
}

bool SimStream::Cancelled() const { return stopped_.load() || device_.lost(); }

bool SimStream::AwaitTurn() {
  if (holds_.load() == 0) return !Cancelled();
  MutexLock lock(mutex_);
  while (holds_.load() > 0 && !Cancelled()) work_arrived_.Wait(mutex_);
  return !Cancelled();
}

void SimStream::Main() {
  std::deque<Work> batch;
  for (;;) {
    {
      MutexLock lock(mutex_);
      while (queue_.empty() && !finishing_ && !stopped_.load()) {
        sleeping_ = true;
        work_arrived_.Wait(mutex_);
        sleeping_ = false;
      }
      if (queue_.empty()) break;
      batch.swap(queue_);
    }
    for (Work& work : batch) {
      const bool turn = AwaitTurn();
      if (auto* reach = std::get_if<Reach>(&work)) {
        // An event that is done and a stream that is there are seen together, or neither.
        MutexLock lock(mutex_);
        if (turn) {
          reach->ticket->Reach();
        } else {
          reach->ticket->Abandon();
        }
        completed_.fetch_add(1);
      } else {
        if (turn) {
          Run(work);
        } else {
          Drop(work);
        }
        // What the work held is gone before anybody can see that it is done.
        work = Await{};
        completed_.fetch_add(1);
      }
      if (waiters_.load() > 0) {
        MutexLock lock(mutex_);
        progress_.NotifyAll();
      }
    }
    batch.clear();
  }
  ended_.store(true, std::memory_order_release);
}

void SimStream::Run(Work& work) {
  const auto cancelled = [this] { return Cancelled(); };
  if (auto* await = std::get_if<Await>(&work)) {
    await->ticket->Wait(Deadline::Never(), cancelled);
    return;
  }
  Status status;
  if (auto* launch = std::get_if<SimExec::Launch>(&work)) {
    if (launch->previous != nullptr) launch->previous->Wait(Deadline::Never(), cancelled);
    if (!Cancelled()) status = RunProgram(*launch->program, *this);
    launch->program = nullptr;  // before the ticket: see SimExec::SetParams
    if (status.ok() && !Cancelled()) {
      launch->done->Reach();
    } else {
      launch->done->Abandon();
    }
  } else {
    status = RunCommand(std::get<StoredCommand>(work), device_.ordinal(), *this);
  }
  if (!status.ok()) device_.LoseBy(status);
}

void SimStream::Drop(Work& work) {
  if (auto* launch = std::get_if<SimExec::Launch>(&work)) launch->done->Abandon();
}

}  // namespace keel::sim
