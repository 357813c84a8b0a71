// For tests: what there is of processes on this machine.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "keel/base/unique_fd.h"

namespace keel::task {

// What a worker whose orchestrator is gone may take to end.
#if defined(__SANITIZE_THREAD__)
inline constexpr std::chrono::seconds kOrphanEnds{2};  // of which its runtime sleeps one at the end
#else
inline constexpr std::chrono::seconds kOrphanEnds{1};
#endif

// The longest of several times but for a few, at least one: those are the machine's, which may be
// busy with something else.
inline std::chrono::nanoseconds LongestButFew(std::vector<std::chrono::nanoseconds> times) {
  std::ranges::sort(times);
  return times.at(times.size() - 1 - std::max<std::size_t>(1, times.size() / 20));
}

// Nanoseconds that a process's threads have run.
inline std::uint64_t ProcessorTime(pid_t process) {
  std::uint64_t total = 0;
  for (const auto& thread :
       std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
    std::ifstream file(thread.path() / "schedstat");
    std::uint64_t nanoseconds = 0;
    file >> nanoseconds;
    total += nanoseconds;
  }
  return total;
}

inline std::size_t OpenDescriptors() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

// Memory that this process shares with workers.
inline std::size_t SharedMappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t found = 0;
  for (std::string line; std::getline(maps, line);) {
    found += line.find("memfd:keel-worker") != std::string::npos ? 1 : 0;
  }
  return found;
}

// Of this process; zombies are children.
inline bool HasChildren() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

// The children of a process that run a program whose name begins so; also of a process that is
// not ours. One that is just being started may have its parent's name yet, and is left out.
inline std::vector<pid_t> ChildrenOf(pid_t parent, const std::string& name = "keel-worker") {
  std::vector<pid_t> children;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", none)) {
    const std::string number = entry.path().filename();
    if (std::isdigit(static_cast<unsigned char>(number[0])) == 0) continue;
    // One that ends meanwhile cannot be read: getline says so, where its buffer would throw.
    std::ifstream file(entry.path() / "stat");
    std::string text;
    if (!std::getline(file, text)) continue;
    const std::size_t open = text.find('(');
    const std::size_t close = text.rfind(')');
    if (open == std::string::npos || close == std::string::npos) continue;  // it is gone
    if (!text.substr(open + 1, close - open - 1).starts_with(name)) continue;
    const char state = text.at(close + 2);
    if (state == 'Z' || state == 'X') continue;
    if (std::stoi(text.substr(close + 4)) == parent) children.push_back(std::stoi(number));
  }
  return children;
}

// The processes that were started with a variable, whoever their parents are by now, and not this
// one.
inline std::vector<pid_t> ProcessesWith(const std::string& name, const std::string& value) {
  const std::string wanted = name + "=" + value;
  std::vector<pid_t> found;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", none)) {
    const std::string number = entry.path().filename();
    if (std::isdigit(static_cast<unsigned char>(number[0])) == 0) continue;
    if (std::stoi(number) == getpid()) continue;
    // One that has ended has none.
    std::ifstream file(entry.path() / "environ");
    for (std::string variable; std::getline(file, variable, '\0');) {
      if (variable != wanted) continue;
      found.push_back(std::stoi(number));
      break;
    }
  }
  return found;
}

// A variable of the environment, for processes that are started meanwhile.
class ScopedVariable {
 public:
  ScopedVariable(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* const before = std::getenv(name_.c_str())) before_ = before;
    setenv(name_.c_str(), value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  }
  ~ScopedVariable() {
    if (before_.has_value()) {
      setenv(name_.c_str(), before_->c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    } else {
      unsetenv(name_.c_str());  // NOLINT(concurrency-mt-unsafe)
    }
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const std::string name_;
  std::optional<std::string> before_;
};

// Whether processes that are started now have the same addresses for the same things, so that
// simulated devices of several have equal ones.
inline bool AddressesAreSteady() {
  constexpr unsigned long kAsk = 0xffff'ffff;
  return (personality(kAsk) & ADDR_NO_RANDOMIZE) != 0;
}
// What a test of such devices says where it found none.
inline constexpr auto kAddressesVary =
    "equal addresses of two workers: this system does not let processes have them "
    "(personality, ADDR_NO_RANDOMIZE)";
// Makes it so meanwhile, where the system lets it.
class ScopedSteadyAddresses {
 public:
  ScopedSteadyAddresses() : before_(personality(0xffff'ffff)) {
    personality(static_cast<unsigned long>(before_) | ADDR_NO_RANDOMIZE);
  }
  ~ScopedSteadyAddresses() { personality(static_cast<unsigned long>(before_)); }
  ScopedSteadyAddresses(const ScopedSteadyAddresses&) = delete;
  ScopedSteadyAddresses& operator=(const ScopedSteadyAddresses&) = delete;

 private:
  const int before_;
};

inline UniqueFd OpenProcess(pid_t process) {
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
}
inline bool EndsWithin(const UniqueFd& process, int timeout_ms) {
  pollfd wait{.fd = process.get(), .events = POLLIN, .revents = 0};
  return poll(&wait, 1, timeout_ms) == 1;
}

}  // namespace keel::task
