#include "hal/conformance/blocker.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

#include "keel/base/deadline.h"
#include "keel/hal/capture_mode.h"

namespace keel::hal::conformance {

struct Blocker::State {
  std::shared_ptr<Device> device;
  PinnedWords flag;  // only with the kernel
  StreamHandle stream;
  StreamHook release;  // only with the hook
  Event passed;        // recorded after what blocks
  std::once_flag released;
  std::thread releaser;

  void Release();
};

Blocker::Blocker(std::unique_ptr<State> state) : state_(std::move(state)) {}

Blocker::Blocker(Blocker&& other) noexcept = default;

Result<Blocker> Blocker::WithKernel(std::shared_ptr<Device> device, StreamHandle stream,
                                    KernelHandle spin) {
  auto state = std::make_unique<State>();
  state->device = device;
  state->stream = stream;
  KEEL_ASSIGN(state->flag, PinnedWords::Create(device, 1));
  KEEL_ASSIGN(state->passed, Event::Create(device));
  const std::array args = {
      KernelArg::InOut(state->flag.address(), Bytes(8)), KernelArg::Value<std::uint64_t>(1),
      KernelArg::Value<std::uint64_t>(std::chrono::microseconds(kLimit).count())};
  KEEL_TRY(device->LaunchKernel(stream, {.kernel = spin, .args = args}));
  Blocker blocker(std::move(state));
  KEEL_TRY(blocker.state_->passed.Record(stream));
  return blocker;
}

Result<Blocker> Blocker::WithHook(std::shared_ptr<Device> device, StreamHandle stream,
                                  const Join& join) {
  auto state = std::make_unique<State>();
  state->device = device;
  state->stream = stream;
  state->release = join.release;
  KEEL_ASSIGN(state->passed, Event::Create(device));
  KEEL_TRY(join.hold(device->Innermost(), stream));
  Blocker blocker(std::move(state));
  KEEL_TRY(blocker.state_->passed.Record(stream));
  return blocker;
}

Blocker::~Blocker() {
  if (state_ == nullptr) return;
  Release();
  if (state_->releaser.joinable()) state_->releaser.join();
  const ScopedCaptureMode relaxed(CaptureMode::kRelaxed);
  const Status status = state_->passed.Synchronize(Deadline::After(kLimit * 2));
  if (!status.ok() && status.code() != StatusCode::kDeviceLost) {
    ADD_FAILURE() << "a stream that was released did not go on: " << status.ToString();
  }
}

bool Blocker::blocked() const {
  const ScopedCaptureMode relaxed(CaptureMode::kRelaxed);
  const Result<Completion> seen = state_->passed.Query();
  return seen.ok() && *seen == Completion::kPending;
}

void Blocker::State::Release() {
  std::call_once(released, [this] {
    if (release == nullptr) {
      flag.Store(1);
      return;
    }
    const Status status = release(device->Innermost(), stream);
    if (!status.ok()) ADD_FAILURE() << "could not release a stream: " << status.ToString();
  });
}

void Blocker::Release() { state_->Release(); }

void Blocker::ReleaseAfter(std::chrono::milliseconds time) {
  state_->releaser = std::thread([state = state_.get(), time] {
    std::this_thread::sleep_for(time);
    state->Release();
  });
}

}  // namespace keel::hal::conformance
