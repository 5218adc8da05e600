// The check that an instruction passes before kernels of bfloat16 pairs use it.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/gemm/dot_unit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

namespace triptych::cpu {
namespace {

/// The tile with the later k of each word first, as some other instruction might compute.
template <bool kNarrow, std::size_t kRows>
void other_order(const DotTile& tile) {
  const auto swapped = [](const DotWord* words, std::int64_t count) {
    std::vector<DotWord> result(words, words + count);
    for (auto& word : result) word = std::rotl(word, 16);
    return result;
  };
  const auto a = swapped(tile.a, tile.k_inner * static_cast<std::int64_t>(kRows));
  const auto b = swapped(tile.b, tile.k_inner * tile.b_inner);
  auto other = tile;
  other.a = a.data();
  other.b = b.data();
  microkernels().run_tile(kRows, other, kNarrow);
}

template <std::size_t... kRowsMinusOne>
WordKernels<DotWord> in_other_order(std::index_sequence<kRowsMinusOne...>) {
  auto dots = microkernels().dots;
  ((dots.run_narrow[kRowsMinusOne + 1] = other_order<true, kRowsMinusOne + 1>), ...);
  return dots;
}

TEST(DotUnit, check_accepts_the_chain_and_nothing_else) {
  const auto& kernels = microkernels();
  EXPECT_TRUE(same_words(kernels.dots, kernels.dots, kernels));
  EXPECT_FALSE(same_words(in_other_order(std::make_index_sequence<kMaxNarrowRows>()), kernels.dots,
                          kernels));
  auto one_tile = kernels.dots;
  one_tile.run[1] = other_order<false, 1>;
  EXPECT_FALSE(same_words(one_tile, kernels.dots, kernels));
}

TEST(DotUnit, check_notices_a_product_of_int16_that_saturates) {
  const auto& kernels = microkernels();
  EXPECT_TRUE(same_words(kernels.pairs, kernels.pairs, kernels));
  auto other = kernels.pairs;
  other.run_narrow[3] = [](const PairTile& tile) {
    microkernels().run_tile(3, tile, true);
    auto& sum = tile.c[tile.c_stride];
    sum = std::max(sum, -0x40000000);
  };
  EXPECT_FALSE(same_words(other, kernels.pairs, kernels));
}

TEST(DotUnit, kernels_say_why_they_do_not_pay) {
  const auto verdict = worth_on_dots(1024, 1024);
  EXPECT_EQ(verdict.accepted, microkernels().dots_missing.empty());
  EXPECT_FALSE(verdict.reason.empty());
  EXPECT_FALSE(worth_on_dots(1, 1024).accepted);
}

}  // namespace
}  // namespace triptych::cpu
