#include "command.h"

#include <string>

#include "terminal.h"

namespace keel::cli {

ExitCode ReportError(std::string_view command, const Status& status) {
  const bool usage =
      status.code() == StatusCode::kInvalidArgument || status.code() == StatusCode::kNotFound;
  // A mistake in an argument needs no code to be understood; for a failure it is what one looks up.
  PrintError(command, usage ? std::string(status.message()) : status.ToString());
  return usage ? kUsage : kFailure;
}

}  // namespace keel::cli
