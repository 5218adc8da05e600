// The order of the options of the labs' questions.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/option_order.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

namespace triptych::labs {
namespace {

constexpr std::string_view kParagraphs = R"(# Lab

Text (a) of no question.

**q1.** Which is it, because (a) the first
word, (b) the second, (c) the third; (d) the last.

**q2.** Another. (a) One. (b) Two. (c) Three. (d) Four.
)";
constexpr std::string_view kItems = R"(# Lab

`which` Which is it?

- a) The first item, which is so long that it goes on
  in a second line.
- b) The second.
- c) The third.
- d) The last.

`other` text
)";
constexpr Explanation kQuestions[] = {{"q1", 1, "", ""}, {"q2", 1, "", ""}};
constexpr Explanation kListed[] = {{"which", 1, "", ""}};

TEST(OptionOrder, puts_the_options_of_a_paragraph_into_the_order) {
  const auto text = reordered(kParagraphs, {{"q1", "dbac"}});
  EXPECT_THAT(text, testing::HasSubstr("because (a) the last, (b) the second, (c) the first word; "
                                       "(d) the third."));
  EXPECT_THAT(text, testing::HasSubstr("Another. (a) One. (b) Two. (c) Three. (d) Four.\n"));
  EXPECT_THAT(text, testing::HasSubstr("Text (a) of no question.\n"));
}

TEST(OptionOrder, puts_the_items_of_a_list_into_the_order) {
  const auto text = reordered(kItems, {{"which", "cadb"}});
  EXPECT_THAT(text, testing::HasSubstr("\n\n- a) The third.\n- b) The first item, which is so "
                                       "long that it goes on in a second line.\n- c) The last.\n"
                                       "- d) The second.\n\n`other` text\n"));
}

TEST(OptionOrder, depends_on_the_seed_and_is_a_permutation) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const auto orders = draw_option_orders(kParagraphs, kQuestions, seed);
    EXPECT_EQ(orders, draw_option_orders(kParagraphs, kQuestions, seed));
    auto letters = orders.at("q1");
    seen.insert(letters);
    std::ranges::sort(letters);
    EXPECT_EQ(letters, "abcd");
  }
  EXPECT_GT(seen.size(), 12U);  // of 24
}

TEST(OptionOrder, leaves_questions_without_four_options_alone) {
  EXPECT_TRUE(draw_option_orders("**q1.** (a) one, (b) two.\n", kQuestions, 1).empty());
  EXPECT_TRUE(draw_option_orders("- a) lonely\n", kListed, 1).empty());
}

TEST(OptionOrder, is_drawn_for_every_question_of_every_lab) {
  for (const auto& lab : labs()) {
    const auto handout = text_in(lab.files, fmt::format("handouts/{}/README.md", lab.name()));
    const auto orders = draw_option_orders(handout, lab.explanations, 7);
    for (const auto& question : lab.explanations)
      EXPECT_TRUE(orders.contains(std::string(question.id))) << lab.name() << " " << question.id;
    OptionOrders same;
    for (const auto& [id, order] : orders) same[id] = "abcd";
    const auto words = [](std::string_view text) {
      std::istringstream stream{std::string(text)};
      std::multiset<std::string> all;
      for (std::string word; stream >> word;) all.insert(word);
      return all;
    };
    EXPECT_EQ(words(reordered(handout, same)), words(handout)) << lab.name();
    std::istringstream lines(reordered(handout, orders));
    for (std::string line; std::getline(lines, line);) {
      const bool unchanged = handout.find(line) != handout.npos;
      EXPECT_TRUE(unchanged || line.size() <= 100U) << lab.name() << ": " << line;
    }
  }
}

}  // namespace
}  // namespace triptych::labs
