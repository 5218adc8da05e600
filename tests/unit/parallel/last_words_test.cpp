// The verdict on ranks by the words that they left.
// SPDX-License-Identifier: Apache-2.0
#include "parallel/launch/last_words.h"

#include <gtest/gtest.h>

namespace triptych::parallel {
namespace {

struct Ending {
  std::map<int, LastWords> words;
  std::set<int> first_to_end;
  int status = 0;  ///< of mpirun
  std::string verdict;
  int lost = 0;
};

TEST(LastWords, name_the_rank_that_is_to_blame) {
  const LastWords good, failed{3, -1, "no such file"}, own{4, -1, "rank 1 is out of memory"};
  const LastWords of_other{5, 1, "rank 1 died"}, silent_error{6, -1, ""};
  const Ending endings[] = {
      {{{0, good}, {1, good}, {2, good}}, {0}, 0, "all 3 ranks are done (exit code 0)", 0},
      {{{0, good}, {1, failed}, {2, good}}, {1}, 1, "no such file (exit code 3)", 0},
      {{{0, of_other}, {1, failed}, {2, own}}, {}, 1, "no such file (exit code 3)", 1},
      {{{0, of_other}, {1, own}, {2, failed}}, {}, 1, "rank 1 is out of memory (exit code 4)", 1},
      {{{0, failed}, {1, own}, {2, good}}, {}, 1, "no such file (exit code 3)", 0},
      {{{0, of_other}, {1, good}, {2, of_other}}, {}, 1, "rank 1 died (exit code 5)", 1},
      {{{0, good}, {1, silent_error}, {2, good}}, {}, 1, "stopped (exit code 6)", 0},
      // Whoever says nothing decides the exit code, which is mpirun's.
      {{{0, of_other}, {2, of_other}}, {1}, 137, "rank 1 died (exit code 137)", 1},
      {{{0, of_other}, {2, of_other}}, {1}, 0, "rank 1 died (exit code 5)", 1},
      {{{0, good}, {2, good}}, {1}, 137, "rank 1 of 3 ended without a word (exit code 137)", 1},
      {{{0, good}}, {1}, 137, "rank 1 of 3 ended first, without a word (exit code 137)", 1},
      {{{0, good}}, {1, 2}, 0, "ranks 1, 2 of 3 ended without a word (exit code 1)", 2},
      {{}, {1, 2}, 9, "ranks 1, 2 of 3 ended first, without a word (exit code 9)", 2},
      {{{0, good}}, {0}, 9, "2 of 3 ranks ended without a word (exit code 9)", 0},
      {{}, {}, 9, "3 of 3 ranks ended without a word (exit code 9)", 1},
  };
  for (const auto& ending : endings) {
    LaunchOutcome outcome{.exit_code = ending.status};
    judge(ending.words, 3, ending.first_to_end, outcome);
    EXPECT_EQ(outcome.verdict, ending.verdict);
    EXPECT_TRUE(outcome.verdict.ends_with("(exit code " + std::to_string(outcome.exit_code) + ")"));
    EXPECT_EQ(count_lost(ending.words, ending.first_to_end), ending.lost) << ending.verdict;
  }
}

}  // namespace
}  // namespace triptych::parallel
