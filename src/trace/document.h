// Document: plain values as a file contains them (nothing, booleans, numbers, strings, lists,
// dicts), whatever the file's format. What the parsers of pickle.h and json.h make and the readers
// of a schema walk.
//
// Compact, because a history has tens of millions of values: 16 bytes for a value, 24 more for a
// list or dict, 4 for each item in one. Not changed once it is built: any thread may read.
//
// Values are shared as they were in the file (a pickle says so), and a list may contain itself:
// whoever walks a document bounds the depth, and what it makes of one value that it meets a million
// times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "keel/base/bytes.h"

namespace keel::trace {

class Document;

// One value of a document, which must outlive it. Cheap to copy.
class Value {
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
    kDict,
    kUnsigned,  // an integer from 2^63 on
  };

  Kind kind() const;
  bool is_none() const { return kind() == Kind::kNone; }
  bool is_sequence() const { return kind() == Kind::kList || kind() == Kind::kTuple; }
  // Nothing if it is of another kind or does not fit. An integer or a boolean is also a float, a
  // boolean also an integer, as in Python.
  std::optional<std::int64_t> AsInt() const;
  std::optional<std::uint64_t> AsUnsigned() const;
  std::optional<double> AsFloat() const;
  std::optional<std::string_view> AsString() const;  // and bytes

  // Of a list or tuple: its items. Of a dict: its pairs, in order, as they were set.
  std::size_t size() const;
  // Item i of a list or tuple; i < size().
  Value operator[](std::size_t i) const;
  // Pair i of a dict; i < size().
  Value key(std::size_t i) const;
  Value value(std::size_t i) const;
  // What a dict has under a string; the last one if it was set twice. Looks at every pair.
  std::optional<Value> Find(std::string_view name) const;

  // Of a list, tuple or dict: the byte of the file at which it starts.
  std::uint64_t offset() const;
  // The same for the same value, wherever it is met; below Document::size().
  std::uint32_t id() const { return index_; }

 private:
  friend class Document;
  Value(const Document* document, std::uint32_t index) : document_(document), index_(index) {}

  std::span<const std::uint32_t> items() const;

  const Document* document_;
  std::uint32_t index_;
};

class Document {
 public:
  Value root() const { return {this, root_}; }
  // How many values there are.
  std::size_t size() const { return nodes_.size(); }

 private:
  friend class Value;
  friend class DocumentBuilder;

  struct Node {
    Value::Kind kind = Value::Kind::kNone;
    // Of a string: its length. Of a list, tuple or dict: its place in containers_.
    std::uint32_t extent = 0;
    union {
      std::int64_t integer = 0;
      double real;
      std::uint64_t text;  // where it starts in text_
    };
  };
  struct Container {
    std::uint64_t begin = 0;  // in items_; dicts: key, value, key, value, ...
    std::uint32_t size = 0;
    std::uint32_t capacity = 0;
    std::uint64_t offset = 0;
  };

  std::string text_;
  std::vector<Node> nodes_;
  std::vector<Container> containers_;
  std::vector<std::uint32_t> items_;
  std::uint32_t root_ = 0;
};

// Makes a document. Counts what its values take: a parser asks `Exceeds` after every step, because
// a byte of a hostile file can make a value of 40.
class DocumentBuilder {
 public:
  using Id = std::uint32_t;

  // `text` is what strings may refer to; it becomes part of the document and of what is counted
  // only as far as AddCopy adds to it.
  explicit DocumentBuilder(std::string text) { document_.text_ = std::move(text); }

  std::string_view text() const { return document_.text_; }
  Value::Kind kind(Id id) const { return document_.nodes_[id].kind; }

  Id AddNone() { return Add({}); }
  Id AddBool(bool boolean);
  Id AddInt(std::int64_t integer);
  Id AddUnsigned(std::uint64_t integer);
  Id AddFloat(double real);
  // `size` bytes of text() from `begin` on.
  Id AddString(Value::Kind kind, std::uint64_t begin, std::uint32_t size);
  // `string` is added to the text.
  Id AddCopy(std::string_view string);
  // A list, tuple or dict; `offset` is where it starts in the file.
  Id AddContainer(Value::Kind kind, std::span<const Id> items, std::uint64_t offset);
  // Adds to the end of a list or dict.
  void Extend(Id container, std::span<const Id> items);

  std::string_view string(Id id) const;

  // Whether all that was added, and `more` bytes, take more than `limit`, or more than can be
  // counted.
  bool Exceeds(Bytes limit, std::uint64_t more = 0) const;

  Document Finish(Id root) &&;

 private:
  Id Add(const Document::Node& node);

  Document document_;
  std::uint64_t copied_ = 0;
  bool overflow_ = false;
};

}  // namespace keel::trace
