#include "keel/base/config_string.h"

#include <charconv>
#include <cmath>
#include <system_error>

#include "base/near_miss.h"
#include "base/quote.h"

namespace keel {
namespace {

bool IsKey(std::string_view text) {
  if (text.empty()) return false;
  for (const char c : text) {
    const bool known = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '.';
    if (!known) return false;
  }
  return true;
}

// Walks over the text once; every step either advances or returns an error.
class Parser {
 public:
  Parser(std::string_view source, std::string_view text) : source_(source), rest_(text) {}

  Result<std::vector<ConfigString::Entry>> Run() {
    std::vector<ConfigString::Entry> entries;
    if (Trim(rest_).empty()) return entries;
    do {
      KEEL_ASSIGN(ConfigString::Entry entry, ParseEntry());
      for (const ConfigString::Entry& earlier : entries) {
        if (earlier.key == entry.key) return Error("key " + Quote(entry.key) + " stands twice");
      }
      entries.push_back(std::move(entry));
    } while (TakeIf(','));
    return entries;
  }

 private:
  Result<ConfigString::Entry> ParseEntry() {
    const std::string_view key = Trim(TakeUntil(":,[]"));
    if (!TakeIf(':')) {
      if (key.empty()) return Error("an entry is empty; expected key:value");
      return Error(Quote(key) + " is not of the form key:value");
    }
    if (!IsKey(key)) {
      return Error(Quote(key) + " is not a key; keys have letters, digits, '_' and '.'");
    }
    ConfigString::Entry entry;
    entry.key = key;
    rest_ = Trim(rest_);
    if (TakeIf('[')) {
      KEEL_ASSIGN(entry.items, ParseItems(key));
      entry.is_list = true;
      rest_ = Trim(rest_);
      if (!rest_.empty() && rest_.front() != ',') {
        return Error("key " + Quote(key) + ": " + Quote(rest_) + " after the list; expected ','");
      }
      return entry;
    }
    entry.value = Trim(TakeUntil(",[]"));
    if (!rest_.empty() && rest_.front() != ',') {
      return Error("key " + Quote(key) + ": '" + rest_.front() + "' inside a value");
    }
    if (entry.value.empty()) return Error("key " + Quote(key) + " has no value");
    return entry;
  }

  Result<std::vector<ConfigString::Item>> ParseItems(std::string_view key) {
    std::vector<ConfigString::Item> items;
    rest_ = Trim(rest_);
    if (TakeIf(']')) return items;
    do {
      const std::string_view text = Trim(TakeUntil(",[]"));
      const std::size_t colon = text.find(':');
      ConfigString::Item item;
      if (colon == std::string_view::npos) {
        item.value = text;
      } else {
        item.key = Trim(text.substr(0, colon));
        item.value = Trim(text.substr(colon + 1));
      }
      const bool has_key = colon != std::string_view::npos;
      if (item.value.empty() || (has_key && item.key.empty()) ||
          item.value.find(':') != std::string::npos) {
        return Error("key " + Quote(key) + ": the item " + Quote(text) +
                     " is neither text nor text:text");
      }
      items.push_back(std::move(item));
    } while (TakeIf(','));
    if (!TakeIf(']')) return Error("key " + Quote(key) + ": the list is not closed by ']'");
    return items;
  }

  std::string_view TakeUntil(std::string_view stops) {
    const std::string_view taken = rest_.substr(0, rest_.find_first_of(stops));
    rest_.remove_prefix(taken.size());
    return taken;
  }
  bool TakeIf(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  Status Error(std::string_view problem) const {
    return InvalidArgument(std::string(source_) + ": " + std::string(problem));
  }

  std::string_view source_;
  std::string_view rest_;
};

// True when all of `text` is one number.
template <class T>
bool ParseNumber(std::string_view text, T* value) {
  // from_chars takes no plus sign.
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

std::string Number(double value) {
  char text[32] = {};
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  return {text, end};
}

}  // namespace

Result<ConfigString> ConfigString::Parse(std::string_view source, std::string_view text) {
  ConfigString config;
  config.source_ = source;
  KEEL_ASSIGN(config.entries_, Parser(source, text).Run());
  return config;
}

const ConfigString::Entry* ConfigString::Find(std::string_view key) const {
  for (const Entry& entry : entries_) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

const ConfigString::Entry* ConfigReader::TakeScalar(std::string_view key) {
  known_.emplace_back(key);
  if (!first_error_.ok()) return nullptr;
  const ConfigString::Entry* entry = config_.Find(key);
  if (entry != nullptr && entry->is_list) {
    Reject(key, "a single value is expected, not a list");
    return nullptr;
  }
  return entry;
}

void ConfigReader::Take(std::string_view key, Bytes* target) {
  const ConfigString::Entry* entry = TakeScalar(key);
  if (entry == nullptr) return;
  const Result<Bytes> bytes = ParseBytes(entry->value);
  if (!bytes.ok()) return Reject(key, bytes.status().message());
  *target = *bytes;
}

void ConfigReader::Take(std::string_view key, bool* target) {
  const ConfigString::Entry* entry = TakeScalar(key);
  if (entry == nullptr) return;
  const std::string value = Lower(entry->value);
  if (value == "true" || value == "1" || value == "on" || value == "yes") {
    *target = true;
  } else if (value == "false" || value == "0" || value == "off" || value == "no") {
    *target = false;
  } else {
    Reject(key, Quote(entry->value) + " is neither true/1/on/yes nor false/0/off/no");
  }
}

void ConfigReader::Take(std::string_view key, std::int64_t* target, std::int64_t least,
                        std::int64_t most) {
  const ConfigString::Entry* entry = TakeScalar(key);
  if (entry == nullptr) return;
  std::int64_t value = 0;
  if (!ParseNumber(entry->value, &value) || value < least || value > most) {
    return Reject(key, Quote(entry->value) + " is not a whole number from " +
                           std::to_string(least) + " to " + std::to_string(most));
  }
  *target = value;
}

void ConfigReader::Take(std::string_view key, std::uint64_t* target) {
  const ConfigString::Entry* entry = TakeScalar(key);
  if (entry == nullptr) return;
  std::uint64_t value = 0;
  if (!ParseNumber(entry->value, &value)) {
    return Reject(key, Quote(entry->value) + " is not a whole number from 0 to 2^64-1");
  }
  *target = value;
}

void ConfigReader::Take(std::string_view key, double* target, double least, double most) {
  const ConfigString::Entry* entry = TakeScalar(key);
  if (entry == nullptr) return;
  double value = 0;
  if (!ParseNumber(entry->value, &value) || !std::isfinite(value) || value < least ||
      value > most) {
    return Reject(key, Quote(entry->value) + " is not a number from " + Number(least) + " to " +
                           Number(most));
  }
  *target = value;
}

void ConfigReader::Take(std::string_view key, std::string* target) {
  const ConfigString::Entry* entry = TakeScalar(key);
  if (entry != nullptr) *target = entry->value;
}

void ConfigReader::Take(std::string_view key, std::vector<ConfigString::Item>* target) {
  known_.emplace_back(key);
  if (!first_error_.ok()) return;
  const ConfigString::Entry* entry = config_.Find(key);
  if (entry == nullptr) return;
  if (!entry->is_list) {
    return Reject(key, Quote(entry->value) + " is not a list in brackets");
  }
  *target = entry->items;
}

void ConfigReader::Reject(std::string_view key, std::string_view problem) {
  if (!first_error_.ok()) return;
  first_error_ =
      InvalidArgument(config_.source() + ": key " + Quote(key) + ": " + std::string(problem));
}

Status ConfigReader::Finish() const {
  if (!first_error_.ok()) return first_error_;
  for (const ConfigString::Entry& entry : config_.entries()) {
    bool known = false;
    for (const std::string& key : known_) known = known || key == entry.key;
    if (known) continue;
    std::string keys;
    for (const std::string& key : known_) keys += (keys.empty() ? "" : ", ") + key;
    const std::string_view meant = NearMiss(entry.key, known_);
    return InvalidArgument(config_.source() + ": unknown key " + Quote(entry.key) +
                           (meant.empty() ? "" : " (did you mean " + Quote(meant) + "?)") +
                           "; known keys: " + (keys.empty() ? "none" : keys));
  }
  return OkStatus();
}

}  // namespace keel
