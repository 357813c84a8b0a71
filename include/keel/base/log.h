// Log: the few lines that Keel writes by itself, to standard error, because no caller is there to
// take a Status: a destructor that could not give back, a device that was lost.
//
// KEEL_LOG=off|error|warn|info|debug (default warn) chooses how much, read once. Nothing on a hot
// path logs. Safe from any thread, also while static objects are being destroyed.
#pragma once

#include <string_view>

#include "keel/base/export.h"

namespace keel {

enum class LogLevel { kDebug, kInfo, kWarn, kError, kOff };

KEEL_EXPORT void Log(LogLevel level, std::string_view message);
// Guard for messages that cost something to build.
KEEL_EXPORT bool LogEnabled(LogLevel level);
KEEL_EXPORT void SetLogLevel(LogLevel level);

}  // namespace keel
