#include "trace/value_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace keel::trace {
namespace {

constexpr std::size_t kBuffer = 1 << 20;
constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

// How many bytes the UTF-8 character at the start of `text` has; 0 if there is none.
std::size_t CharacterSize(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const std::size_t size = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (size == 0 || first > 0xf4 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  }
  const auto second = static_cast<unsigned char>(text[1]);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second > 0x9f;
  const bool too_large = first == 0xf4 && second > 0x8f;
  return overlong || surrogate || too_large ? 0 : size;
}

std::string ValidUtf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const std::size_t size = CharacterSize(text);
    valid += size == 0 ? kReplacement : text.substr(0, size);
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return valid;
}

}  // namespace

void ValueWriter::Append(std::string_view text) {
  if (failed()) return;
  buffer_ += text;
  if (buffer_.size() < kBuffer) return;
  status_ = flush_(buffer_);
  buffer_.clear();
}

Status ValueWriter::Finish() {
  if (!failed()) status_ = flush_(buffer_);
  return status_;
}

// --- JSON ----------------------------------------------------------------------------------------

// In a dict, the key has put the comma.
void JsonWriter::BeforeItem() {
  if (levels().empty() || !levels().back().is_list) return;
  if (levels().back().count++ > 0) Append(",");
}

void JsonWriter::BeginDict() {
  BeforeItem();
  Append("{");
  levels().push_back({});
}

void JsonWriter::EndDict() {
  levels().pop_back();
  Append("}");
}

void JsonWriter::BeginList() {
  BeforeItem();
  Append("[");
  levels().push_back({.is_list = true});
}

void JsonWriter::EndList() {
  levels().pop_back();
  Append("]");
}

void JsonWriter::Key(std::string_view name) {
  if (levels().back().count++ > 0) Append(",");
  AppendQuoted(name);
  Append(":");
}

void JsonWriter::Bool(bool value) {
  BeforeItem();
  Append(value ? "true" : "false");
}

void JsonWriter::Int(std::int64_t value) {
  BeforeItem();
  Append(fmt::format_int(value).c_str());
}

void JsonWriter::Unsigned(std::uint64_t value) {
  BeforeItem();
  Append(fmt::format_int(value).c_str());
}

void JsonWriter::Float(double value) {
  BeforeItem();
  if (!std::isfinite(value)) return Append("null");
  // The shortest text that is the same number, and is no integer.
  const std::string text = fmt::format("{}", value);
  Append(text);
  if (text.find_first_of(".e") == std::string::npos) Append(".0");
}

void JsonWriter::Text(std::string_view text) {
  BeforeItem();
  AppendQuoted(text);
}

void JsonWriter::Pair(std::uint64_t first, std::uint64_t second) {
  BeginList();
  Unsigned(first);
  Unsigned(second);
  EndList();
}

void JsonWriter::AppendQuoted(std::string_view text) {
  Append("\"");
  while (!text.empty()) {
    // Most text is plain, and goes at once.
    std::size_t plain = 0;
    while (plain < text.size() && text[plain] >= ' ' && text[plain] != '"' && text[plain] != '\\') {
      ++plain;
    }
    Append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    const char c = text[0];
    const std::size_t size = CharacterSize(text);
    if (size == 0) {
      Append(kReplacement);
    } else if (size > 1) {
      Append(text.substr(0, size));
    } else if (c == '"' || c == '\\') {
      Append(c == '"' ? "\\\"" : "\\\\");
    } else {
      Append(fmt::format("\\u{:04x}", static_cast<unsigned>(c)));
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  Append("\"");
}

// --- Pickle --------------------------------------------------------------------------------------

namespace {

// As Python does it: whoever takes a list from the stack in one step needs no more room than that.
constexpr std::size_t kBatch = 1000;

}  // namespace

PickleWriter::PickleWriter(Flush flush) : ValueWriter(std::move(flush)) { Append("\x80\x04"); }

void PickleWriter::BeforeItem() {
  if (levels().empty() || !levels().back().is_list) return;
  const std::size_t count = levels().back().count++;
  if (count == 0) {
    Append("(");
  } else if (count % kBatch == 0) {
    Append("e(");
  }
}

void PickleWriter::BeginDict() {
  BeforeItem();
  Append("}");
  levels().push_back({});
}

void PickleWriter::EndDict() {
  if (levels().back().count > 0) Append("u");
  levels().pop_back();
}

void PickleWriter::BeginList() {
  BeforeItem();
  Append("]");
  levels().push_back({.is_list = true});
}

void PickleWriter::EndList() {
  if (levels().back().count > 0) Append("e");
  levels().pop_back();
}

void PickleWriter::Key(std::string_view name) {
  if (levels().back().count++ == 0) Append("(");
  AppendText(name);
}

void PickleWriter::Bool(bool value) {
  BeforeItem();
  Append(value ? "\x88" : "\x89");
}

void PickleWriter::Int(std::int64_t value) {
  if (value >= 0) return Unsigned(static_cast<std::uint64_t>(value));
  BeforeItem();
  const auto bits = static_cast<std::uint64_t>(value);
  if (value >= INT32_MIN) return AppendNumber('J', bits, 4);
  Append("\x8a");
  AppendNumber('\x08', bits, 8);
}

void PickleWriter::Unsigned(std::uint64_t value) {
  BeforeItem();
  AppendUnsigned(value);
}

void PickleWriter::Float(double value) {
  BeforeItem();
  AppendNumber('G', __builtin_bswap64(std::bit_cast<std::uint64_t>(value)), 8);
}

void PickleWriter::Text(std::string_view text) {
  BeforeItem();
  AppendText(text);
}

void PickleWriter::Pair(std::uint64_t first, std::uint64_t second) {
  BeforeItem();
  AppendUnsigned(first);
  AppendUnsigned(second);
  Append("\x86");
}

bool PickleWriter::Again(std::uint64_t number) {
  const auto known = shared_.find(number);
  if (known == shared_.end()) return false;
  BeforeItem();
  Recall(known->second);
  return true;
}

void PickleWriter::Share(std::uint64_t number) { shared_[number] = Memoize(); }

Status PickleWriter::Finish() {
  Append(".");
  return ValueWriter::Finish();
}

// The instruction, then `width` bytes, little-endian.
void PickleWriter::AppendNumber(char instruction, std::uint64_t number, std::size_t width) {
  char bytes[9] = {instruction};
  for (std::size_t i = 0; i < width; ++i) bytes[1 + i] = static_cast<char>(number >> (8 * i));
  Append({bytes, 1 + width});
}

void PickleWriter::AppendUnsigned(std::uint64_t value) {
  if (value <= 0xff) return AppendNumber('K', value, 1);
  if (value <= 0xffff) return AppendNumber('M', value, 2);
  if (value <= INT32_MAX) return AppendNumber('J', value, 4);
  // Two's complement: a leading bit that is set needs a byte of zeros before it.
  const auto width = static_cast<std::size_t>(std::bit_width(value)) / 8 + 1;
  Append("\x8a");
  AppendNumber(static_cast<char>(width), value, std::min<std::size_t>(width, 8));
  if (width > 8) Append({"\0", 1});
}

void PickleWriter::AppendText(std::string_view text) {
  std::string valid = ValidUtf8(text);
  const auto known = strings_.find(valid);
  if (known != strings_.end()) return Recall(known->second);
  if (valid.size() <= 0xff) {
    AppendNumber('\x8c', valid.size(), 1);
  } else {
    valid.resize(std::min<std::size_t>(valid.size(), UINT32_MAX));
    AppendNumber('X', valid.size(), 4);
  }
  Append(valid);
  strings_.emplace(std::move(valid), Memoize());
}

void PickleWriter::Recall(std::uint32_t entry) {
  entry <= 0xff ? AppendNumber('h', entry, 1) : AppendNumber('j', entry, 4);
}

std::uint32_t PickleWriter::Memoize() {
  Append("\x94");
  return memo_size_++;
}

}  // namespace keel::trace
