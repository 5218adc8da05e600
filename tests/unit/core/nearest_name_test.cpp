// Names that are suggested for a misspelt one.
// SPDX-License-Identifier: Apache-2.0
#include "core/base/nearest_name.h"

#include <gtest/gtest.h>

namespace triptych {
namespace {

TEST(NearestName, is_two_changes_away_at_most_or_begins_with_the_word) {
  struct Case {
    std::string word;
    std::vector<std::string> names;
    std::string nearest;
  };
  const Case cases[] = {
      {"trian", {"test", "train"}, "train"},
      {"tesst", {"tent", "test", "rest"}, "test"},
      {"tra", {"evaluate", "train"}, "train"},
      {"bsh", {"zsh", "bash"}, "bash"},
      {"--n_epochs", {"--n-epochs", "--n_epochs"}, "--n_epochs"},
      {"parallel", {"strategy", "ranks"}, "strategy"},
      {"evaluat", {"evaluate", "validate"}, "evaluate"},
      {"eva", {"evaluate", "evaluation"}, "evaluate"},
      {"eva", {"evaluation", "evaluate"}, "evaluate"},
      {"eva", {"evaluation", "evaluate", "evaporate"}, "evaluate"},
      {"abc", {"abd", "abcdef"}, "abd"},
      {"abc", {"axy", "abcdef"}, "abcdef"},
      {"ev", {"evaluate"}, ""},
      {"ev", {"evaluate", "eve"}, "eve"},
      {"xyz", {"train", "evaluate"}, ""},
      {"tuvwx", {"train"}, ""},
      {"trxyn", {"train"}, "train"},
      {"", {"train"}, ""},
      {"train", {}, ""},
  };
  for (const auto& [word, names, nearest] : cases)
    EXPECT_EQ(nearest_name(word, names), nearest) << word;
}

}  // namespace
}  // namespace triptych
