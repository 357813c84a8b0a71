// Scopes around calls of a vendor's library: what the thread had is there again afterwards.
#pragma once

#include "drivers/shared/vendor_api.h"
#include "keel/hal/capture_mode.h"

namespace keel::vendor {

// Makes a context current. Costs one query when it already is, as in a program that uses the
// device itself.
class CurrentScope {
 public:
  // `needed`: false does nothing, for calls that take their context from an argument.
  CurrentScope(const VendorApi& api, void* context, bool needed = true) : api_(api) {
    if (!needed) return;
    if (api.current_get(&before_) == kSuccess && before_ == context) return;
    changed_ = api.current_set(context) == kSuccess;
  }
  ~CurrentScope() {
    if (changed_) api_.current_set(before_);
  }
  CurrentScope(const CurrentScope&) = delete;
  CurrentScope& operator=(const CurrentScope&) = delete;

 private:
  const VendorApi& api_;
  void* before_ = nullptr;
  bool changed_ = false;
};

// Gives the library's capture mode of this thread another value: that of Keel's own mode, around
// primitives that are unsafe in a capture.
class CaptureModeScope {
 public:
  explicit CaptureModeScope(const VendorApi& api, hal::CaptureMode mode = hal::ThreadCaptureMode())
      : api_(api), mode_(static_cast<int>(mode)) {
    if (api_.exchange_capture_mode != nullptr) api_.exchange_capture_mode(&mode_);
  }
  ~CaptureModeScope() {
    if (api_.exchange_capture_mode != nullptr) api_.exchange_capture_mode(&mode_);
  }
  CaptureModeScope(const CaptureModeScope&) = delete;
  CaptureModeScope& operator=(const CaptureModeScope&) = delete;

 private:
  const VendorApi& api_;
  int mode_;
};

// Around what Keel does on the side of a primitive that is safe: no capture notices.
class RelaxedScope {
 public:
  explicit RelaxedScope(const VendorApi& api) : mode_(api, hal::CaptureMode::kRelaxed) {}

 private:
  CaptureModeScope mode_;
};

}  // namespace keel::vendor
