// The calling thread's capture mode: whether its calls obey captures that are open elsewhere.
//
// Somebody in the process may be recording a graph, in a library that we do not know. A real
// driver then refuses "unsafe" calls (see device.h) from threads that its rules cover, and breaks
// the recording. Keel's threads therefore start in kRelaxed: no primitive of theirs can break a
// recording. A thread that wants the vendor's strict behaviour, to find such calls in its own
// code, exchanges its mode.
//
// The mode is a thread-local value of Keel and holds for every device; drivers carry it to their
// vendor's library around the calls where it matters, and restore what was there.
#pragma once

#include "keel/base/export.h"
#include "keel/hal/types.h"

namespace keel::hal {

KEEL_EXPORT CaptureMode ThreadCaptureMode();
// Returns the mode that was.
KEEL_EXPORT CaptureMode ExchangeThreadCaptureMode(CaptureMode mode);

class ScopedCaptureMode {
 public:
  explicit ScopedCaptureMode(CaptureMode mode) : before_(ExchangeThreadCaptureMode(mode)) {}
  ~ScopedCaptureMode() { ExchangeThreadCaptureMode(before_); }
  ScopedCaptureMode(const ScopedCaptureMode&) = delete;
  ScopedCaptureMode& operator=(const ScopedCaptureMode&) = delete;

 private:
  CaptureMode before_;
};

}  // namespace keel::hal
