// For tests: memory of which nobody can read or write the first page until it is let go. Who does
// so waits: a copy of it is under way for as long as the test wants.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <ctime>
#include <span>

#include "base/soon_test.h"

namespace keel::task {

// One at a time.
class BlockedMemory {
 public:
  explicit BlockedMemory(std::size_t size)
      : size_(size), memory_(mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    EXPECT_NE(memory_, MAP_FAILED);
    EXPECT_EQ(mprotect(Rest(), size_ - Page(), PROT_READ | PROT_WRITE), 0);
    EXPECT_EQ(blocked, nullptr);
    blocked = this;
    struct sigaction action = {};
    action.sa_sigaction = &OnFault;
    action.sa_flags = SA_SIGINFO;
    EXPECT_EQ(sigaction(SIGSEGV, &action, &before_), 0);
  }
  ~BlockedMemory() {
    Release();
    EXPECT_FALSE(gave_up_) << "whoever touched it waited for too long";
    EXPECT_EQ(sigaction(SIGSEGV, &before_, nullptr), 0);
    blocked = nullptr;
    munmap(memory_, size_);
  }
  BlockedMemory(const BlockedMemory&) = delete;
  BlockedMemory& operator=(const BlockedMemory&) = delete;

  template <class T>
  std::span<T> As() const {
    return {static_cast<T*>(memory_), size_ / sizeof(T)};
  }
  // Whether somebody waits, or did.
  bool touched() const { return touched_; }
  bool AwaitTouched() const {
    return Soon([&] { return touched(); });
  }
  // As it was in the beginning. Nobody may be at it.
  void Block() {
    open_ = false;
    touched_ = false;
    EXPECT_EQ(mprotect(memory_, Page(), PROT_NONE), 0);
  }
  void Release() {
    Open();
    open_ = true;
  }

 private:
  static std::size_t Page() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }
  void* Rest() const { return static_cast<std::byte*>(memory_) + Page(); }
  void Open() const { static_cast<void>(mprotect(memory_, Page(), PROT_READ | PROT_WRITE)); }

  static void OnFault(int signal, siginfo_t* info, void* /*context*/) {
    BlockedMemory* const memory = blocked;
    const auto* const at = static_cast<const std::byte*>(info->si_addr);
    if (memory == nullptr || at < memory->memory_ || at >= memory->Rest()) {
      // Somebody else's: told by whoever was asked before, a sanitizer perhaps, when it comes
      // again.
      if (memory == nullptr || sigaction(signal, &memory->before_, nullptr) != 0) {
        static_cast<void>(std::signal(signal, SIG_DFL));
      }
      return;
    }
    memory->touched_ = true;
    const timespec tick{.tv_sec = 0, .tv_nsec = 1'000'000};
    for (int ticks = 0; !memory->open_; ++ticks) {
      constexpr int kPatience = 20'000;
      if (ticks >= kPatience) {
        memory->gave_up_ = true;
        memory->Release();
      }
      nanosleep(&tick, nullptr);
    }
  }

  static inline std::atomic<BlockedMemory*> blocked{nullptr};
  const std::size_t size_;
  void* const memory_;
  struct sigaction before_ = {};
  std::atomic<bool> open_{false};
  std::atomic<bool> touched_{false};
  std::atomic<bool> gave_up_{false};
};

}  // namespace keel::task
