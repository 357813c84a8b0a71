#include "task/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace keel::task {
namespace {

constexpr std::uint32_t kRequestMagic = 0x5145'524b;  // "KREQ"
constexpr std::uint32_t kReplyMagic = 0x5045'524b;    // "KREP"
constexpr std::uint32_t kDoneMagic = 0x4e4f'444b;     // "KDON"

struct RequestBody {
  std::uint32_t magic = kRequestMagic;
  std::uint32_t kind = 0;
  std::uint64_t number = 0;
  std::int64_t deadline = 0;
  std::uint64_t address = 0;
  std::uint64_t place = 0;
  std::uint64_t size = 0;
};

// A reply that is OK and says nothing else.
struct DoneReply {
  std::uint32_t magic = kDoneMagic;
  std::uint32_t reserved = 0;
  std::uint64_t number = 0;
};

struct ReplyHead {
  std::uint32_t magic = kReplyMagic;
  std::int32_t code = 0;
  std::uint64_t number = 0;
  std::uint64_t value = 0;
  std::uint64_t tasks = 0;
  std::uint64_t bytes_to_device = 0;
  std::uint64_t bytes_from_device = 0;
  std::uint64_t uploads = 0;
  std::uint64_t callables = 0;
  std::int64_t vendor_code = 0;
  std::uint32_t text = 0;  // bytes that follow
  std::uint32_t name = 0;  // and after them
};
static_assert(sizeof(ReplyHead) + kMaxErrorText + kMaxErrorName <= kLargestReply);

template <class Head>
void Put(std::span<std::byte> bytes, const Head& head) {
  static_assert(std::is_trivially_copyable_v<Head>);
  std::memcpy(bytes.data(), &head, sizeof(head));
}

template <class Head>
Result<Head> Get(std::span<const std::byte> bytes, std::string_view what) {
  Head head;
  if (bytes.size() < sizeof(head)) {
    return InvalidArgument(
        fmt::format("{} of {} bytes: {} are needed", what, bytes.size(), sizeof(head)));
  }
  const std::uint32_t magic = head.magic;
  std::memcpy(&head, bytes.data(), sizeof(head));
  if (head.magic != magic) {
    return InvalidArgument(
        fmt::format("{} begins with {:#x}: {:#x} is due", what, head.magic, magic));
  }
  return head;
}

// Its first bytes, without a part of a character (UTF-8).
std::string_view CutText(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  const auto continues = [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U;
  };
  std::size_t size = most;
  constexpr std::size_t kLongest = 3;  // bytes that continue a character
  while (size > 0 && most - size < kLongest && continues(text[size])) --size;
  return text.substr(0, continues(text[size]) ? most : size);
}

// How the message of a task begins that is not plain, and all of it if there are no arguments.
constexpr std::uint64_t kTaskMark = 0x4b53'414b;  // "KASK", and zeros
using TaskHeadWords = std::array<std::uint64_t, 4>;
constexpr std::size_t kTaskHead = sizeof(TaskHeadWords);
constexpr std::size_t kPlainTask = sizeof(PlainTaskWords);
static_assert(kPlainTask < kTaskHead);

// The head of a message that is long enough for one.
Result<TaskHeadWords> GetTaskHead(std::span<const std::byte> bytes) {
  if (bytes.size() < kTaskHead) {
    return InvalidArgument(
        fmt::format("a task of {} bytes: {} are needed", bytes.size(), kTaskHead));
  }
  TaskHeadWords head;
  std::memcpy(head.data(), bytes.data(), kTaskHead);
  if (head[0] != kTaskMark) {
    return InvalidArgument(
        fmt::format("a task begins with {:#x}: {:#x} is due", head[0], kTaskMark));
  }
  return head;
}

void ViewHead(const TaskHeadWords& head, TaskView& task) {
  task.number = head[1];
  task.callable = head[2];
  task.deadline = ToDeadline(static_cast<std::int64_t>(head[3]));
  task.arguments = NoArguments();
}

// One encoding for each task: none are not a block that says so, and what is plain is short.
Status EmptyBlock() {
  return InvalidArgument("a task has a block of arguments with nothing in it");
}
Status LongPlainTask() {
  return InvalidArgument("the message of a plain task is longer than it need be");
}

// Whether the message is that of a plain task; then `task` is it.
bool ViewPlain(std::span<const std::byte> bytes, TaskView& task) {
  if (bytes.size() != kPlainTask) return false;
  PlainTaskWords words;
  std::memcpy(words.data(), bytes.data(), kPlainTask);
  ViewTask(words, NoArguments(), task);
  return true;
}

bool IsDone(const Reply& reply) {
  return reply.status.ok() && reply.value == 0 && reply.stats == EngineStats{} &&
         reply.device.empty();
}

}  // namespace

std::size_t LargestTaskMessage() {
  constexpr std::size_t kArguments = sizeof(ArgumentsHeader) +
                                     Arguments::kMaxTensors * (sizeof(Tensor) + sizeof(Tag)) +
                                     Arguments::kMaxScalars * sizeof(std::uint64_t) + 8;
  return kTaskHead + kArguments;
}

void EncodeTask(std::uint64_t number, std::uint64_t callable, Deadline deadline,
                const Arguments& arguments, std::vector<std::byte>& bytes) {
  if (arguments.empty() && deadline.never()) {
    bytes.resize(kPlainTask);
    Put(bytes, PlainTask(number, callable));
    return;
  }
  bytes.resize(kTaskHead + (arguments.empty() ? 0 : arguments.encoded_size()));
  Put(bytes,
      TaskHeadWords{kTaskMark, number, callable, static_cast<std::uint64_t>(ToNumber(deadline))});
  if (!arguments.empty()) arguments.EncodeTo(std::span(bytes).subspan(kTaskHead));
}

std::vector<std::byte> Encode(const TaskMessage& message) {
  std::vector<std::byte> bytes;
  EncodeTask(message.number, message.callable, message.deadline, message.arguments, bytes);
  return bytes;
}

std::vector<std::byte> Encode(const Request& request) {
  std::vector<std::byte> bytes(sizeof(RequestBody));
  Put(bytes, RequestBody{.kind = static_cast<std::uint32_t>(request.kind),
                         .number = request.number,
                         .deadline = ToNumber(request.deadline),
                         .address = request.address,
                         .place = request.place,
                         .size = request.size});
  return bytes;
}

void EncodeReply(const Reply& reply, std::vector<std::byte>& bytes) {
  if (IsDone(reply)) {
    bytes.resize(sizeof(DoneReply));
    Put(bytes, DoneReply{.number = reply.number});
    return;
  }
  const std::string_view words = reply.status.ok() ? reply.device : reply.status.message();
  const std::string_view text = CutText(words, kMaxErrorText);
  const std::string_view name = reply.status.vendor_name().substr(0, kMaxErrorName);
  bytes.resize(sizeof(ReplyHead) + text.size() + name.size());
  Put(bytes, ReplyHead{.code = static_cast<std::int32_t>(reply.status.code()),
                       .number = reply.number,
                       .value = reply.value,
                       .tasks = reply.stats.tasks,
                       .bytes_to_device = reply.stats.bytes_to_device,
                       .bytes_from_device = reply.stats.bytes_from_device,
                       .uploads = reply.stats.uploads,
                       .callables = reply.stats.callables,
                       .vendor_code = reply.status.vendor_code(),
                       .text = static_cast<std::uint32_t>(text.size()),
                       .name = static_cast<std::uint32_t>(name.size())});
  const auto put = [&bytes](std::size_t at, std::string_view what) {
    std::ranges::transform(what, bytes.begin() + static_cast<std::ptrdiff_t>(at),
                           [](char c) { return static_cast<std::byte>(c); });
  };
  put(sizeof(ReplyHead), text);
  put(sizeof(ReplyHead) + text.size(), name);
}

std::vector<std::byte> Encode(const Reply& reply) {
  std::vector<std::byte> bytes;
  EncodeReply(reply, bytes);
  return bytes;
}

std::span<std::byte> NoArguments() {
  static std::vector<std::byte>& none = *new std::vector<std::byte>(Arguments().Encode());
  return none;
}

Status ViewTask(std::span<std::byte> bytes, TaskView& task) {
  if (ViewPlain(bytes, task)) return OkStatus();
  KEEL_ASSIGN(const TaskHeadWords head, GetTaskHead(bytes));
  ViewHead(head, task);
  const std::span<std::byte> arguments = bytes.subspan(kTaskHead);
  if (arguments.empty()) return task.deadline.never() ? LongPlainTask() : OkStatus();
  KEEL_TRY(Arguments::CheckBlock(arguments));
  if (ArgumentsView(arguments.data()).empty()) return EmptyBlock();
  task.arguments = arguments;
  return OkStatus();
}

Result<TaskMessage> DecodeTask(std::span<const std::byte> bytes) {
  TaskView view;
  const bool plain = ViewPlain(bytes, view);
  if (!plain) {
    KEEL_ASSIGN(const TaskHeadWords head, GetTaskHead(bytes));
    ViewHead(head, view);
  }
  TaskMessage message{.number = view.number, .callable = view.callable, .deadline = view.deadline};
  if (plain) return message;
  if (const auto block = bytes.subspan(kTaskHead); !block.empty()) {
    KEEL_ASSIGN(message.arguments, Arguments::Decode(block));
    if (message.arguments.empty()) return EmptyBlock();
  } else if (message.deadline.never()) {
    return LongPlainTask();
  }
  return message;
}

Result<Request> DecodeRequest(std::span<const std::byte> bytes) {
  KEEL_ASSIGN(const RequestBody body, Get<RequestBody>(bytes, "a request"));
  if (bytes.size() != sizeof(body)) {
    return InvalidArgument(
        fmt::format("a request of {} bytes: {} are due", bytes.size(), sizeof(body)));
  }
  if (body.kind == 0 || body.kind > kLastRequestKind) {
    return InvalidArgument(fmt::format("a request of kind {}: there is none", body.kind));
  }
  if (body.number == 0) return InvalidArgument("a request without a number");
  return Request{.kind = static_cast<RequestKind>(body.kind),
                 .number = body.number,
                 .deadline = ToDeadline(body.deadline),
                 .address = body.address,
                 .place = body.place,
                 .size = body.size};
}

Result<Reply> DecodeReply(std::span<const std::byte> bytes) {
  if (bytes.size() == sizeof(DoneReply)) {
    KEEL_ASSIGN(const DoneReply done, Get<DoneReply>(bytes, "a short reply"));
    if (done.reserved != 0) return InvalidArgument("a reply has bytes that must be 0 and are not");
    return Reply{.number = done.number};
  }
  KEEL_ASSIGN(const ReplyHead head, Get<ReplyHead>(bytes, "a reply"));
  if (head.text > kMaxErrorText || head.name > kMaxErrorName ||
      bytes.size() != sizeof(head) + head.text + head.name) {
    return InvalidArgument(fmt::format("a reply of {} bytes, with texts of {} and {}", bytes.size(),
                                       head.text, head.name));
  }
  Reply reply{.number = head.number,
              .value = head.value,
              .stats = {.tasks = head.tasks,
                        .bytes_to_device = head.bytes_to_device,
                        .bytes_from_device = head.bytes_from_device,
                        .uploads = head.uploads,
                        .callables = head.callables}};
  constexpr auto kLast = static_cast<std::int32_t>(StatusCode::kUnauthenticated);
  if (head.code < 0 || head.code > kLast) {
    return InvalidArgument(fmt::format("a reply with status {}: there is none", head.code));
  }
  const auto* const words = reinterpret_cast<const char*>(bytes.data() + sizeof(head));
  if (head.code == 0) {
    if ((head.text != 0 && head.number != 0) || head.name != 0 || head.vendor_code != 0) {
      return InvalidArgument("a reply that is OK, with an error");
    }
    reply.device.assign(words, head.text);
    if (IsDone(reply)) return InvalidArgument("a long reply that says nothing");
    return reply;
  }
  reply.status = Status(static_cast<StatusCode>(head.code), std::string(words, head.text));
  if (head.vendor_code != 0 || head.name != 0) {
    reply.status =
        std::move(reply.status)
            .WithVendor(head.vendor_code, std::string_view(words + head.text, head.name));
  }
  return reply;
}

}  // namespace keel::task
