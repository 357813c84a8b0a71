// What the terminal can show: whether there is one, how wide it is, and colours.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace keel::cli {

bool IsTerminal(std::FILE* file);
// 80 where it cannot be told.
std::size_t TerminalColumns(std::FILE* file);

// Colours on a terminal, unless NO_COLOR is set to anything or TERM is "dumb"; plain text
// elsewhere, so that what is piped holds no escape sequences.
class Style {
 public:
  explicit Style(std::FILE* file);
  static Style Plain() { return Style(); }

  std::string Bold(std::string_view text) const { return Wrap("1", text); }
  std::string Dim(std::string_view text) const { return Wrap("2", text); }
  std::string Good(std::string_view text) const { return Wrap("32", text); }
  std::string Bad(std::string_view text) const { return Wrap("31", text); }
  std::string Warn(std::string_view text) const { return Wrap("33", text); }

 private:
  Style() = default;
  std::string Wrap(std::string_view code, std::string_view text) const;

  bool colours_ = false;
};

// "keel info: message" on standard error, as one line whatever the message holds. `where` may be
// empty.
void PrintError(std::string_view where, std::string_view message);

}  // namespace keel::cli
