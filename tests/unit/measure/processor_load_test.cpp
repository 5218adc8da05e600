// Shares of the processors' time, and the warning that follows from them.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/processor_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace triptych::measure {
namespace {

// In ticks of 1/100 s: user nice system idle iowait irq softirq steal.
constexpr auto* kBefore = "cpu  100 0 50 1000 10 0 0 0 0 0";

TEST(ProcessorLoad, what_is_neither_idle_nor_ours_is_others) {
  // 4 s: 1 s idle and waiting, 3 s busy, 2 s of them ours.
  const auto shares = shares_between(kBefore, "cpu  300 20 100 1090 20 0 10 20 0 0", 2, 100);
  ASSERT_TRUE(shares);
  EXPECT_DOUBLE_EQ(shares->idle, 0.25);
  EXPECT_DOUBLE_EQ(shares->own, 0.5);
  EXPECT_DOUBLE_EQ(shares->others, 0.25);
}

TEST(ProcessorLoad, texts_that_say_nothing_give_nothing) {
  EXPECT_FALSE(shares_between("", kBefore, 1, 100));
  EXPECT_FALSE(shares_between(kBefore, "intr 1 2 3", 1, 100));
  EXPECT_FALSE(shares_between(kBefore, kBefore, 1, 100));
}

TEST(ProcessorLoad, others_disturb_where_they_leave_little_idle) {
  EXPECT_THAT(busy_note(ProcessorShares{0.6, 0.3, 0.1}), testing::HasSubstr("30 % of their time"));
  EXPECT_EQ(busy_note(ProcessorShares{0.95, 0.05, 0}), "");
  EXPECT_EQ(busy_note(ProcessorShares{0.1, 0.3, 0.6}), "");
  EXPECT_EQ(busy_note(std::nullopt), "");
}

}  // namespace
}  // namespace triptych::measure
