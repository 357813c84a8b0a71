#include "table.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace keel::cli {
namespace {

constexpr std::string_view kGap = "  ";

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (true) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return lines;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::string Table::ToString(const Style& style) const {
  std::vector<std::vector<Cell>> rows;
  std::vector<Cell> titles;
  titles.reserve(columns_.size());
  for (const Column& column : columns_) {
    titles.emplace_back(column.title,
                        [](const Style& s, std::string_view text) { return s.Bold(text); });
  }
  rows.push_back(std::move(titles));
  rows.insert(rows.end(), rows_.begin(), rows_.end());

  std::vector<std::size_t> widths(columns_.size(), 0);
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < std::min(row.size(), widths.size()); ++c) {
      for (const std::string_view line : Lines(row[c].text)) {
        widths[c] = std::max(widths[c], line.size());
      }
    }
  }

  std::string out;
  for (const auto& row : rows) {
    std::vector<std::vector<std::string_view>> cells;
    std::size_t height = 1;
    for (const Cell& cell : row) {
      cells.push_back(Lines(cell.text));
      height = std::max(height, cells.back().size());
    }
    for (std::size_t l = 0; l < height; ++l) {
      std::size_t pending = 0;  // spaces that are written only if something follows them
      for (std::size_t c = 0; c < std::min(cells.size(), widths.size()); ++c) {
        const std::string_view text = l < cells[c].size() ? cells[c][l] : std::string_view();
        const std::size_t padding = widths[c] - text.size();
        const bool right = columns_[c].align == Align::kRight;
        if (right) pending += padding;
        if (!text.empty()) {
          out.append(pending, ' ');
          pending = 0;
          out += row[c].paint ? row[c].paint(style, text) : std::string(text);
        }
        pending += (right ? 0 : padding) + kGap.size();
      }
      out += '\n';
    }
  }
  return out;
}

}  // namespace keel::cli
