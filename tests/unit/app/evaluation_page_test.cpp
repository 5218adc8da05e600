// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/evaluation_page.h"

#include <gmock/gmock.h>

namespace triptych::app {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(EvaluationPage, pictures_stand_by_their_dice_with_the_lowest_first) {
  const page::Json evaluation = {{"images",
                                  {{{"name", "good"}, {"dice", 0.9}},
                                   {{"name", "empty"}, {"dice", nullptr}},
                                   {{"name", "bad"}, {"dice", 0.1}}}}};
  page::Page page("A run", "");
  write_pictures(page, page::JsonView(evaluation), {"", "the images"},
                 {{"good", "AAAA"}, {"bad", "BBBB"}, {"empty", "CCCC"}, {"stale", "DDDD"}});
  const auto html = page.str();
  EXPECT_LT(html.find("BBBB"), html.find("AAAA"));
  EXPECT_LT(html.find("AAAA"), html.find("CCCC")) << "an image without a Dice comes last";
  EXPECT_THAT(html, HasSubstr("bad, 0.1000"));
  EXPECT_THAT(html, Not(HasSubstr("DDDD"))) << "an image without a score";
}

}  // namespace
}  // namespace triptych::app
