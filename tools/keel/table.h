// Table: text in aligned columns.
//
// A cell may have several lines. Its colour is applied after the widths are known, so that
// alignment never counts an escape sequence. Text is taken to be one column per byte: keep it
// ASCII.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "terminal.h"

namespace keel::cli {

class Table {
 public:
  enum class Align { kLeft, kRight };
  using Paint = std::function<std::string(const Style&, std::string_view)>;

  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };
  struct Cell {
    Cell(std::string cell_text, Paint cell_paint = nullptr)  // NOLINT(google-explicit-constructor)
        : text(std::move(cell_text)), paint(std::move(cell_paint)) {}
    Cell(const char* cell_text) : text(cell_text) {}  // NOLINT(google-explicit-constructor)
    std::string text;
    Paint paint;  // null: as it is
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Cells that are missing on the right are empty.
  void Add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  // With the titles, every line ended.
  std::string ToString(const Style& style) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace keel::cli
