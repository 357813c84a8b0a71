#include "keel/telemetry/stacks.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>

#include "keel/base/mutex.h"

namespace keel::telemetry {
namespace {

using Addresses = std::vector<void*>;

std::string_view AsText(std::span<void* const> addresses) {
  return {reinterpret_cast<const char*>(addresses.data()), addresses.size_bytes()};
}

class StackTable {
 public:
  StackId Intern(std::span<void* const> addresses) {
    {
      const ReaderLock lock(mutex_);
      if (const auto found = ids_.find(AsText(addresses)); found != ids_.end()) {
        return found->second;
      }
      if (stacks_.size() >= kMaxStacks) return StackId::kNone;
    }
    const WriterLock lock(mutex_);
    if (const auto found = ids_.find(AsText(addresses)); found != ids_.end()) return found->second;
    if (stacks_.size() >= kMaxStacks) return StackId::kNone;
    const Addresses& kept = stacks_.emplace_back(addresses.begin(), addresses.end());
    const auto id = static_cast<StackId>(stacks_.size());  // from 1: 0 is kNone
    ids_.emplace(AsText(kept), id);
    return id;
  }

  Addresses Find(StackId id) {
    const ReaderLock lock(mutex_);
    const auto index = static_cast<std::size_t>(id);
    return index == 0 || index > stacks_.size() ? Addresses() : stacks_[index - 1];
  }

 private:
  SharedMutex mutex_;
  std::deque<Addresses> stacks_ KEEL_GUARDED_BY(mutex_);
  // The keys are the bytes of stacks_.
  std::unordered_map<std::string_view, StackId> ids_ KEEL_GUARDED_BY(mutex_);
};

// Leaked: memory is freed, and its history written, until the very end of the process.
StackTable& Table() {
  static StackTable* const table = new StackTable;
  return *table;
}

std::string Demangle(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), &std::free);
  return status == 0 && name != nullptr ? name.get() : symbol;
}

Frame ReadFrame(void* address) {
  Frame frame;
  frame.address = reinterpret_cast<std::uintptr_t>(address);
  // A return address is behind the call, and may be in the next function.
  const std::uint64_t call = frame.address - 1;
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(call), &info) == 0) return frame;
  if (info.dli_fname != nullptr) frame.object = info.dli_fname;
  if (info.dli_sname != nullptr) frame.function = Demangle(info.dli_sname);
  const auto* header = static_cast<const ElfW(Ehdr)*>(info.dli_fbase);
  // A program at a fixed address has that address in its file.
  const bool fixed = header->e_type == ET_EXEC;
  frame.offset = fixed ? call : call - reinterpret_cast<std::uintptr_t>(info.dli_fbase);
  return frame;
}

__attribute__((tls_model("initial-exec"))) thread_local StackId current_stack = StackId::kNone;

}  // namespace

[[gnu::noinline]] StackId CaptureStack(std::size_t skip) {
  // Room for this function, and for a sanitizer's around backtrace.
  std::array<void*, kMaxFrames + 2> frames;
  const auto depth = backtrace(frames.data(), static_cast<int>(frames.size()));
  const auto end = frames.begin() + std::max(depth, 0);
  const auto caller = std::find(frames.begin(), end, __builtin_return_address(0));
  const auto rest = static_cast<std::size_t>(end - caller);
  const std::size_t skipped = std::min(rest, skip);
  const std::span<void* const> wanted(std::to_address(caller) + skipped,
                                      std::min(rest - skipped, kMaxFrames));
  return wanted.empty() ? StackId::kNone : Table().Intern(wanted);
}

std::vector<Frame> ReadStack(StackId id) {
  std::vector<Frame> frames;
  for (void* address : Table().Find(id)) frames.push_back(ReadFrame(address));
  return frames;
}

ScopedStack::ScopedStack(StackId stack) : before_(current_stack) { current_stack = stack; }
ScopedStack::~ScopedStack() { current_stack = before_; }

StackId CurrentStack() { return current_stack; }

}  // namespace keel::telemetry
