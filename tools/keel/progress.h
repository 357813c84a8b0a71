// Progress: one line per step, with a bar while the step runs.
//
// On a terminal the line is redrawn in place (at most every few hundredths of a second) and ends
// as its result; elsewhere only the result is written, so that a log holds plain lines.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "terminal.h"

namespace keel::cli {

class Progress {
 public:
  // `out` null: says nothing. `title_width` aligns the results.
  Progress(std::FILE* out, std::size_t steps, std::size_t title_width);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Begin(std::string_view title);
  // Cheap enough to call often.
  void Update(std::uint64_t done, std::uint64_t total);
  // `result` may hold colours.
  void End(std::string_view result);

 private:
  std::string Head() const;
  void Clear();
  void Draw(std::uint64_t done, std::uint64_t total);

  std::FILE* const out_;
  const bool terminal_;
  const std::size_t steps_;
  const std::size_t title_width_;
  std::size_t step_ = 0;
  std::string title_;
  bool open_ = false;  // a step was begun and not ended
  std::chrono::steady_clock::time_point drawn_;
};

}  // namespace keel::cli
