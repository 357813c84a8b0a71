#include "trace/document.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace keel::trace {

using Kind = Value::Kind;

// --- Values --------------------------------------------------------------------------------------

Kind Value::kind() const { return document_->nodes_[index_].kind; }

std::optional<std::int64_t> Value::AsInt() const {
  const Document::Node& node = document_->nodes_[index_];
  if (node.kind != Kind::kInt && node.kind != Kind::kBool) return std::nullopt;
  return node.integer;
}

std::optional<std::uint64_t> Value::AsUnsigned() const {
  const Document::Node& node = document_->nodes_[index_];
  const bool fits = node.kind == Kind::kUnsigned ||
                    ((node.kind == Kind::kInt || node.kind == Kind::kBool) && node.integer >= 0);
  if (!fits) return std::nullopt;
  return static_cast<std::uint64_t>(node.integer);
}

std::optional<double> Value::AsFloat() const {
  const Document::Node& node = document_->nodes_[index_];
  if (node.kind == Kind::kFloat) return node.real;
  if (const auto integer = AsInt()) return static_cast<double>(*integer);
  if (const auto integer = AsUnsigned()) return static_cast<double>(*integer);
  return std::nullopt;
}

std::optional<std::string_view> Value::AsString() const {
  const Document::Node& node = document_->nodes_[index_];
  if (node.kind != Kind::kString && node.kind != Kind::kBytes) return std::nullopt;
  return std::string_view(document_->text_).substr(node.text, node.extent);
}

std::span<const std::uint32_t> Value::items() const {
  const Document::Node& node = document_->nodes_[index_];
  if (node.kind != Kind::kList && node.kind != Kind::kTuple && node.kind != Kind::kDict) return {};
  const Document::Container& container = document_->containers_[node.extent];
  return std::span(document_->items_).subspan(container.begin, container.size);
}

std::size_t Value::size() const { return items().size() / (kind() == Kind::kDict ? 2 : 1); }
Value Value::operator[](std::size_t i) const { return {document_, items()[i]}; }
Value Value::key(std::size_t i) const { return {document_, items()[2 * i]}; }
Value Value::value(std::size_t i) const { return {document_, items()[2 * i + 1]}; }

std::optional<Value> Value::Find(std::string_view name) const {
  if (kind() != Kind::kDict) return std::nullopt;
  for (std::size_t i = size(); i-- > 0;) {
    if (key(i).AsString() == name) return value(i);
  }
  return std::nullopt;
}

std::uint64_t Value::offset() const {
  return document_->containers_[document_->nodes_[index_].extent].offset;
}

// --- The builder ---------------------------------------------------------------------------------

DocumentBuilder::Id DocumentBuilder::Add(const Document::Node& node) {
  if (document_.nodes_.size() >= std::numeric_limits<Id>::max()) {
    overflow_ = true;
    return 0;
  }
  document_.nodes_.push_back(node);
  return static_cast<Id>(document_.nodes_.size() - 1);
}

DocumentBuilder::Id DocumentBuilder::AddBool(bool boolean) {
  return Add({.kind = Kind::kBool, .integer = boolean ? 1 : 0});
}

DocumentBuilder::Id DocumentBuilder::AddInt(std::int64_t integer) {
  return Add({.kind = Kind::kInt, .integer = integer});
}

DocumentBuilder::Id DocumentBuilder::AddUnsigned(std::uint64_t integer) {
  const auto bits = static_cast<std::int64_t>(integer);
  return Add({.kind = bits < 0 ? Kind::kUnsigned : Kind::kInt, .integer = bits});
}

DocumentBuilder::Id DocumentBuilder::AddFloat(double real) {
  return Add({.kind = Kind::kFloat, .real = real});
}

DocumentBuilder::Id DocumentBuilder::AddString(Kind kind, std::uint64_t begin, std::uint32_t size) {
  return Add({.kind = kind, .extent = size, .text = begin});
}

DocumentBuilder::Id DocumentBuilder::AddCopy(std::string_view string) {
  if (string.size() > std::numeric_limits<std::uint32_t>::max()) {
    overflow_ = true;
    string = {};
  }
  const std::uint64_t begin = document_.text_.size();
  document_.text_ += string;
  copied_ += string.size();
  return AddString(Kind::kString, begin, static_cast<std::uint32_t>(string.size()));
}

DocumentBuilder::Id DocumentBuilder::AddContainer(Kind kind, std::span<const Id> items,
                                                  std::uint64_t offset) {
  const auto place = static_cast<std::uint32_t>(document_.containers_.size());
  document_.containers_.push_back({.begin = document_.items_.size(), .offset = offset});
  const Id id = Add({.kind = kind, .extent = place});
  if (!overflow_) Extend(id, items);
  return id;
}

void DocumentBuilder::Extend(Id id, std::span<const Id> added) {
  Document::Container& container = document_.containers_[document_.nodes_[id].extent];
  std::vector<std::uint32_t>& items = document_.items_;
  const std::uint64_t size = container.size + added.size();
  if (size > std::numeric_limits<std::uint32_t>::max() / 2) {
    overflow_ = true;
    return;
  }
  if (size > container.capacity) {
    std::uint64_t capacity = size;
    if (container.begin + container.capacity != items.size()) {
      // Something lies behind it: it moves to the end, with room, because a long list arrives in
      // many pieces.
      const std::uint64_t from = container.begin;
      container.begin = items.size();
      capacity = std::max<std::uint64_t>(size, 2 * std::uint64_t{container.capacity});
      items.resize(container.begin + capacity);
      std::copy_n(items.begin() + static_cast<std::ptrdiff_t>(from), container.size,
                  items.begin() + static_cast<std::ptrdiff_t>(container.begin));
    } else {
      items.resize(container.begin + capacity);
    }
    container.capacity = static_cast<std::uint32_t>(capacity);
  }
  std::ranges::copy(added,
                    items.begin() + static_cast<std::ptrdiff_t>(container.begin + container.size));
  container.size = static_cast<std::uint32_t>(size);
}

std::string_view DocumentBuilder::string(Id id) const {
  const Document::Node& node = document_.nodes_[id];
  return text().substr(node.text, node.extent);
}

bool DocumentBuilder::Exceeds(Bytes limit, std::uint64_t more) const {
  const std::uint64_t taken = more + copied_ + document_.nodes_.size() * sizeof(Document::Node) +
                              document_.containers_.size() * sizeof(Document::Container) +
                              document_.items_.size() * sizeof(std::uint32_t);
  return overflow_ || taken > limit.count();
}

Document DocumentBuilder::Finish(Id root) && {
  document_.root_ = root;
  return std::move(document_);
}

}  // namespace keel::trace
