#include "trace/rmm_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/quote.h"
#include "trace/budget.h"

namespace keel::trace {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kDay = 24 * 3600 * kSecond;
constexpr std::int64_t kMostDays = 36'500 * kDay;  // so that the sum fits, whatever a log says

enum Column : std::size_t { kThread, kTime, kAction, kPointer, kSize, kStream, kColumns };
constexpr std::array<std::string_view, kColumns> kNames = {"Thread",  "Time", "Action",
                                                           "Pointer", "Size", "Stream"};

// A line of more fields than this is no log.
constexpr std::size_t kMaxFields = 32;

// Where each column is among a line's fields.
using Layout = std::array<std::optional<std::size_t>, kColumns>;
constexpr Layout kUsual = {0, 1, 2, 3, 4, 5};

void Split(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  while (fields.size() <= kMaxFields) {
    const std::size_t comma = line.find(',');
    std::string_view field = Trim(line.substr(0, comma));
    if (field.size() >= 2 && field.front() == '"' && field.back() == '"') {
      field = Trim(field.substr(1, field.size() - 2));
    }
    fields.push_back(field);
    if (comma == std::string_view::npos) break;
    line.remove_prefix(comma + 1);
  }
}

std::optional<Layout> ParseHeader(const std::vector<std::string_view>& fields) {
  Layout layout;
  for (std::size_t column = 0; column < kColumns; ++column) {
    const auto found = std::ranges::find(fields, kNames[column]);
    if (found != fields.end()) layout[column] = static_cast<std::size_t>(found - fields.begin());
  }
  if (!layout[kAction] || !layout[kPointer] || !layout[kSize]) return std::nullopt;
  return layout;
}

enum class RowAction : std::uint8_t { kAllocate, kFree, kFailure };

std::optional<RowAction> ParseAction(std::string_view text) {
  if (text == "allocate") return RowAction::kAllocate;
  if (text == "free" || text == "deallocate") return RowAction::kFree;
  if (text == "allocate failure") return RowAction::kFailure;
  return std::nullopt;
}

template <class Number>
bool ParseWhole(std::string_view text, Number& number, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size();
}

// "0x7f00", "7f00", "(nil)".
bool ParsePointer(std::string_view text, std::uint64_t& pointer) {
  if (text == "(nil)") {
    pointer = 0;
    return true;
  }
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  return ParseWhole(text, pointer, 16);
}

// A pointer, or a number: versions differ. It only has to be the same for the same stream.
bool ParseStream(std::string_view text, std::uint64_t& stream) {
  return ParseWhole(text, stream) || ParsePointer(text, stream);
}

// Digits that are a part of a second: "5" is half of one.
bool ParseFraction(std::string_view text, std::int64_t& microseconds) {
  microseconds = 0;
  if (text.empty() || !std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; })) {
    return false;
  }
  std::int64_t unit = kSecond;
  for (const char digit : text.substr(0, 6)) microseconds += (unit /= 10) * (digit - '0');
  return true;
}

// HH:MM:SS, HH:MM:SS.fraction, HH:MM:SS:fraction, or seconds.fraction since some moment.
bool ParseTime(std::string_view text, std::int64_t& time_us, bool& of_day) {
  std::array<std::string_view, 3> parts;
  std::size_t count = 0;
  of_day = text.find(':') != std::string_view::npos;
  for (const std::size_t wanted = of_day ? 3 : 1; count < wanted; ++count) {
    const std::size_t end = text.find_first_of(":.");
    parts[count] = text.substr(0, end);
    text.remove_prefix(std::min(end, text.size()));
    if (count + 1 < wanted && !text.starts_with(':')) return false;
    if (count + 1 < wanted) text.remove_prefix(1);
  }
  std::int64_t fraction = 0;
  if (!text.empty() && !ParseFraction(text.substr(1), fraction)) return false;
  std::int64_t seconds = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t part = 0;
    if (of_day && (!ParseWhole(parts[i], part) || part > 99)) return false;
    seconds = 60 * seconds + part;
  }
  if (!of_day) {
    std::uint64_t whole = 0;
    constexpr auto kMost = std::uint64_t{std::numeric_limits<std::int64_t>::max() / kSecond - 1};
    if (!ParseWhole(parts[0], whole) || whole > kMost) return false;
    seconds = static_cast<std::int64_t>(whole);
  }
  time_us = seconds * kSecond + fraction;
  return true;
}

// The lines of a log, and where the current one is.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {
    if (text_.starts_with(kByteOrderMark)) next_ = kByteOrderMark.size();
  }

  // The next line that is not empty; false at the end.
  bool Next(std::string_view& line) {
    while (next_ < text_.size()) {
      start_ = next_;
      const std::size_t end = std::min(text_.find('\n', start_), text_.size());
      next_ = end + 1;
      ++number_;
      line = text_.substr(start_, end - start_);
      if (!Trim(line).empty()) return true;
    }
    return false;
  }

  std::string Where() const { return fmt::format("RMM log, line {}, byte {}", number_, start_); }

 private:
  std::string_view text_;
  std::size_t next_ = 0;
  std::size_t start_ = 0;
  std::size_t number_ = 0;
};

class Reader {
 public:
  Reader(std::string_view text, Bytes limit) : lines_(text), budget_(limit) {}

  Result<Snapshot> Read() {
    snapshot_.devices.resize(1);
    std::string_view line;
    std::vector<std::string_view> fields;
    while (lines_.Next(line)) {
      Split(line, fields);
      // Also in the middle: whoever starts again appends to the log.
      if (const std::optional<Layout> header = ParseHeader(fields)) {
        layout_ = *header;
        continue;
      }
      KEEL_TRY(ReadRow(fields));
    }
    return std::move(snapshot_);
  }

 private:
  Status Wrong(std::string_view what) const {
    return InvalidArgument(fmt::format("{}: {}", lines_.Where(), what));
  }

  // Empty if the log has no such column.
  Result<std::string_view> Field(const std::vector<std::string_view>& fields, Column column) {
    if (!layout_[column]) return std::string_view();
    if (*layout_[column] < fields.size()) return fields[*layout_[column]];
    return Wrong(fmt::format("{} fields, and '{}' is number {}: the line is cut or is no event",
                             fields.size(), kNames[column], *layout_[column] + 1));
  }

  Status ReadRow(const std::vector<std::string_view>& fields) {
    KEEL_ASSIGN(const std::string_view stream, Field(fields, kStream));
    KEEL_ASSIGN(const std::string_view time, Field(fields, kTime));
    KEEL_ASSIGN(const std::string_view action_name, Field(fields, kAction));
    KEEL_ASSIGN(const std::string_view pointer, Field(fields, kPointer));
    KEEL_ASSIGN(const std::string_view size, Field(fields, kSize));
    const std::optional<RowAction> action = ParseAction(action_name);
    if (!action) return Wrong("the action is not known: " + Quote(action_name));
    Event event;
    if (!ParsePointer(pointer, event.address)) {
      return Wrong("the pointer is no address: " + Quote(pointer));
    }
    if (!ParseWhole(size, event.size)) return Wrong("the size is no number: " + Quote(size));
    if (!stream.empty() && !ParseStream(stream, event.stream)) {
      return Wrong("the stream is no number: " + Quote(stream));
    }
    if (!time.empty()) KEEL_TRY(ReadTime(time, event.time_us));
    switch (*action) {
      case RowAction::kAllocate:
        return Add(event, Action::kAlloc);
      case RowAction::kFree:
        KEEL_TRY(Add(event, Action::kFreeRequested));
        return Add(event, Action::kFreeCompleted);
      case RowAction::kFailure:
        event.address = 0;  // how much the device had free, it does not say
        return Add(event, Action::kOutOfMemory);
    }
    return OkStatus();
  }

  Status ReadTime(std::string_view text, std::int64_t& time_us) {
    bool of_day = false;
    if (!ParseTime(text, time_us, of_day)) return Wrong("the time is not known: " + Quote(text));
    if (!of_day) return OkStatus();
    // Threads write a little out of order; half a day back is the next day.
    if (time_us + days_ < last_time_ - kDay / 2 && days_ < kMostDays) days_ += kDay;
    time_us += days_;
    last_time_ = time_us;
    return OkStatus();
  }

  Status Add(Event event, Action action) {
    // An allocation of nothing has no address, and there are many at once.
    if (event.address == 0 && event.size == 0) return OkStatus();
    event.action = action;
    if (!budget_.Take(sizeof(Event))) {
      return OutOfRange(
          fmt::format("{}: the events take more than {}; allow more if you trust the file",
                      lines_.Where(), ToString(budget_.limit())));
    }
    snapshot_.devices[0].push_back(event);
    return OkStatus();
  }

  Lines lines_;
  Budget budget_;
  Layout layout_ = kUsual;
  Snapshot snapshot_;
  std::int64_t days_ = 0;
  std::int64_t last_time_ = 0;
};

}  // namespace

bool LooksLikeRmmLog(std::string_view text) {
  Lines lines(text.substr(0, 1024));
  std::string_view line;
  if (!lines.Next(line)) return false;
  std::vector<std::string_view> fields;
  Split(line, fields);
  if (ParseHeader(fields)) return true;
  return fields.size() == kColumns && ParseAction(fields[kAction]);
}

Result<Snapshot> ReadRmmLog(std::string_view text, Bytes limit) {
  return Reader(text, limit).Read();
}

}  // namespace keel::trace
