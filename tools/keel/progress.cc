#include "progress.h"

#include <fmt/format.h>

#include <algorithm>

namespace keel::cli {
namespace {
constexpr auto kRedraw = std::chrono::milliseconds(40);
constexpr std::size_t kMaxBar = 30;
constexpr std::size_t kMinBar = 5;
}  // namespace

Progress::Progress(std::FILE* out, std::size_t steps, std::size_t title_width)
    : out_(out),
      terminal_(out != nullptr && IsTerminal(out)),
      steps_(steps),
      title_width_(title_width) {}

Progress::~Progress() {
  // Left by an error: what is written next must not follow half a bar.
  if (open_) Clear();
}

std::string Progress::Head() const {
  return fmt::format("[{}/{}] {:<{}}", step_, steps_, title_, title_width_);
}

void Progress::Clear() {
  if (!terminal_) return;
  fmt::print(out_, "\r\033[K");
  std::fflush(out_);
}

void Progress::Draw(std::uint64_t done, std::uint64_t total) {
  drawn_ = std::chrono::steady_clock::now();
  const std::string head = Head();
  std::string line = head;
  // "  [bar] 100%", and the last column stays free: some terminals wrap when it is written.
  const std::size_t fixed = head.size() + 2 + 2 + 5 + 1;
  const std::size_t columns = TerminalColumns(out_);
  if (columns >= fixed + kMinBar) {
    const std::size_t width = std::min(kMaxBar, columns - fixed);
    const std::uint64_t whole = std::max<std::uint64_t>(total, 1);
    const std::uint64_t part = std::min(done, whole);
    const auto filled = static_cast<std::size_t>(part * width / whole);
    line += fmt::format("  [{:#<{}}{:.<{}}] {:>3}%", "", filled, "", width - filled,
                        part * 100 / whole);
  } else if (columns > 0 && line.size() >= columns) {
    line.resize(columns - 1);
  }
  fmt::print(out_, "\r\033[K{}", line);
  std::fflush(out_);
}

void Progress::Begin(std::string_view title) {
  ++step_;
  title_ = title;
  open_ = true;
  if (terminal_) Draw(0, 1);
}

void Progress::Update(std::uint64_t done, std::uint64_t total) {
  if (!terminal_ || !open_) return;
  if (done < total && std::chrono::steady_clock::now() - drawn_ < kRedraw) return;
  Draw(done, total);
}

void Progress::End(std::string_view result) {
  if (!open_) return;
  open_ = false;
  Clear();
  if (out_ == nullptr) return;
  fmt::print(out_, "{}  {}\n", Head(), result);
  std::fflush(out_);
}

}  // namespace keel::cli
