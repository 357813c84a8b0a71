#include "keel/base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "base/quote.h"

namespace keel {
namespace {

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

bool ParseLevel(const std::string& name, LogLevel* level) {
  if (name == "off") return *level = LogLevel::kOff, true;
  if (name == "error") return *level = LogLevel::kError, true;
  if (name == "warn") return *level = LogLevel::kWarn, true;
  if (name == "info") return *level = LogLevel::kInfo, true;
  if (name == "debug") return *level = LogLevel::kDebug, true;
  return false;
}

spdlog::logger* CreateLogger() {
  // Not through spdlog's registry: that is a static object, gone while ours may still be used.
  auto* logger = new spdlog::logger("keel", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("[%Y-%m-%d %H:%M:%S.%e] [keel] [%l] %v");
  LogLevel level = LogLevel::kWarn;
  const char* text = std::getenv("KEEL_LOG");
  const bool known = text == nullptr || *text == '\0' || ParseLevel(Lower(Trim(text)), &level);
  logger->set_level(ToSpdlog(level));
  if (!known) {
    logger->warn("KEEL_LOG: {} is not a level (off, error, warn, info, debug); warn is used",
                 Quote(text));
  }
  return logger;
}

// Leaked, so that destructors of static objects can log.
spdlog::logger& Logger() {
  static spdlog::logger* const logger = CreateLogger();
  return *logger;
}

}  // namespace

void Log(LogLevel level, std::string_view message) {
  if (level == LogLevel::kOff) return;
  Logger().log(ToSpdlog(level), spdlog::string_view_t(message.data(), message.size()));
}

bool LogEnabled(LogLevel level) {
  return level != LogLevel::kOff && Logger().should_log(ToSpdlog(level));
}

void SetLogLevel(LogLevel level) { Logger().set_level(ToSpdlog(level)); }

}  // namespace keel
