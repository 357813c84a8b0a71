// Blocker: keeps a stream busy until it is told to stop.
//
// It is the standard spin kernel on a flag in pinned memory, so it works on every device that runs
// kernels, and ends by itself after kLimit if the case forgets it. Without kernels it is the
// driver's hook. Whatever is queued after it on the stream has not begun while blocked() is true.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "hal/conformance/conformance.h"
#include "hal/conformance/pinned_words.h"
#include "keel/hal/event.h"

namespace keel::hal::conformance {

class Blocker {
 public:
  // The longest that a stream is kept busy. No case may need more.
  static constexpr std::chrono::seconds kLimit{20};

  // `spin` is the standard kernel kSpin of the device.
  static Result<Blocker> WithKernel(std::shared_ptr<Device> device, StreamHandle stream,
                                    KernelHandle spin);
  static Result<Blocker> WithHook(std::shared_ptr<Device> device, StreamHandle stream,
                                  const Join& join);

  Blocker(Blocker&& other) noexcept;
  Blocker& operator=(Blocker&& other) noexcept = delete;
  // Releases, and waits until the stream is past it.
  ~Blocker();

  // Whether the stream is still held. A case asks at the end of what must not have waited.
  bool blocked() const;
  // Once.
  void Release();
  // Releases when the time has come, from another thread: for calls that wait for the stream.
  void ReleaseAfter(std::chrono::milliseconds time);

 private:
  struct State;
  explicit Blocker(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace keel::hal::conformance
