// SPDX-License-Identifier: Apache-2.0
#include "experiments/page/text_table.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace triptych::page
