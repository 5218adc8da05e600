// SPDX-License-Identifier: Apache-2.0
#include "experiments/page/text_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace triptych::page {
namespace {

TEST(Wrapped, breaks_between_words_and_indents_what_follows) {
  EXPECT_EQ(wrapped("  short text", 4), "  short text\n");
  const std::string word(48, 'x'), long_word(120, 'y');
  EXPECT_EQ(wrapped(word + " " + word + " " + word, 4), word + " " + word + "\n    " + word + "\n");
  EXPECT_EQ(wrapped(word + " " + word + " ab", 4), word + " " + word + " ab\n");
  EXPECT_EQ(wrapped(word + " " + word + " abc", 4), word + " " + word + "\n    abc\n");
  EXPECT_EQ(wrapped("a " + long_word + " b", 2), "a\n  " + long_word + "\n  b\n");
  EXPECT_EQ(wrapped("", 4), "\n");
}

TEST(Filled, ends_broken_lines_as_asked) {
  EXPECT_EQ(filled("a bb ccc", {.indent = 2, .first = 0, .columns = 5, .line_end = " \\"}),
            "a bb \\\n  ccc\n");
}

std::size_t width_of(const std::vector<std::string>& lines) {
  std::size_t width = 0;
  for (const auto& line : lines) width = std::max(width, display_width(line));
  return width;
}

TEST(TextTable, keeps_its_natural_width_where_that_fits_or_is_not_limited) {
  TextTable table({"node", "why"});
  table.add({"down1.conv0", std::string(60, 'x') + " " + std::string(60, 'y')});
  EXPECT_EQ(width_of(table.parts(std::nullopt)[0].lines), 134U);
  EXPECT_EQ(table.parts(134).size(), 1U);
  EXPECT_EQ(table.parts(134)[0].lines.size(), 1U);
}

TEST(TextTable, breaks_cells_between_words_to_fit) {
  TextTable table({"node", "time", "why"});
  table.add({"down1.conv0", "12.30 ms", "kernel depthwise: needs as many groups as channels"});
  table.add({"head", "1.20 ms", "best kernel"});
  const auto parts = table.parts(48);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].lines.size(), 4U);
  EXPECT_LE(width_of(parts[0].lines), 48U);
  EXPECT_EQ(parts[0].lines[0], "down1.conv0  12.30 ms  kernel depthwise: needs");
  EXPECT_EQ(parts[0].lines[1], "                       as many groups as");
}

TEST(TextTable, repeats_its_first_column_beside_columns_that_do_not_fit) {
  TextTable table({"name", "first number", "second number", "third number"});
  table.add({"row", "1234567.1 GB", "2234567.1 GB", "3234567.1 GB"});
  const auto parts = table.parts(36);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[1].lines[0], "row   3234567.1 GB");
  for (const auto& part : parts)
    EXPECT_LE(std::max(width_of(part.header), width_of(part.lines)), 36U);
}

TEST(TextTable, breaks_a_word_that_is_longer_than_the_line) {
  TextTable table({"name", "file"});
  table.add({"row", std::string(90, 'x')});
  EXPECT_LE(width_of(table.parts(40)[0].lines), 40U);
}

}  // namespace
}  // namespace triptych::page
