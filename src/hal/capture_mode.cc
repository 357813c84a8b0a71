#include "keel/hal/capture_mode.h"

#include <utility>

namespace keel::hal {
namespace {

thread_local CaptureMode thread_mode = CaptureMode::kRelaxed;

}  // namespace

CaptureMode ThreadCaptureMode() { return thread_mode; }

CaptureMode ExchangeThreadCaptureMode(CaptureMode mode) { return std::exchange(thread_mode, mode); }

}  // namespace keel::hal
