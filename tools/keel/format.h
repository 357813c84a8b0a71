// Numbers and durations as people read and write them, and a Status as programs do.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "keel/base/result.h"
#include "keel/base/status.h"

namespace keel::cli {

using Seconds = std::chrono::duration<double>;

// Three digits and a unit: "850 ns", "12.3 us", "1.25 ms", "2.50 s".
std::string FormatDuration(Seconds duration);
// "5ms", "500us", "1.5s", and "0", the only one without a unit; up to an hour. kInvalidArgument
// says what is wrong with the text.
Result<std::chrono::microseconds> ParseDuration(std::string_view text);
// What is wrong with a size that was given, for the parser; empty if nothing is.
std::string SizeMistake(const std::string& text);
// "1,048,576".
std::string FormatCount(std::uint64_t count);

// {"code": "NOT_FOUND", "message": ..., "vendor_code": 0, "vendor_name": ""}; null when OK.
nlohmann::ordered_json ErrorJson(const Status& status);

}  // namespace keel::cli
