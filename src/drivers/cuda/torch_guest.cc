// A library for torch_guest_test.py: Keel's CUDA driver at work inside a program that uses CUDA
// itself. Plain C functions, because the program is in Python.
//
// A step uses every kind of primitive on the device and checks its own results. It can be called on
// any thread at any time, also in the middle of a capture of the embedding program; Start keeps
// several threads at it.

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "keel/hal/driver.h"
#include "keel/hal/event.h"
#include "keel/hal/graph.h"
#include "keel/hal/memory.h"
#include "keel/hal/module.h"
#include "keel/hal/standard_kernels.h"
#include "keel/hal/stream.h"

namespace keel {
namespace {

class Guest {
 public:
  static Guest& Get() {
    static Guest guest;
    return guest;
  }

  Status Open() {
    KEEL_ASSIGN(hal::Driver* const driver, hal::Registry::Global().Find("cuda"));
    KEEL_ASSIGN(device_, driver->Open(0));
    KEEL_ASSIGN(module_, hal::Module::LoadStandard(device_));
    KEEL_ASSIGN(fill_, module_.Find(hal::kernels::kFill));
    return OkStatus();
  }

  Status Step(std::uint32_t seed) {
    constexpr std::uint64_t kWords = 64 * 1024;
    const Bytes size(kWords * 4);
    KEEL_TRY(device_->GetMemoryInfo().status());
    KEEL_ASSIGN(const hal::Stream stream, hal::Stream::Create(device_));
    KEEL_ASSIGN(const hal::Event event, hal::Event::Create(device_));
    KEEL_ASSIGN(hal::PlainMemory plain, hal::PlainMemory::Create(device_, size));
    KEEL_ASSIGN(hal::MappedMemory mapped, hal::MappedMemory::Create(device_, 2_MiB));
    KEEL_ASSIGN(const hal::HostMemory host, hal::HostMemory::Create(device_, size));

    const std::array args = {hal::KernelArg::Out(plain.address(), size),
                             hal::KernelArg::Value(seed), hal::KernelArg::Value(kWords)};
    const hal::KernelLaunch launch{.kernel = fill_, .dims = {{4, 1, 1}, {256, 1, 1}}, .args = args};
    const auto copy = [&](hal::Location to, hal::Location from) {
      return device_->EnqueueCopy(stream.get(), {.destination = to, .source = from, .size = size});
    };
    const hal::Location on_plain = hal::Location::On(device_->id(), plain.address());
    const hal::Location on_mapped = hal::Location::On(device_->id(), mapped.address());

    // Directly, and then the same as a graph of its own.
    KEEL_TRY(device_->LaunchKernel(stream.get(), launch));
    KEEL_TRY(copy(on_mapped, on_plain));
    KEEL_TRY(event.Record(stream.get()));
    KEEL_TRY(device_->QueryEvent(event.get()).status());
    KEEL_TRY(device_->QueryStream(stream.get()).status());
    KEEL_TRY(stream.Synchronize());
    KEEL_ASSIGN(hal::Capture capture,
                hal::Capture::Begin(device_, stream.get(), hal::CaptureMode::kThreadLocal));
    KEEL_TRY(device_->LaunchKernel(stream.get(), launch));
    KEEL_TRY(copy(on_mapped, on_plain));
    KEEL_TRY(copy(hal::Location::Host(host.data()), on_mapped));
    KEEL_ASSIGN(const hal::Graph graph, capture.End());
    KEEL_ASSIGN(const hal::GraphExec exec, hal::GraphExec::Create(graph));
    KEEL_TRY(device_->EnqueueFill(
        stream.get(), {.destination = mapped.address(), .value = 0, .width = 4, .count = kWords}));
    KEEL_TRY(exec.Launch(stream.get()));
    KEEL_TRY(event.Record(stream.get()));
    KEEL_TRY(event.Synchronize());
    const auto* words = static_cast<const std::uint32_t*>(host.data());
    for (std::uint64_t i = 0; i < kWords; ++i) {
      if (words[i] != seed) return Internal("the guest read back something else than it wrote");
    }
    steps_.fetch_add(1);
    return OkStatus();
  }

  void Start(int threads) {
    stop_ = false;
    for (int t = 0; t < threads; ++t) {
      threads_.emplace_back([this, t] {
        for (std::uint32_t i = 0; !stop_; ++i) {
          if (!Keep(Step(static_cast<std::uint32_t>(t) * 1'000'000 + i + 1))) return;
        }
      });
    }
  }

  void Stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  // Remembers the first error.
  bool Keep(const Status& status) {
    if (status.ok()) return true;
    const std::lock_guard lock(mutex_);
    if (error_.empty()) error_ = status.ToString();
    return false;
  }
  const char* error() {
    const std::lock_guard lock(mutex_);
    return error_.c_str();
  }
  int steps() const { return steps_.load(); }

 private:
  std::shared_ptr<hal::Device> device_;
  hal::Module module_;
  hal::KernelHandle fill_;
  std::atomic<bool> stop_{false};
  std::atomic<int> steps_{0};
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::string error_;
};

}  // namespace
}  // namespace keel

#define GUEST_EXPORT extern "C" __attribute__((visibility("default")))

GUEST_EXPORT int guest_open() { return keel::Guest::Get().Keep(keel::Guest::Get().Open()); }
GUEST_EXPORT int guest_step(unsigned seed) {
  return keel::Guest::Get().Keep(keel::Guest::Get().Step(seed));
}
GUEST_EXPORT void guest_start(int threads) { keel::Guest::Get().Start(threads); }
GUEST_EXPORT void guest_stop() { keel::Guest::Get().Stop(); }
GUEST_EXPORT int guest_steps() { return keel::Guest::Get().steps(); }
GUEST_EXPORT const char* guest_error() { return keel::Guest::Get().error(); }
