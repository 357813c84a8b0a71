#include "terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace keel::cli {

bool IsTerminal(std::FILE* file) { return isatty(fileno(file)) == 1; }

std::size_t TerminalColumns(std::FILE* file) {
  constexpr std::size_t kDefault = 80;
  winsize size{};
  if (ioctl(fileno(file), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefault;
  return size.ws_col;
}

Style::Style(std::FILE* file) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool refused = no_color != nullptr && *no_color != '\0';
  const bool dumb = term == nullptr || std::string_view(term) == "dumb";
  colours_ = !refused && !dumb && IsTerminal(file);
}

std::string Style::Wrap(std::string_view code, std::string_view text) const {
  if (!colours_ || text.empty()) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", code, text);
}

void PrintError(std::string_view where, std::string_view message) {
  std::string line;
  for (const char c : message) {
    if (c != '\n') {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  // Standard output first, so that the two appear in the order in which they were written.
  std::fflush(stdout);
  fmt::print(stderr, "{} {}\n",
             Style(stderr).Bad(where.empty() ? "keel:" : fmt::format("keel {}:", where)), line);
}

}  // namespace keel::cli
