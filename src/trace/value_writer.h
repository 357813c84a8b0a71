// ValueWriter: plain values as text of one format, in the order in which they are given. One
// description of what a file contains thereby serves every format.
//
// Pieces of the text go to `flush` as they fill up, so a file of any size takes little memory. An
// error of `flush` ends the writing: what follows is dropped, and Finish returns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "keel/base/status.h"

namespace keel::trace {

class ValueWriter {
 public:
  using Flush = std::function<Status(std::string_view)>;

  explicit ValueWriter(Flush flush) : flush_(std::move(flush)) {}
  virtual ~ValueWriter() = default;
  ValueWriter(const ValueWriter&) = delete;
  ValueWriter& operator=(const ValueWriter&) = delete;

  // In a dict, Key comes before every value.
  virtual void BeginDict() = 0;
  virtual void EndDict() = 0;
  virtual void BeginList() = 0;
  virtual void EndList() = 0;
  virtual void Key(std::string_view name) = 0;
  virtual void Bool(bool value) = 0;
  virtual void Int(std::int64_t value) = 0;
  virtual void Unsigned(std::uint64_t value) = 0;
  virtual void Float(double value) = 0;
  // Bytes that are not UTF-8 become U+FFFD.
  virtual void Text(std::string_view text) = 0;
  virtual void Pair(std::uint64_t first, std::uint64_t second) = 0;

  // Where a format can say "that value again": true, and it has been said, if Share(number) was
  // called before; else the value is to be written, and Share(number) called right after it.
  virtual bool Again(std::uint64_t /*number*/) { return false; }
  virtual void Share(std::uint64_t /*number*/) {}

  bool failed() const { return !status_.ok(); }
  // After the one value that a file contains.
  virtual Status Finish();

 protected:
  // A list or dict that is not closed yet.
  struct Level {
    bool is_list = false;
    std::size_t count = 0;  // of items or pairs so far
  };

  void Append(std::string_view text);
  std::vector<Level>& levels() { return levels_; }

 private:
  Flush flush_;
  std::string buffer_;
  std::vector<Level> levels_;
  Status status_;
};

// Without line breaks and blanks. Infinite and undefined numbers, which JSON has not, become null.
class JsonWriter final : public ValueWriter {
 public:
  using ValueWriter::ValueWriter;

  void BeginDict() override;
  void EndDict() override;
  void BeginList() override;
  void EndList() override;
  void Key(std::string_view name) override;
  void Bool(bool value) override;
  void Int(std::int64_t value) override;
  void Unsigned(std::uint64_t value) override;
  void Float(double value) override;
  void Text(std::string_view text) override;
  void Pair(std::uint64_t first, std::uint64_t second) override;

 private:
  void BeforeItem();
  void AppendQuoted(std::string_view text);
};

// Protocol 4, with no instruction that PyTorch's viewer does not know: it knows few. Strings, and
// what is shared, are written once.
class PickleWriter final : public ValueWriter {
 public:
  explicit PickleWriter(Flush flush);

  void BeginDict() override;
  void EndDict() override;
  void BeginList() override;
  void EndList() override;
  void Key(std::string_view name) override;
  void Bool(bool value) override;
  void Int(std::int64_t value) override;
  void Unsigned(std::uint64_t value) override;
  void Float(double value) override;
  void Text(std::string_view text) override;
  void Pair(std::uint64_t first, std::uint64_t second) override;
  bool Again(std::uint64_t number) override;
  void Share(std::uint64_t number) override;
  Status Finish() override;

 private:
  void BeforeItem();
  void AppendNumber(char instruction, std::uint64_t number, std::size_t width);
  void AppendUnsigned(std::uint64_t value);
  void AppendText(std::string_view text);
  void Recall(std::uint32_t entry);
  std::uint32_t Memoize();

  std::unordered_map<std::string, std::uint32_t> strings_;  // their entries in the memo
  std::unordered_map<std::uint64_t, std::uint32_t> shared_;
  std::uint32_t memo_size_ = 0;
};

}  // namespace keel::trace
