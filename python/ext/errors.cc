#include "errors.h"

#include <nanobind/stl/string.h>
#include <pthread.h>

#include <atomic>
#include <cmath>

namespace keel::python {
namespace {

std::atomic<bool> used{false};    // a device, by this process or one that it was forked from
std::atomic<bool> forked{false};  // after that

[[maybe_unused]] const int registered =
    pthread_atfork(nullptr, nullptr, +[] { forked.store(used.load()); });

}  // namespace

void NoteDeviceUse() { used.store(true); }

bool ForkedFromUser() { return forked.load(std::memory_order_relaxed); }

void Raise(const Status& status, const std::string& report) {
  const bool by_fork = status.code() == StatusCode::kFailedPrecondition && ForkedFromUser();
  const nb::object exception =
      nb::module_::import_("keel.errors")
          .attr("_exception_of")(StatusCodeName(status.code()), std::string(status.message()),
                                 status.vendor_code(), std::string(status.vendor_name()), report,
                                 by_fork);
  PyErr_SetObject(exception.type().ptr(), exception.ptr());
  throw nb::python_error();
}

Deadline DeadlineOf(std::optional<double> seconds) {
  if (!seconds) return Deadline::Never();
  if (std::isnan(*seconds) || *seconds < 0) {
    throw nb::value_error("timeout must be a number of seconds from 0 on, or None: wait for ever");
  }
  return Deadline::After(std::chrono::duration<double>(*seconds));
}

}  // namespace keel::python
