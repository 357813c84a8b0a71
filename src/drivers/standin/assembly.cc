#include "drivers/standin/assembly.h"

#include <cctype>
#include <charconv>
#include <string>

namespace keel::standin {
namespace {

bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool IsWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '.' ||
         c == '%';
}

// Takes tokens off the front of a text: words (with their dots), and single other characters.
// Comments are space.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : rest_(text) {}

  // Empty at the end.
  std::string_view Next() {
    SkipSpace();
    if (rest_.empty()) return {};
    std::size_t length = 1;
    if (IsWord(rest_.front())) {
      while (length < rest_.size() && IsWord(rest_[length])) ++length;
    }
    const std::string_view token = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return token;
  }

 private:
  void SkipSpace() {
    for (;;) {
      while (!rest_.empty() && IsSpace(rest_.front())) rest_.remove_prefix(1);
      if (rest_.starts_with("//")) {
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
      } else if (rest_.starts_with("/*")) {
        const std::size_t end = rest_.find("*/", 2);
        rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 2);
      } else {
        return;
      }
    }
  }

  std::string_view rest_;
};

// The bytes of ".u64", ".b32", ".f16" and so on; 0 for anything else.
std::uint32_t SizeOfType(std::string_view type) {
  if (type.size() < 3 || type[0] != '.' || std::string_view("busf").find(type[1]) == type.npos) {
    return 0;
  }
  std::uint32_t bits = 0;
  const auto [end, error] = std::from_chars(type.data() + 2, type.data() + type.size(), bits);
  if (error != std::errc() || end != type.data() + type.size() || bits % 8 != 0) return 0;
  return bits / 8;
}

// "name ( .param [.align N] .type name [ '[' N ']' ], ... )": the entry, up to the parenthesis.
std::optional<KernelEntry> ParseEntry(Tokens& tokens) {
  KernelEntry entry;
  entry.name = tokens.Next();
  if (entry.name.empty() || tokens.Next() != "(") return std::nullopt;
  std::string_view token = tokens.Next();
  while (token != ")") {
    if (token != ".param") return std::nullopt;
    token = tokens.Next();
    // Attributes of a pointer (".ptr .global .align 16") and alignments come before the name.
    std::uint32_t size = 0;
    while (token.starts_with(".")) {
      if (const std::uint32_t found = SizeOfType(token); found != 0) size = found;
      if (token == ".align") tokens.Next();
      token = tokens.Next();
    }
    if (size == 0 || token.empty()) return std::nullopt;
    token = tokens.Next();
    if (token == "[") {
      const std::string_view count = tokens.Next();
      std::uint32_t elements = 0;
      const auto [end, error] =
          std::from_chars(count.data(), count.data() + count.size(), elements);
      if (error != std::errc() || end != count.data() + count.size() || tokens.Next() != "]") {
        return std::nullopt;
      }
      size *= elements;
      token = tokens.Next();
    }
    entry.parameter_sizes.push_back(size);
    if (token == ",") {
      token = tokens.Next();
    } else if (token != ")") {
      return std::nullopt;
    }
  }
  return entry;
}

}  // namespace

std::optional<std::vector<KernelEntry>> ParseAssembly(std::string_view text) {
  Tokens tokens(text);
  if (tokens.Next() != ".version" || tokens.Next().empty() || tokens.Next() != ".target") {
    return std::nullopt;
  }
  std::vector<KernelEntry> entries;
  int depth = 0;
  for (std::string_view token = tokens.Next(); !token.empty(); token = tokens.Next()) {
    if (token == "{") ++depth;
    if (token == "}" && --depth < 0) return std::nullopt;
    if (token != ".entry" || depth > 0) continue;
    std::optional<KernelEntry> entry = ParseEntry(tokens);
    if (!entry) return std::nullopt;
    entries.push_back(*std::move(entry));
  }
  if (depth != 0) return std::nullopt;
  return entries;
}

}  // namespace keel::standin
