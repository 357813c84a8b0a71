#include "task/lane_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <utility>

#include "keel/base/mutex.h"
#include "task/answers.h"
#include "task/control_calls.h"
#include "task/fixed_queue.h"
#include "task/lane.h"
#include "task/messages.h"
#include "task/porter.h"
#include "task/serve.h"

namespace keel::task {
namespace {

// What was killed has ended sooner; only a thread that hangs has not.
constexpr auto kEnd = std::chrono::milliseconds(500);

// Tensors of one task that are larger together are copied without the caller's lock.
constexpr std::uint64_t kCarried = 64 << 10;

Deadline Sooner(Deadline a, Deadline b) { return a.when() < b.when() ? a : b; }

bool HasHostTensors(const Arguments& arguments) {
  return std::any_of(arguments.tensors().begin(), arguments.tensors().end(),
                     [](const Tensor& tensor) { return !tensor.resident(); });
}

}  // namespace

struct LaneWorker::State {
  // One host tensor of a task that was posted: where its bytes are here and in the region.
  struct Placed {
    std::byte* host = nullptr;
    std::uint64_t size = 0;
    memory::Block* block = nullptr;
    bool read = false;
    bool written = false;
  };
  struct Posted {
    std::uint64_t task = 0;
    Deadline deadline = Deadline::Never();
    bool placed = false;     // has tensors in the region: the next element of `placed`
    std::uint32_t ring = 0;  // bytes that its message takes of a ring
  };
  // One whose message is not in the lane yet: its tensors are still on their way, or those of one
  // before it.
  struct Kept {
    std::uint64_t delivery = 0;  // of the porter; 0: it needs none
    std::uint64_t number = 0;
    std::uint64_t callable = 0;
    Deadline deadline = Deadline::Never();
    Deadline::Clock::time_point since;
    Arguments arguments;  // as the worker gets them
  };
  // One that went well, whose results are on their way to the caller.
  struct Leaving {
    std::uint64_t task = 0;
    std::uint64_t delivery = 0;
    std::vector<Placed> tensors;
  };

  State(std::string name, const WorkerStart& how, StartPeer starter)
      : device(std::move(name)),
        doorbell(how.doorbell),
        call_grace(how.call_grace),
        start(std::move(starter)) {}

  Status Begin(Deadline deadline);
  // OK, or why it is lost; notices if it has ended.
  Status Loss();
  bool MayBeLost() const { return is_lost.load(std::memory_order_acquire) || peer->has_ended(); }
  void Lose(Status why);

  Status Fits(const Arguments& arguments) const;
  Status Place(Arguments& arguments, std::vector<Placed>& tensors);
  // Copies what is read, or has the porter do it: then the number of the delivery.
  std::uint64_t CopyIn(const std::vector<Placed>& tensors);
  // Puts into the lane what has all its tensors, in the order of posting.
  void SendKept();
  Status Post(std::uint64_t task, std::uint64_t callable, const Arguments& arguments,
              Deadline deadline);
  // What follows if its message is in the lane, and if it is not.
  void Sent(std::uint64_t task, Deadline deadline, bool has_places, std::size_t ring) {
    unnoticed = true;
    ++last_number;
    if (!deadline.never()) ++timed;
    Posted& last = posted.Append();
    last.task = task;
    last.deadline = deadline;
    last.placed = has_places;
    last.ring = static_cast<std::uint32_t>(ring);
    ring_bytes += ring;
  }
  // The worker is lost with it.
  Status NotSent(const Status& why);
  void GiveBack(const std::vector<Placed>& tensors);
  // Of a task that has ended: copies back what it wrote. True: the porter does so, and the task is
  // `leaving`.
  bool CopyBack(std::uint64_t task, std::vector<Placed> tensors, bool succeeded);
  // Those whose results have arrived.
  void TakeLeaving(std::vector<TaskResult>& results);
  // Ends what was posted with what `status` says of each. Their places in the region are not given
  // back: the region goes with the worker.
  template <class StatusOf>
  void Forsake(std::vector<TaskResult>& results, const StatusOf& status) {
    if (!kept.empty()) inward.Drop();  // the caller may free those bytes next
    while (!posted.empty()) {
      const bool sent = posted.size() > kept.size();
      const Posted forsaken = posted.pop_front();
      results.push_back({.task = forsaken.task, .status = status(forsaken), .sent = sent});
      if (!sent) kept.pop_front();
    }
    placed.clear();
    timed = 0;
    ring_bytes = 0;
  }
  // When the first task is too late.
  Deadline Due() const;
  // Takes the answers that are there. An error: they make no sense.
  Status TakeAnswers(std::vector<TaskResult>& results);

  const std::string device;
  std::string opened;  // as the peer calls it
  const std::shared_ptr<Doorbell> doorbell;
  const std::chrono::nanoseconds call_grace;
  const StartPeer start;
  std::unique_ptr<Peer> peer;  // there from the first Begin on, as is the next
  std::unique_ptr<ControlCalls> control;
  bool stopped = false;
  std::string who;  // "worker 'sim:0' (process 123)"

  // The caller's lock.
  LaneWriter tasks;
  AnswerReader answers;
  FixedQueue<Posted, kCapacity> posted;
  std::deque<std::vector<Placed>> placed;
  std::deque<Kept> kept;  // the last of those posted
  std::deque<Leaving> leaving;
  std::size_t timed = 0;  // of those posted, with a deadline
  // Of the messages of those posted. No more than one ring has, whoever has read them: what serves
  // the lane may pass them on to another one (mpi/).
  std::size_t ring_bytes = 0;
  std::size_t ring_size = 0;
  std::uint64_t last_number = 0;
  bool unnoticed = false;  // posted, and no Wake since
  std::vector<std::byte> message;

  std::atomic<bool> is_lost{false};
  mutable Mutex mutex;
  Status lost KEEL_GUARDED_BY(mutex);

  // Last, because their threads use what is above.
  Porter inward{[this] { doorbell->Ring(); }};
  Porter outward{[this] { doorbell->Ring(); }};
};

// --- Life --------------------------------------------------------------------------------------

Result<std::unique_ptr<Worker>> LaneWorker::Create(std::string device, const WorkerStart& start,
                                                   StartPeer start_peer, Deadline deadline) {
  auto state = MakeSharedHere<State>(std::move(device), start, std::move(start_peer));
  KEEL_TRY(state->Begin(deadline));
  return std::unique_ptr<Worker>(new LaneWorker(std::move(state)));
}

LaneWorker::~LaneWorker() {
  constexpr auto kStop = std::chrono::seconds(5);
  if (home_.here()) Stop(Deadline::After(kStop));
}

Status LaneWorker::Here() const {
  if (home_.here()) return OkStatus();
  return FailedPrecondition(
      "this worker belongs to the process that forked this one: start workers here, or exec");
}

Status LaneWorker::State::Begin(Deadline deadline) {
  if (peer != nullptr) {
    peer->Kill();
    peer->WaitEnded(Sooner(deadline, Deadline::After(kEnd)));
  }
  KEEL_ASSIGN(std::unique_ptr<Peer> fresh, start());
  control.reset();
  peer = std::move(fresh);
  stopped = false;
  unnoticed = false;
  who = fmt::format("worker '{}' ({})", device, peer->name());
  Region& region = peer->region();
  tasks = LaneWriter(region.lane(LaneName::kTasks));
  ring_size = region.lane(LaneName::kTasks).ring.size();
  answers = AnswerReader(region);
  last_number = 0;
  // A thread cannot be ended, so it is waited for.
  const auto grace = peer->data() != nullptr ? call_grace : std::chrono::nanoseconds::max();
  control = std::make_unique<ControlCalls>(
      who, *peer, grace, [this] { return Loss(); }, [this](Status why) { Lose(std::move(why)); });
  {
    const MutexLock lock(mutex);
    lost = OkStatus();
    is_lost.store(false);
  }
  Result<std::string> greeted = control->AwaitGreeting(deadline);
  if (greeted.ok()) {
    opened = *std::move(greeted);
    return OkStatus();
  }
  Status greeting = std::move(greeted).status().Annotate(fmt::format("starting {}", who));
  peer->Kill();
  Lose(Unavailable(fmt::format("{} did not start: {}", who, greeting.message())));
  return greeting;
}

Status LaneWorker::State::Loss() {
  if (is_lost.load(std::memory_order_acquire)) {
    const MutexLock lock(mutex);
    return lost;
  }
  const Status ended = peer->Ended();
  if (ended.ok()) return OkStatus();
  Lose(Unavailable(fmt::format("{} {}", who, ended.message())));
  const MutexLock lock(mutex);
  return lost;
}

void LaneWorker::State::Lose(Status why) {
  {
    const MutexLock lock(mutex);
    if (is_lost.load(std::memory_order_relaxed)) return;
    lost = std::move(why);
    is_lost.store(true, std::memory_order_release);
  }
  peer->Kill();
  doorbell->Ring();
  Ring(peer->region().lane(LaneName::kControlReplies).state->bell);
}

std::string LaneWorker::device() const { return state_->opened; }

const memory::DeviceMemory* LaneWorker::memory() const { return state_->peer->memory(); }

Status LaneWorker::Health() const {
  KEEL_TRY(Here());
  return state_->Loss();
}

Status LaneWorker::Restart(Deadline deadline) {
  KEEL_TRY(Here());
  if (state_->Loss().ok()) {
    return FailedPrecondition(fmt::format("{} is not lost", state_->who));
  }
  if (const std::size_t left = state_->posted.size() + state_->leaving.size(); left != 0) {
    return FailedPrecondition(
        fmt::format("{} has {} tasks that were not collected", state_->who, left));
  }
  return state_->Begin(deadline);
}

void LaneWorker::Stop(Deadline deadline) {
  if (!home_.here() || std::exchange(state_->stopped, true)) return;
  State& state = *state_;
  if (state.Loss().ok()) {
    state.control->SendStop(deadline);
    state.peer->WaitEnded(deadline);
  }
  state.Lose(Unavailable(fmt::format("{} was stopped", state.who)));
  state.peer->Kill();
  state.peer->WaitEnded(Deadline::After(kEnd));
  // Whoever stops it may free the memory of its tasks next.
  state.inward.Drop();
  state.outward.Finish();
}

Peer& LaneWorker::peer() { return *state_->peer; }

// --- Tasks -------------------------------------------------------------------------------------

Status LaneWorker::Post(std::uint64_t task, std::uint64_t callable, const Arguments& arguments,
                        Deadline deadline) {
  State& state = *state_;
  if (!home_.here() || state.MayBeLost() || state.posted.full()) KEEL_TRY(WhyNot());
  return state.Post(task, callable, arguments, deadline);
}

bool LaneWorker::TryPost(std::uint64_t task, std::uint64_t callable) {
  State& state = *state_;
  if (!home_.here() || state.MayBeLost() || state.posted.full() || !state.kept.empty() ||
      !state.tasks.TryPutWords(PlainTask(state.last_number + 1, callable))) {
    return false;
  }
  state.Sent(task, Deadline::Never(), /*has_places=*/false, 0);
  return true;
}

Status LaneWorker::WhyNot() const {
  KEEL_TRY(Here());
  KEEL_TRY(state_->Loss());
  if (!state_->posted.full()) return OkStatus();
  return ResourceExhausted(
      fmt::format("{} has {} tasks already, which is all it takes", state_->who, kCapacity));
}

Status LaneWorker::State::Post(std::uint64_t task, std::uint64_t callable,
                               const Arguments& arguments, Deadline deadline) {
  const std::uint64_t number = last_number + 1;
  EncodeTask(number, callable, deadline, arguments, message);
  const std::size_t ring = RingSize(message.size());
  if (ring > ring_size) return tasks.Put(message);  // which says so
  if (ring_bytes + ring > ring_size) {
    return ResourceExhausted(fmt::format("{} has as many tasks as fit now", who));
  }
  std::vector<Placed> tensors;
  std::uint64_t delivery = 0;
  const bool places = HasHostTensors(arguments) && peer->data() != nullptr;
  if (places || !kept.empty()) {
    Arguments placed_arguments = arguments;
    if (places) {
      KEEL_TRY(Place(placed_arguments, tensors));
      delivery = CopyIn(tensors);
    }
    if (delivery != 0 || !kept.empty()) {
      kept.push_back({delivery, number, callable, deadline, Deadline::Clock::now(),
                      std::move(placed_arguments)});
      // Its time begins when its message is sent.
      Sent(task, Deadline::Never(), !tensors.empty(), ring);
      if (!tensors.empty()) placed.push_back(std::move(tensors));
      return OkStatus();
    }
    // The size stays the same.
    EncodeTask(number, callable, deadline, placed_arguments, message);
  }
  if (const Status sent = tasks.Put(message); !sent.ok()) {
    GiveBack(tensors);
    return NotSent(sent);
  }
  Sent(task, deadline, !tensors.empty(), ring);
  if (!tensors.empty()) placed.push_back(std::move(tensors));
  return OkStatus();
}

void LaneWorker::State::SendKept() {
  bool any = false;
  while (!kept.empty() && inward.Arrived(kept.front().delivery)) {
    const Kept& next = kept.front();
    const Deadline deadline =
        next.deadline.never()
            ? next.deadline
            : Deadline::At(next.deadline.when() + (Deadline::Clock::now() - next.since));
    EncodeTask(next.number, next.callable, deadline, next.arguments, message);
    if (const Status sent = tasks.Put(message); !sent.ok()) {
      static_cast<void>(NotSent(sent));
      return;
    }
    posted[posted.size() - kept.size()].deadline = deadline;
    if (!deadline.never()) ++timed;
    kept.pop_front();
    any = true;
  }
  if (any) tasks.Wake();
}

Status LaneWorker::State::NotSent(const Status& why) {
  // There was room: it was counted for what is not answered, and what is answered was read before,
  // by whoever serves the lane. To wait for a Collect would be to wait for ever: it may have
  // nothing to collect.
  const bool full = why.code() == StatusCode::kResourceExhausted;
  Lose(Unavailable(full ? fmt::format("{} does not make sense: it has answered tasks that it has "
                                      "not read, and {}",
                                      who, why.message())
                        : fmt::format("{}: {}", who, why.message())));
  return Loss();
}

void LaneWorker::Wake() {
  if (std::exchange(state_->unnoticed, false)) state_->tasks.Wake();
}

Status LaneWorker::Fits(const Arguments& arguments) const {
  KEEL_TRY(Here());
  return state_->peer->data() == nullptr ? OkStatus() : state_->Fits(arguments);
}

Status LaneWorker::State::Fits(const Arguments& arguments) const {
  const DataArea& data = *peer->data();
  std::uint64_t total = 0;
  for (const Tensor& tensor : arguments.tensors()) {
    if (tensor.resident()) continue;
    // Each is below 2^63, and the sum is looked at each time.
    total += DataArea::Rounded(tensor.size().count());
    if (total > data.size()) {
      return OutOfRange(
          fmt::format("the tensors on the host have more than the {} of shared memory of {}: raise "
                      "shared_memory, or keep them on the device",
                      ToString(Bytes(data.size())), who));
    }
  }
  return OkStatus();
}

Status LaneWorker::State::Place(Arguments& arguments, std::vector<Placed>& tensors) {
  KEEL_TRY(Fits(arguments));
  DataArea& data = *peer->data();
  for (std::size_t i = 0; i < arguments.tensors().size(); ++i) {
    Tensor& tensor = arguments.tensors()[i];
    if (tensor.resident()) continue;
    const std::uint64_t size = tensor.size().count();
    if (size == 0) {
      tensor.address = 0;
      continue;
    }
    memory::Block* const block = data.Take(size);
    if (block == nullptr) {
      GiveBack(tensors);
      return ResourceExhausted(
          fmt::format("{} has no room in its shared memory now for a tensor of {}", who,
                      ToString(tensor.size())));
    }
    auto* const host = reinterpret_cast<std::byte*>(tensor.address);
    const Tag tag = arguments.tags()[i];
    tensors.push_back(
        {.host = host, .size = size, .block = block, .read = Reads(tag), .written = Writes(tag)});
    tensor.address = block->address;
  }
  return OkStatus();
}

std::uint64_t LaneWorker::State::CopyIn(const std::vector<Placed>& tensors) {
  std::vector<Porter::Load> loads;
  std::uint64_t total = 0;
  for (const Placed& tensor : tensors) {
    if (!tensor.read) continue;
    total += tensor.size;
    loads.push_back({peer->region().at(tensor.block->address), tensor.host, tensor.size});
  }
  if (total >= kCarried) return inward.Carry(std::move(loads));
  for (const Porter::Load& load : loads) std::memcpy(load.to, load.from, load.size);
  return 0;
}

void LaneWorker::State::GiveBack(const std::vector<Placed>& tensors) {
  for (const Placed& tensor : tensors) peer->data()->Give(tensor.block);
}

Status LaneWorker::State::TakeAnswers(std::vector<TaskResult>& results) {
  KEEL_ASSIGN(const std::size_t count, answers.Look(posted.size() - kept.size()));
  if (count == 0) {
    // Who answers has what it was sent.
    KEEL_TRY(answers.Check());
    return tasks.Check();
  }
  for (std::size_t i = 0; i < count; ++i) {
    Status status;
    KEEL_TRY(answers.Take(status));
    const Posted done = posted.pop_front();
    if (!done.deadline.never()) --timed;
    ring_bytes -= done.ring;
    if (done.placed) {
      std::vector<Placed> tensors = std::move(placed.front());
      placed.pop_front();
      if (CopyBack(done.task, std::move(tensors), status.ok())) continue;
    }
    results.push_back({.task = done.task, .status = std::move(status)});
  }
  return OkStatus();
}

bool LaneWorker::State::CopyBack(std::uint64_t task, std::vector<Placed> tensors, bool succeeded) {
  std::vector<Porter::Load> loads;
  std::uint64_t total = 0;
  for (const Placed& tensor : tensors) {
    if (!tensor.written || !succeeded) continue;
    total += tensor.size;
    loads.push_back({tensor.host, peer->region().at(tensor.block->address), tensor.size});
  }
  if (total >= kCarried) {
    leaving.push_back({task, outward.Carry(std::move(loads)), std::move(tensors)});
    return true;
  }
  for (const Porter::Load& load : loads) std::memcpy(load.to, load.from, load.size);
  GiveBack(tensors);
  return false;
}

void LaneWorker::State::TakeLeaving(std::vector<TaskResult>& results) {
  while (!leaving.empty() && outward.Arrived(leaving.front().delivery)) {
    GiveBack(leaving.front().tensors);
    results.push_back({.task = leaving.front().task, .status = OkStatus(), .late = true});
    leaving.pop_front();
  }
}

void LaneWorker::Collect(std::vector<TaskResult>& results) {
  if (!home_.here()) return;
  State& state = *state_;
  // Looked at before the answers: what a worker answered before it ended counts.
  Status loss = state.Loss();
  if (loss.ok() && !state.kept.empty()) {
    state.SendKept();
    loss = state.Loss();
  }
  if (const Status taken = state.TakeAnswers(results); !taken.ok() && loss.ok()) {
    state.Lose(Unavailable(fmt::format("{} does not make sense: {}", state.who, taken.message())));
    loss = state.Loss();
  }
  if (loss.ok() && state.Due().Passed()) {
    state.Lose(
        Unavailable(fmt::format("{} was ended: a task was not done by its deadline", state.who)));
    loss = state.Loss();
    state.Forsake(results, [&](const State::Posted& posted) -> Status {
      if (!posted.deadline.Passed()) return loss;
      return DeadlineExceeded(fmt::format("{} had not done it by its deadline", state.who));
    });
  }
  if (!loss.ok()) state.Forsake(results, [&](const State::Posted&) { return loss; });
  // Nobody comes a second time, and whoever comes ends the tasks.
  if (state.stopped) state.outward.Finish();
  state.TakeLeaving(results);
}

std::size_t LaneWorker::TakeDone() {
  if (!home_.here()) return 0;
  State& state = *state_;
  // What has places or deadlines, and the loss of a worker, is for Collect.
  if (state.timed != 0 || !state.placed.empty() || !state.leaving.empty() || state.MayBeLost()) {
    return 0;
  }
  state.tasks.Expect();  // who has waited for a task is likely to submit the next
  const std::size_t count = state.answers.TakeDone(state.posted.size());
  if (state.ring_bytes != 0) {
    for (std::size_t i = 0; i < count; ++i) state.ring_bytes -= state.posted[i].ring;
  }
  state.posted.Drop(count);
  return count;
}

Deadline LaneWorker::State::Due() const {
  Deadline due = Deadline::Never();
  if (timed == 0) return due;
  for (std::size_t i = 0; i < posted.size(); ++i) due = Sooner(due, posted[i].deadline);
  if (due.never() || peer->data() != nullptr) return due;
  return Deadline::At(std::max(due.when(), Deadline::Clock::time_point{}) + kThreadGrace);
}

Sign LaneWorker::NextAnswer() const { return state_->answers.next(); }

Deadline LaneWorker::NextDeadline() const {
  if (!home_.here()) return Deadline::Never();
  const Deadline due = state_->Due();
  // A process can damage what it would be heard by.
  if (state_->posted.empty() || state_->peer->data() == nullptr) return due;
  return Sooner(due, Deadline::After(kLookAgain));
}

// --- Control -----------------------------------------------------------------------------------

Result<DeviceAddress> LaneWorker::Allocate(Bytes size, Deadline deadline) {
  KEEL_TRY(Here());
  KEEL_ASSIGN(
      const Reply reply,
      state_->control->Call({.kind = RequestKind::kAllocate, .size = size.count()}, deadline));
  return DeviceAddress(reply.value);
}

Status LaneWorker::Free(DeviceAddress address, Deadline deadline) {
  KEEL_TRY(Here());
  return state_->control->GiveBack({.kind = RequestKind::kFree, .address = address.value()},
                                   deadline);
}

Status LaneWorker::CopyTo(DeviceAddress destination, const void* source, Bytes size,
                          Deadline deadline) {
  KEEL_TRY(Here());
  return state_->control->CopyTo(destination, static_cast<const std::byte*>(source), size.count(),
                                 deadline);
}

Status LaneWorker::CopyFrom(void* destination, DeviceAddress source, Bytes size,
                            Deadline deadline) {
  KEEL_TRY(Here());
  return state_->control->CopyFrom(static_cast<std::byte*>(destination), source, size.count(),
                                   deadline);
}

Result<std::uint64_t> LaneWorker::Register(const Image& image, Deadline deadline) {
  KEEL_TRY(Here());
  return state_->control->Register(image, deadline);
}

Result<std::uint64_t> LaneWorker::RegisterFunction(const HostCode& code, Deadline deadline) {
  KEEL_TRY(Here());
  // Bytes of this process are not seen by the other side.
  if (state_->peer->data() != nullptr) return Worker::RegisterFunction(code, deadline);
  return state_->control->RegisterFunction(code, deadline);
}

Result<std::uint64_t> LaneWorker::RegisterReference(const HostCode& code, Deadline deadline) {
  KEEL_TRY(Here());
  if (state_->peer->data() == nullptr) return Worker::RegisterReference(code, deadline);
  return state_->control->RegisterReference(code, deadline);
}

Status LaneWorker::Unregister(std::uint64_t callable, Deadline deadline) {
  KEEL_TRY(Here());
  return state_->control->GiveBack({.kind = RequestKind::kUnregister, .address = callable},
                                   deadline);
}

Result<EngineStats> LaneWorker::Stats(Deadline deadline) {
  KEEL_TRY(Here());
  KEEL_ASSIGN(const Reply reply, state_->control->Call({.kind = RequestKind::kStats}, deadline));
  return reply.stats;
}

// --- Start -------------------------------------------------------------------------------------

Result<std::unique_ptr<Worker>> StartThreadWorker(const WorkerStart& start, Deadline deadline) {
  return LaneWorker::Create(
      start.options.device, start, [start] { return StartThreadPeer(start); }, deadline);
}

Result<std::unique_ptr<Worker>> StartProcessWorker(const WorkerStart& start, Deadline deadline) {
  return LaneWorker::Create(
      start.options.device, start, [start] { return StartProcessPeer(start); }, deadline);
}

}  // namespace keel::task
