// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/old_spellings.h"

#include <gtest/gtest.h>

namespace triptych::app {
namespace {

TEST(OldSpellings, an_option_has_its_spelling_in_its_commands_alone) {
  EXPECT_EQ(new_spelling("run", "--weights"), "triptych run RUN");
  EXPECT_EQ(new_spelling("export", "--weights"), "");
  EXPECT_EQ(new_spelling("run", "--weight"), "");
}

TEST(OldSpellings, an_argument_follows_its_option) {
  EXPECT_EQ(new_spelling("lab start", "mine"), "--out mine");
  EXPECT_EQ(new_spelling("lab check", "mine"), "");
}

}  // namespace
}  // namespace triptych::app
