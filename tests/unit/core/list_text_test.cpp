// The lines of a text.
// SPDX-License-Identifier: Apache-2.0
#include "core/base/list_text.h"

#include <gtest/gtest.h>

namespace triptych {
namespace {

TEST(ListText, lines_have_no_ends) {
  using Lines = std::vector<std::string_view>;
  EXPECT_EQ(split_lines(""), Lines{});
  EXPECT_EQ(split_lines("\n"), Lines{""});
  EXPECT_EQ(split_lines("a b\n\nc"), (Lines{"a b", "", "c"}));
  EXPECT_EQ(split_lines("a b\n\nc\n"), (Lines{"a b", "", "c"}));
}

}  // namespace
}  // namespace triptych
