// The messages between an orchestrator and a worker: tasks, control requests, and replies to both,
// encoded for a lane. Everything in the byte order of the machine, which both sides have: between
// ranks of MPI that is checked (mpi/frames.h).
//
// Decoding trusts nothing: kInvalidArgument says what is wrong. What it returns can be encoded
// again, to the same bytes.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "keel/base/deadline.h"
#include "keel/base/result.h"
#include "keel/task/arguments.h"
#include "task/engine.h"

namespace keel::task {

// Of the messages and of the memory that they travel in (region.h). Both sides must have the same.
inline constexpr std::uint32_t kProtocolVersion = 7;

// Where bytes on the host are: for a thread an address, for a process an offset in the shared
// memory. The same holds for the host tensors of a TaskMessage.
using Place = std::uint64_t;

struct TaskMessage {
  std::uint64_t number = 0;
  std::uint64_t callable = 0;
  Deadline deadline = Deadline::Never();
  Arguments arguments;
};

// The same where it lies in a message. The arguments are a block that was checked.
struct TaskView {
  std::uint64_t number = 0;
  std::uint64_t callable = 0;
  Deadline deadline = Deadline::Never();
  std::span<std::byte> arguments;
};

// The values travel.
enum class RequestKind : std::uint32_t {
  kAllocate = 1,   // size; the reply's value is the address
  kFree = 2,       // address
  kCopyTo = 3,     // place to address, size
  kCopyFrom = 4,   // address to place, size
  kImagePart = 5,  // place, size: the next bytes of an image, for a process
  kRegister = 6,   // the parts that came before, or of a thread place and size; value: the callable
  kUnregister = 7,  // address: the callable
  kStats = 8,
  kStop = 9,               // no reply
  kRegisterFunction = 10,  // place: a HostCode of this process, for a thread; value: the callable
  // The parts that came before: `address` bytes that name a function of the worker's program, and
  // an image of its kernels; value: the callable.
  kRegisterReference = 11,
};
inline constexpr std::uint32_t kLastRequestKind = 11;

struct Request {
  RequestKind kind = RequestKind::kStats;
  std::uint64_t number = 0;  // not 0
  Deadline deadline = Deadline::Never();
  std::uint64_t address = 0;
  Place place = 0;
  std::uint64_t size = 0;
};

// The first reply of a worker, number 0, is its greeting: how its start went, its version and its
// device.
struct Reply {
  std::uint64_t number = 0;
  Status status;
  std::uint64_t value = 0;
  EngineStats stats;
  std::string device;  // of a greeting that is OK
};

// Longer ones are cut.
inline constexpr std::size_t kMaxErrorText = 2000;
inline constexpr std::size_t kMaxErrorName = 100;
// Of any message.
std::size_t LargestTaskMessage();
inline constexpr std::size_t kLargestReply = 2200;

// A deadline as it travels.
inline std::int64_t ToNumber(Deadline deadline) {
  return std::chrono::nanoseconds(deadline.when().time_since_epoch()).count();
}
inline Deadline ToDeadline(std::int64_t number) {
  return Deadline::At(Deadline::Clock::time_point(std::chrono::nanoseconds(number)));
}

// The message of a plain task, which has neither arguments nor a deadline. Any other is longer.
using PlainTaskWords = std::array<std::uint64_t, 2>;
inline PlainTaskWords PlainTask(std::uint64_t number, std::uint64_t callable) {
  return {number, callable};
}

std::vector<std::byte> Encode(const TaskMessage& message);
std::vector<std::byte> Encode(const Request& request);
std::vector<std::byte> Encode(const Reply& reply);
// The same, into memory that is kept from one message to the next. A task without arguments has no
// bytes of them, and the message of a plain task, or that a task is done, is as short as can be.
void EncodeTask(std::uint64_t number, std::uint64_t callable, Deadline deadline,
                const Arguments& arguments, std::vector<std::byte>& bytes);
void EncodeReply(const Reply& reply, std::vector<std::byte>& bytes);

// The task where its message lies.
Status ViewTask(std::span<std::byte> bytes, TaskView& task);
// The same of a plain one. `none`: NoArguments().
inline void ViewTask(const PlainTaskWords& words, std::span<std::byte> none, TaskView& task) {
  task.number = words[0];
  task.callable = words[1];
  task.deadline = Deadline::Never();
  task.arguments = none;
}
// A block with nothing in it.
std::span<std::byte> NoArguments();
Result<TaskMessage> DecodeTask(std::span<const std::byte> bytes);
Result<Request> DecodeRequest(std::span<const std::byte> bytes);
Result<Reply> DecodeReply(std::span<const std::byte> bytes);

}  // namespace keel::task
