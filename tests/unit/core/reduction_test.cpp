// SPDX-License-Identifier: Apache-2.0
#include "core/base/reduction.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/base/random.h"

namespace triptych {
namespace {

std::vector<float> numbers(std::int64_t count) {
  RandomStream random(7, 0);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (auto& value : values) value = random.uniform(-1, 1);
  return values;
}

/// The balanced tree as its definition says: neighbours, level by level.
float level_by_level(std::vector<float> sums) {
  while (sums.size() > 1) {
    std::vector<float> next;
    for (std::size_t i = 0; i < sums.size(); i += 2) {
      next.push_back(i + 1 < sums.size() ? sums[i] + sums[i + 1] : sums[i]);
    }
    sums = next;
  }
  return sums.empty() ? 0 : sums[0];
}

TEST(Reduction, a_block_adds_lanes_and_folds_them_by_halving) {
  const auto x = numbers(77);
  const auto lane = [&](std::size_t l) {
    float sum = 0;
    for (auto i = l; i < x.size(); i += 32) sum += x[i];
    return sum;
  };
  std::vector<float> lanes;
  for (std::size_t l = 0; l < 32; ++l) lanes.push_back(lane(l));
  for (std::size_t half = 16; half > 0; half /= 2) {
    for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  EXPECT_EQ(fold_block(
                77, [&](auto i) { return x[static_cast<std::size_t>(i)]; }, SumOf<float>()),
            lanes[0]);
}

TEST(Reduction, the_tree_adds_neighbours_level_by_level) {
  for (std::int64_t count = 0; count < 70; ++count) {
    auto x = numbers(count);
    const float expected = level_by_level(x);
    EXPECT_EQ(fold_tree(x.data(), count, SumOf<float>()), expected) << count;
  }
}

TEST(Reduction, the_tree_is_the_same_when_blocks_come_one_after_another) {
  for (std::int64_t count = 0; count < 70; ++count) {
    TreeFold<SumOf<float>> tree;
    for (const float value : numbers(count)) tree.push(value);
    EXPECT_EQ(tree.result(), level_by_level(numbers(count))) << count;
  }
}

TEST(Reduction, empty_sequences_give_the_start) {
  const auto none = [](auto) { return 1.0F; };
  EXPECT_EQ(fold_block(0, none, SumOf<float>()), 0);
  EXPECT_EQ(fold_tree<MaxOf<int>>(nullptr, 0, {}), std::numeric_limits<int>::min());
  EXPECT_EQ(TreeFold<SumOf<float>>().result(), 0);
}

TEST(Reduction, sums_of_integers_wrap) {
  EXPECT_EQ(SumOf<std::int32_t>()(2147483647, 1), -2147483647 - 1);
}

}  // namespace
}  // namespace triptych
