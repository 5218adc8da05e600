// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/options.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/base/list_text.h"
#include "experiments/app/message.h"

namespace triptych::app {
namespace {

using Numbers = std::vector<std::int64_t>;

TEST(Lists, nouns_are_counted) {
  EXPECT_EQ(counted(0, "mask"), "0 masks");
  EXPECT_EQ(counted(1, "more image"), "1 more image");
  EXPECT_EQ(counted(12, "mask"), "12 masks");
}

TEST(ParseNumbers, doubles_from_the_begin_of_a_range_to_its_end) {
  EXPECT_EQ(parse_numbers("3"), Numbers{3});
  EXPECT_EQ(parse_numbers("7,1..8,5..5"), (Numbers{7, 1, 2, 4, 8, 5}));
  EXPECT_EQ(parse_numbers("3..11"), (Numbers{3, 6}));
  EXPECT_EQ(parse_numbers("1..9223372036854775807").size(), 63U);
}

TEST(ParseNumbers, refuses_what_is_no_list_of_positive_numbers) {
  for (const char* text :
       {"", "0", "-1", "a", "1..", "..4", "4..2", "1..2..3", "9223372036854775808"})
    EXPECT_THROW(parse_numbers(text), InvalidArgument) << text;
}

TEST(Message, of_a_library_gets_the_dashes_of_its_options) {
  EXPECT_EQ(with_dashes("the option size 60 is too large; change the option in-channels"),
            "--size 60 is too large; change --in-channels");
  EXPECT_EQ(with_dashes("the backend has no option \"x\", the options are two"),
            "the backend has no option \"x\", the options are two");
}

}  // namespace
}  // namespace triptych::app
