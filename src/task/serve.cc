#include "task/serve.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <exception>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "task/answers.h"

namespace keel::task {
namespace {

// Until the next message is there. False: the server stops, or, if `damage` says so, what is
// between the two sides is damaged. While there is none it looks after the answers, which somebody
// may be waiting for.
template <class Answers>
bool Await(LaneReader& reader, Answers& answers, const std::atomic<bool>& stopping,
           Status& damage) {
  const auto sound = [&] {
    damage = reader.Check();
    if (damage.ok()) damage = answers.Check();
    return damage.ok();
  };
  for (;;) {
    const std::uint32_t seen = reader.bell();
    if (stopping.load(std::memory_order_acquire)) return false;
    if (reader.next().there()) return true;
    if (reader.SpinWhile(seen)) continue;
    if (!sound()) return false;
    reader.WaitWhile(seen, Deadline::After(kLookAgain));
    // Who was idle for so long has the time, and the next answer would write over the damage.
    if (!sound()) return false;
  }
}

// Reads what is there.
Status Read(LaneReader& reader, std::vector<std::byte>& message) {
  KEEL_ASSIGN(const bool found, reader.Read(message));
  return found ? OkStatus() : Internal("a message that was there is not");
}

Status NotHere() {
  return Unimplemented("a function of the orchestrator's process cannot run in another one");
}

}  // namespace

Server::Server(Options options) : options_(std::move(options)) {
  control_replies_ = LaneWriter(options_.region->lane(LaneName::kControlReplies));
}

void Server::Stop() {
  stopping_.store(true, std::memory_order_release);
  Ring(options_.region->lane(LaneName::kTasks).state->bell);
  Ring(options_.region->lane(LaneName::kControl).state->bell);
}

void Server::Kill() {
  killed_.store(true, std::memory_order_release);
  Stop();
}

void Server::GiveUp(const Status& why) {
  options_.give_up(why);
  Stop();
}

void Server::Main() {
  std::thread tasks;
  Status start = [&]() -> Status {
    KEEL_ASSIGN(memory_, options_.open());
    KEEL_ASSIGN(engine_, Engine::Create(memory_, options_.orchestration));
    try {
      tasks = std::thread([this] { ServeTasks(); });
    } catch (const std::system_error& error) {
      return SystemError("the thread of a worker's tasks", error.code().value());
    }
    return OkStatus();
  }();
  const bool started = start.ok();
  const Status greeted =
      control_replies_.Write(Encode(Reply{.number = 0,
                                          .status = std::move(start),
                                          .value = kProtocolVersion,
                                          .device = started ? memory_->name().ToString() : ""}));
  if (started && greeted.ok()) ServeControl();
  Stop();
  if (tasks.joinable()) tasks.join();
  engine_.reset();
  memory_.reset();
}

void Server::ServeControl() {
  LaneReader requests(options_.region->lane(LaneName::kControl));
  std::vector<std::byte> message;
  for (;;) {
    Status status;
    if (!Await(requests, control_replies_, stopping_, status)) {
      return status.ok() ? void() : GiveUp(status);
    }
    if (status = Read(requests, message); !status.ok()) return GiveUp(status);
    const Result<Request> request = DecodeRequest(message);
    if (!request.ok()) return GiveUp(request.status());
    if (request->kind == RequestKind::kStop) return;
    std::uint64_t ticket = request->number;
    if (!options_.region->header().ticket.compare_exchange_strong(ticket, ticket | kBegun)) {
      image_ = {};  // the rest of it does not come
      continue;
    }
    Reply reply = Do(*request);
    reply.number = request->number;
    if (const Status sent = control_replies_.Write(Encode(reply)); !sent.ok()) return GiveUp(sent);
    if (!reply.status.ok() && !HasDevice()) return;
  }
}

bool Server::HasDevice() {
  const Status health = memory_->device()->Health();
  if (!health.ok()) GiveUp(health);
  return health.ok();
}

Reply Server::Do(const Request& request) {
  Reply reply;
  // An image comes in one turn: what another request finds of one was given up.
  if (request.kind != RequestKind::kImagePart && request.kind != RequestKind::kRegister &&
      request.kind != RequestKind::kRegisterReference) {
    image_ = {};
  }
  const auto value = [&reply](Result<std::uint64_t> result) {
    if (result.ok()) reply.value = *result;
    reply.status = std::move(result).status();
  };
  const DeviceAddress address(request.address);
  const Bytes size(request.size);
  switch (request.kind) {
    case RequestKind::kAllocate: {
      const Result<DeviceAddress> block = engine_->Allocate(size);
      if (block.ok()) reply.value = block->value();
      reply.status = block.status();
      break;
    }
    case RequestKind::kFree:
      reply.status = engine_->Free(address);
      break;
    case RequestKind::kCopyTo:
    case RequestKind::kCopyFrom: {
      const Result<std::byte*> bytes = HostBytes(request);
      if (!bytes.ok()) {
        reply.status = bytes.status();
      } else if (request.kind == RequestKind::kCopyTo) {
        reply.status = engine_->CopyTo(address, *bytes, size, request.deadline);
      } else {
        reply.status = engine_->CopyFrom(*bytes, address, size, request.deadline);
      }
      break;
    }
    case RequestKind::kImagePart: {
      const Result<std::byte*> bytes = HostBytes(request);
      if (request.address == 0) image_.clear();
      if (!bytes.ok()) {
        reply.status = bytes.status();
      } else if (request.address != image_.size() ||
                 request.size > Image::kMaxSize - image_.size()) {
        reply.status = InvalidArgument("the parts of an image do not fit together");
      } else {
        image_.insert(image_.end(), *bytes, *bytes + request.size);
      }
      break;
    }
    case RequestKind::kRegister:
      value(Register(request));
      break;
    case RequestKind::kRegisterFunction:
      value(options_.in_place
                ? engine_->RegisterFunction(*reinterpret_cast<const HostCode*>(request.place),
                                            request.deadline)
                : NotHere());
      break;
    case RequestKind::kRegisterReference:
      value(RegisterReference(request));
      break;
    case RequestKind::kUnregister:
      reply.status = engine_->Unregister(request.address);
      break;
    case RequestKind::kStats:
      reply.stats = engine_->Stats();
      break;
    case RequestKind::kStop:
      break;
  }
  return reply;
}

Result<std::uint64_t> Server::Register(const Request& request) {
  if (options_.in_place) {
    return engine_->Register(*reinterpret_cast<const Image*>(request.place), request.deadline);
  }
  const std::vector<std::byte> bytes = std::exchange(image_, {});
  KEEL_ASSIGN(const Image image, Image::Parse(bytes));
  return engine_->Register(image, request.deadline);
}

Result<std::uint64_t> Server::RegisterReference(const Request& request) {
  const std::vector<std::byte> bytes = std::exchange(image_, {});
  if (request.address > bytes.size()) {
    return InvalidArgument("the reference of a function is longer than what was sent");
  }
  const auto all = std::span(bytes);
  KEEL_ASSIGN(Image kernels, Image::Parse(all.subspan(request.address)));
  if (options_.find == nullptr) {
    return Unimplemented(
        "the program of this worker has no functions: name one in worker_program that has");
  }
  HostFunction function;
  try {
    KEEL_ASSIGN(function, options_.find(all.first(request.address)));
  } catch (const std::exception& error) {
    return Status(StatusCode::kUnknown,
                  fmt::format("the worker's program threw looking for it: {}", error.what()));
  } catch (...) {
    // What ends a thread is no exception of C++: it has no type.
    if (abi::__cxa_current_exception_type() == nullptr) throw;
    return Status(StatusCode::kUnknown, "the worker's program threw something looking for it");
  }
  if (function == nullptr) return NotFound("the worker's program found no function");
  return engine_->RegisterFunction(
      {std::make_shared<const HostFunction>(std::move(function)), std::move(kernels), nullptr},
      request.deadline);
}

Result<std::byte*> Server::HostBytes(const Request& request) {
  if (options_.in_place) return reinterpret_cast<std::byte*>(request.place);
  if (!options_.region->InWindow(request.place, request.size)) {
    return InvalidArgument(
        fmt::format("{} bytes at {}: they are not in the window of control calls", request.size,
                    request.place));
  }
  return options_.region->at(request.place);
}

Status Server::Localize(std::span<std::byte> arguments) {
  const ArgumentsView view(arguments.data());
  for (std::size_t i = 0; i < view.tensor_count(); ++i) {
    const Tensor tensor = view.tensor(i);
    if (tensor.resident() || tensor.size().empty()) continue;
    if (!options_.region->InData(tensor.address, tensor.size().count())) {
      return InvalidArgument(fmt::format("a tensor of {} at {}: it is not in the shared memory",
                                         ToString(tensor.size()), tensor.address));
    }
    ArgumentsView::SetAddress(
        arguments.data(), i, reinterpret_cast<std::uintptr_t>(options_.region->at(tensor.address)));
  }
  return OkStatus();
}

void Server::ServeTasks() {
  // A function may end the thread.
  struct Guard {
    Server& server;
    bool returned = false;
    ~Guard() {
      if (returned) return;
      server.GiveUp(Unavailable("a function ended the thread that ran its task"));
    }
  } guard{*this};
  ServeTasksUntilTheEnd();
  guard.returned = true;
}

void Server::ServeTasksUntilTheEnd() {
  LaneReader tasks(options_.region->lane(LaneName::kTasks));
  AnswerWriter answers(*options_.region);
  std::vector<std::byte> message;
  const std::span<std::byte> none = NoArguments();
  PlainTaskWords plain;
  TaskView task;
  for (;;) {
    Status damage;
    if (!Await(tasks, answers, stopping_, damage)) return damage.ok() ? void() : GiveUp(damage);
    if (tasks.ReadWords(plain)) {
      ViewTask(plain, none, task);
    } else if (damage = Read(tasks, message); damage.ok()) {
      damage = ViewTask(message, task);
    }
    if (!damage.ok()) return GiveUp(damage);
    if (task.number != answers.next()) {
      return GiveUp(InvalidArgument(
          fmt::format("task number {}: number {} is due", task.number, answers.next())));
    }
    if (!options_.in_place) {
      if (const Status local = Localize(task.arguments); !local.ok()) return GiveUp(local);
    }
    const Status status = engine_->Run(task.callable, task.arguments, task.deadline, &killed_);
    // Whoever killed this has said what became of the task.
    if (status.code() == StatusCode::kCancelled && killed_.load()) return;
    const Status sent = answers.Answer(status);
    // Before the next task is begun: of those that are not answered the orchestrator takes only the
    // first for begun.
    options_.answered();
    if (!sent.ok()) return GiveUp(sent);
    if (status.ok()) continue;
    if (status.code() == StatusCode::kDeadlineExceeded && task.deadline.Passed()) {
      return GiveUp(DeadlineExceeded("a task was not done by its deadline"));
    }
    if (!HasDevice()) return;
  }
}

}  // namespace keel::task
