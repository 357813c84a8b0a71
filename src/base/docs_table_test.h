// For tests that hold a page of docs/ to the code: the rows of its tables.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace keel {

// The table rows that start with a `key` in backquotes, of the section under "## `heading`", as
// they stand. Fails the test if there is no such page or section.
inline std::vector<std::string> DocsTableRows(const std::string& page, std::string_view heading) {
  std::vector<std::string> rows;
  std::ifstream file(page);
  EXPECT_TRUE(file.is_open()) << page;
  bool inside = false;
  bool found = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) {
      inside = line.substr(3) == heading;
      found = found || inside;
    } else if (inside && line.starts_with("| `")) {
      rows.push_back(line);
    }
  }
  EXPECT_TRUE(found) << page << " has no section '" << heading << "'";
  return rows;
}

// All rows as text, to paste into the page when they differ.
inline std::string JoinRows(const std::vector<std::string>& rows) {
  std::string text;
  for (const std::string& row : rows) text += row + "\n";
  return text;
}

}  // namespace keel
