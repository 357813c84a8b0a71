#include "task/mpi/life.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <string_view>

#include "task/messages.h"

namespace keel::task::mpi {
namespace {

constexpr std::size_t kTextSize = 400;
constexpr std::size_t kMachineSize = 136;

struct Body {
  std::uint32_t kind = 0;
  std::uint32_t version = 0;
  std::uint32_t orchestration = 0;
  std::uint32_t reserved = 0;
  std::uint64_t process = 0;
  std::uint64_t shared_memory = 0;
  std::uint64_t task_replies = 0;
  std::uint64_t control_replies = 0;
  std::array<char, kTextSize> text{};
  std::array<char, kMachineSize> machine{};
  std::uint64_t end = 0;
};
static_assert(sizeof(Body) == kLifeSize);

template <std::size_t kSize>
void Put(std::array<char, kSize>& to, std::string_view from) {
  std::ranges::copy(from.substr(0, kSize), to.begin());
}

// Printable, whatever came.
template <std::size_t kSize>
std::string Get(const std::array<char, kSize>& from) {
  std::string text(from.data(), strnlen(from.data(), kSize));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

}  // namespace

std::vector<std::byte> Encode(const Life& life) {
  Body body{.kind = static_cast<std::uint32_t>(life.kind),
            .version = life.version,
            .orchestration = life.orchestration,
            .process = life.process,
            .shared_memory = life.shared_memory,
            .task_replies = life.task_replies,
            .control_replies = life.control_replies};
  Put(body.text, life.text);
  Put(body.machine, life.machine);
  std::vector<std::byte> bytes(sizeof(body));
  std::memcpy(bytes.data(), &body, sizeof(body));
  return bytes;
}

Result<Life> DecodeLife(std::span<const std::byte> bytes) {
  Body body;
  if (bytes.size() != sizeof(body)) {
    return InvalidArgument(
        fmt::format("a word of life of {} bytes: {} are due", bytes.size(), sizeof(body)));
  }
  std::memcpy(&body, bytes.data(), sizeof(body));
  if (body.kind == 0 || body.kind > static_cast<std::uint32_t>(LifeKind::kEcho)) {
    return InvalidArgument(fmt::format("a word of life of kind {}: there is none", body.kind));
  }
  if (body.orchestration > static_cast<std::uint32_t>(Orchestration::kHost)) {
    return InvalidArgument(fmt::format("orchestration {} is unknown", body.orchestration));
  }
  return Life{.kind = static_cast<LifeKind>(body.kind),
              .version = body.version,
              .orchestration = body.orchestration,
              .process = body.process,
              .shared_memory = body.shared_memory,
              .task_replies = body.task_replies,
              .control_replies = body.control_replies,
              .text = Get(body.text),
              .machine = Get(body.machine)};
}

Life Hello() {
  Life hello{.kind = LifeKind::kHello,
             .version = kProtocolVersion,
             .process = static_cast<std::uint64_t>(getpid())};
  utsname names{};
  if (uname(&names) == 0) hello.text = names.nodename;
  // Which system, and which of its containers.
  std::ifstream("/proc/sys/kernel/random/boot_id") >> hello.machine;
  std::array<char, 64> space{};
  if (readlink("/proc/self/ns/pid", space.data(), space.size() - 1) > 0) {
    hello.machine += space.data();
  }
  return hello;
}

UniqueFd Watch(const Life& hello) {
  if (hello.machine.empty() || hello.machine != Hello().machine) return UniqueFd();
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(hello.process), 0)));
}

bool HasEnded(const UniqueFd& process) {
  if (!process.valid()) return false;
  pollfd wait{.fd = process.get(), .events = POLLIN, .revents = 0};
  return poll(&wait, 1, 0) > 0;
}

bool Overdue(const FrameReader& reader, std::chrono::steady_clock::time_point now) {
  const auto since = reader.awaited_since();
  return since != std::chrono::steady_clock::time_point::max() && now - since > kSilence;
}

}  // namespace keel::task::mpi
