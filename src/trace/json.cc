#include "trace/json.h"

#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/quote.h"

namespace keel::trace {
namespace {

using Id = DocumentBuilder::Id;

constexpr std::size_t kMaxDepth = 64;

// The characters of a text, and how far they have been read: the parser does not say where the
// value starts that it reports.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** furthest) : at_(at), furthest_(furthest) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ == b.at_;
  }
  friend bool operator!=(const CountingIterator& a, const CountingIterator& b) { return !(a == b); }

 private:
  const char* at_;
  const char** furthest_;
};

// Receives the parser's events. The first one that it does not want ends the parsing.
class Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  Handler(std::string_view text, Bytes limit)
      : builder_(""), limit_(limit), text_(text), furthest_(text.data()) {}

  Result<Document> Parse() {
    const CountingIterator first(std::to_address(text_.begin()), &furthest_);
    const CountingIterator last(std::to_address(text_.end()), &furthest_);
    if (!nlohmann::json::sax_parse(first, last, this)) {
      // The parser can end without an event, too: what it refused has been said then.
      return status_.ok() ? Broken("this is not JSON") : status_;
    }
    return std::move(builder_).Finish(values_.back());
  }

  bool null() override { return Push(builder_.AddNone()); }
  bool boolean(bool value) override { return Push(builder_.AddBool(value)); }
  bool number_integer(std::int64_t value) override { return Push(builder_.AddInt(value)); }
  bool number_unsigned(std::uint64_t value) override { return Push(builder_.AddUnsigned(value)); }
  bool number_float(double value, const std::string&) override {
    return Push(builder_.AddFloat(value));
  }
  bool string(std::string& value) override { return Push(Intern(value)); }
  bool binary(nlohmann::json::binary_t&) override { return false; }  // not in text

  bool start_object(std::size_t) override { return Open(); }
  bool start_array(std::size_t) override { return Open(); }
  bool key(std::string& value) override { return Push(Intern(value)); }
  bool end_object() override { return Close(Value::Kind::kDict); }
  bool end_array() override { return Close(Value::Kind::kList); }

  bool parse_error(std::size_t, const std::string& token,
                   const nlohmann::json::exception&) override {
    status_ = Broken(furthest_ == text_.data() + text_.size()
                         ? "the text ends too early, or its last value is broken"
                         : "this is not JSON: " + Quote(token));
    return false;
  }

 private:
  struct OpenContainer {
    std::size_t first = 0;  // its first item in values_
    std::uint64_t offset = 0;
  };

  // Strings by what they are; kept as their values' ids, because the text behind them moves.
  struct Hash {
    using is_transparent = void;
    const DocumentBuilder* builder;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
    std::size_t operator()(Id id) const { return (*this)(builder->string(id)); }
  };
  struct Equal {
    using is_transparent = void;
    const DocumentBuilder* builder;
    bool operator()(Id a, Id b) const { return a == b; }
    bool operator()(std::string_view text, Id id) const { return builder->string(id) == text; }
    bool operator()(Id id, std::string_view text) const { return builder->string(id) == text; }
  };

  // Near enough: the parser has read the value, and one character more to see its end.
  std::uint64_t Here() const { return static_cast<std::uint64_t>(furthest_ - text_.data()); }

  Status Broken(std::string_view what) const {
    return InvalidArgument(fmt::format("JSON, near byte {}: {}", Here(), what));
  }

  Id Intern(const std::string& value) {
    const auto known = strings_.find(std::string_view(value));
    if (known != strings_.end()) return *known;
    const Id id = builder_.AddCopy(value);
    strings_.insert(id);
    return id;
  }

  bool Push(Id id) {
    values_.push_back(id);
    // A string costs about 40 bytes more to be found again.
    const std::uint64_t aside = values_.size() * sizeof(Id) + strings_.size() * 40;
    if (!builder_.Exceeds(limit_, aside)) return true;
    status_ = OutOfRange(fmt::format(
        "JSON, near byte {}: the values take more than {}; allow more if you trust the file",
        Here(), ToString(limit_)));
    return false;
  }

  bool Open() {
    if (open_.size() >= kMaxDepth) {
      status_ = Broken(fmt::format("the values are nested deeper than {}", kMaxDepth));
      return false;
    }
    open_.push_back({.first = values_.size(), .offset = Here() - 1});
    return true;
  }

  bool Close(Value::Kind kind) {
    const OpenContainer closed = open_.back();
    open_.pop_back();
    const Id id = builder_.AddContainer(kind, std::span<const Id>(values_).subspan(closed.first),
                                        closed.offset);
    values_.resize(closed.first);
    return Push(id);
  }

  DocumentBuilder builder_;
  const Bytes limit_;
  const std::string_view text_;
  const char* furthest_;
  std::vector<Id> values_;  // of the containers that are open, and the root
  std::vector<OpenContainer> open_;
  std::unordered_set<Id, Hash, Equal> strings_{0, Hash{&builder_}, Equal{&builder_}};
  Status status_;
};

}  // namespace

Result<Document> ParseJson(std::string_view text, Bytes limit) {
  return Handler(text, limit).Parse();
}

}  // namespace keel::trace
