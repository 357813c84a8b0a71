// PickleDocument: what a Python pickle contains, if it contains data only.
//
// A pickle is a program for a small machine, and can be made to run any code in the process that
// loads it. This reader knows the instructions that make plain values (None, booleans, integers,
// floats, strings, bytes, tuples, lists, dicts) in all protocols from 0 to 5, and refuses every
// other one by name. So a file from anywhere can be opened.
//
// It trusts nothing: lengths, counts, indices and depths are checked against what is there, memory
// is at most a small multiple of the file's size, and an error names the byte at which it was
// found.
//
// A document keeps the bytes it was read from; strings point into them. Values are shared as they
// were in Python, and a list may contain itself: whoever walks a document bounds the depth. Not
// changed after Parse: any thread may read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "keel/base/result.h"

namespace keel::trace {

class PickleDocument;

// One value of a document, which must outlive it. Cheap to copy.
class PickleValue {
 public:
  enum class Kind : std::uint8_t {
    kNone,
    kBool,
    kInt,
    kFloat,
    kString,
    kBytes,
    kList,
    kTuple,
    kDict
  };

  Kind kind() const;
  bool is_none() const { return kind() == Kind::kNone; }
  // Nothing if it is of another kind. An integer or a boolean is also a float, a boolean also an
  // integer, as in Python.
  std::optional<std::int64_t> AsInt() const;
  std::optional<double> AsFloat() const;
  std::optional<std::string_view> AsString() const;  // and bytes

  // Of a list or tuple: its items. Of a dict: its pairs, in order, as they were set.
  std::size_t size() const;
  // Item i of a list or tuple; i < size().
  PickleValue operator[](std::size_t i) const;
  // Pair i of a dict; i < size().
  PickleValue key(std::size_t i) const;
  PickleValue value(std::size_t i) const;
  // What a dict has under a string; the last one if it was set twice. Looks at every pair.
  std::optional<PickleValue> Find(std::string_view name) const;

 private:
  friend class PickleDocument;
  PickleValue(const PickleDocument* document, std::uint32_t index)
      : document_(document), index_(index) {}

  const PickleDocument* document_;
  std::uint32_t index_;
};

class PickleDocument {
 public:
  // kInvalidArgument: not a pickle, broken, or one that would run code.
  static Result<PickleDocument> Parse(std::string bytes);

  PickleDocument(PickleDocument&&) noexcept = default;
  PickleDocument& operator=(PickleDocument&&) noexcept = default;

  PickleValue root() const { return {this, root_}; }

 private:
  friend class PickleValue;
  friend class PickleMachine;
  PickleDocument() = default;

  struct Node {
    PickleValue::Kind kind = PickleValue::Kind::kNone;
    // Of a string: its length. Of a list, tuple or dict: its place in containers_.
    std::uint32_t extent = 0;
    union {
      std::int64_t integer = 0;
      double real;
      const char* text;
    };
  };

  std::string bytes_;
  std::vector<Node> nodes_;
  std::vector<std::vector<std::uint32_t>> containers_;  // dicts: key, value, key, value, ...
  std::uint32_t root_ = 0;
};

}  // namespace keel::trace
