// OwnedHandle: the one implementation behind the owning classes of this layer.
//
// An owner is move-only and gives its handle back exactly once. Close() does it and returns the
// status; when that fails the owner still owns, and Close() may be tried again. A destructor tries
// too; when that fails it logs and leaves the give-back on the device's retry list (retry_list.h).
// On a lost device or in a forked child there is nothing to give back: the destructor is silent.
//
// An owner keeps its device open. It is not thread-safe itself: one thread at a time moves, closes
// or destroys one owner; the primitives that use the handle are safe from any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/hal/device.h"

namespace keel::hal {

namespace internal {
// For a give-back that failed with `status`: logs, and leaves it on the retry list. Nothing on a
// device that is lost. `attempt` must not keep the device alive (the list is the device's own).
KEEL_EXPORT void LeaveForRetry(Device& device, const Status& status, std::string what,
                               std::function<Status()> attempt) noexcept;
// For destructors: tries, and leaves it for later if that fails. What only a failure needs, the
// description and the function object, is made only then.
template <class Describe, class Attempt>
void GiveBackOrRetry(Device& device, Describe describe, Attempt attempt) noexcept {
  const Status status = attempt();
  if (!status.ok()) LeaveForRetry(device, status, describe(), std::move(attempt));
}
// For Close(): drains the retry list first, if there is something on it; what stays there is not
// this caller's failure.
KEEL_EXPORT void DrainBeforeClose(Device& device);
}  // namespace internal

// `Traits` has: type Handle; static Status GiveBack(Device&, const Handle&); static std::string
// Describe(const Handle&), for the log and the retry list.
template <class Traits>
class OwnedHandle {
 public:
  using Handle = typename Traits::Handle;

  OwnedHandle() = default;
  OwnedHandle(std::shared_ptr<Device> device, Handle handle)
      : device_(std::move(device)), handle_(handle) {}
  OwnedHandle(OwnedHandle&& other) noexcept
      : device_(std::move(other.device_)), handle_(std::exchange(other.handle_, Handle{})) {
    other.device_ = nullptr;
  }
  OwnedHandle& operator=(OwnedHandle&& other) noexcept {
    if (this != &other) {
      GiveBack();
      device_ = std::exchange(other.device_, nullptr);
      handle_ = std::exchange(other.handle_, Handle{});
    }
    return *this;
  }
  ~OwnedHandle() { GiveBack(); }

  explicit operator bool() const { return device_ != nullptr; }
  const Handle& handle() const { return handle_; }
  const std::shared_ptr<Device>& device() const { return device_; }

  // OK for an owner of nothing.
  Status Close() {
    if (device_ == nullptr) return OkStatus();
    internal::DrainBeforeClose(*device_);
    Status status = Traits::GiveBack(*device_, handle_);
    if (status.ok() || status.code() == StatusCode::kDeviceLost) Forget();
    return status;
  }

  // The caller gives it back from now on.
  Handle Release() {
    const Handle handle = handle_;
    Forget();
    return handle;
  }

 private:
  void Forget() {
    device_ = nullptr;
    handle_ = Handle{};
  }
  void GiveBack() noexcept {
    if (device_ == nullptr) return;
    Device* device = device_.get();
    internal::GiveBackOrRetry(
        *device, [this] { return Traits::Describe(handle_); },
        [device, handle = handle_] { return Traits::GiveBack(*device, handle); });
    Forget();
  }

  std::shared_ptr<Device> device_;  // null: owns nothing
  Handle handle_{};
};

}  // namespace keel::hal
