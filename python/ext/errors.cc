#include "errors.h"

#include <nanobind/stl/string.h>
#include <unistd.h>

#include <atomic>
#include <cmath>

namespace keel::python {
namespace {

std::atomic<pid_t> user{0};  // the process that first used a device

bool ForkedFromUser() {
  const pid_t known = user.load();
  return known != 0 && known != getpid();
}

}  // namespace

void NoteDeviceUse() {
  pid_t none = 0;
  user.compare_exchange_strong(none, getpid());
}

void Raise(const Status& status, const std::string& report) {
  const bool forked = status.code() == StatusCode::kFailedPrecondition && ForkedFromUser();
  const nb::object exception =
      nb::module_::import_("keel.errors")
          .attr("_exception_of")(StatusCodeName(status.code()), std::string(status.message()),
                                 status.vendor_code(), std::string(status.vendor_name()), report,
                                 forked);
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
