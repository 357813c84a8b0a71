// ConfigString: `key:value,key:[a:b,c:d]`, the form in which every Keel configuration is written
// (KEEL_SIM, KEEL_ALLOC_CONF), and ConfigReader, which turns one into typed values with errors
// that name the variable, the key and what would have been right.
//
// Grammar: entries separated by commas, spaces around any token ignored, an empty string is no
// entries. A key is [A-Za-z0-9_.]+ . A value is text without `,[]`, or a list in brackets whose
// items are `text` or `text:text`. A key may stand once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "keel/base/bytes.h"
#include "keel/base/export.h"
#include "keel/base/result.h"

namespace keel {

class KEEL_EXPORT ConfigString {
 public:
  struct Item {
    std::string key;  // empty for a plain item
    std::string value;
  };
  struct Entry {
    std::string key;
    std::string value;        // of `key:value`
    std::vector<Item> items;  // of `key:[...]`
    bool is_list = false;
  };

  // `source` is what the text came from ("KEEL_SIM"); errors start with it.
  static Result<ConfigString> Parse(std::string_view source, std::string_view text);

  const std::string& source() const { return source_; }
  const std::vector<Entry>& entries() const { return entries_; }
  const Entry* Find(std::string_view key) const;

 private:
  std::string source_;
  std::vector<Entry> entries_;
};

// Reads typed values out of a ConfigString. A key that is absent leaves the target untouched. The
// first mistake is kept and everything after it is skipped; Finish() returns it, or an error for
// the first entry that nobody asked for, with the key that was probably meant and all known ones.
// So a reader is a list of Take calls and one Finish, and targets should only be used when Finish
// was OK.
class KEEL_EXPORT ConfigReader {
 public:
  explicit ConfigReader(const ConfigString& config) : config_(config) {}

  void Take(std::string_view key, Bytes* target);
  void Take(std::string_view key, bool* target);  // true/false, 1/0, on/off, yes/no; any case
  void Take(std::string_view key, std::int64_t* target, std::int64_t least, std::int64_t most);
  void Take(std::string_view key, std::uint64_t* target);
  void Take(std::string_view key, double* target, double least, double most);
  void Take(std::string_view key, std::string* target);
  void Take(std::string_view key, std::vector<ConfigString::Item>* target);  // the list form only

  // For a check across keys: keeps the error "source: key 'key': problem" unless one is kept.
  void Reject(std::string_view key, std::string_view problem);

  Status Finish() const;

 private:
  const ConfigString::Entry* TakeScalar(std::string_view key);

  const ConfigString& config_;
  std::vector<std::string> known_;
  Status first_error_;
};

}  // namespace keel
