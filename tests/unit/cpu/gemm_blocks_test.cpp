// The blocks of products and their order, and the prefetches of a microkernel.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/gemm/gemm_blocks.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <vector>

#include "backends/cpu/gemm/in_place_gemm.h"
#include "backends/cpu/gemm/packed_gemm.h"
#include "backends/cpu/gemm/prefetch.h"

namespace triptych::cpu {
namespace {

constexpr BlockLimits kLimits = {
    .rows = 64, .elements = 4096, .few_panels = 2, .many_tiles = 4, .per_thread = 3};

/// The blocks that for_each hands out, from all threads.
std::vector<GemmBlocks::Block> blocks_of(const GemmBlocks& blocks) {
  std::vector<GemmBlocks::Block> all;
  std::mutex mutex;
  std::vector<float> scratch(64);
  blocks.for_each(scratch.data(), 0, [&](const GemmBlocks::Block& block, float*) {
    const std::lock_guard lock(mutex);
    all.push_back(block);
  });
  return all;
}

TEST(GemmBlocks, every_element_of_c_lies_in_one_block) {
  for (const int threads : {1, 2, 7}) {
    for (const GemmShape& shape : {GemmShape{2, 1, 1, 1}, GemmShape{1, 200, 333, 40},
                                   GemmShape{3, 77, 1000, 300}, GemmShape{1, 500, 31, 7}}) {
      std::map<std::int64_t, std::int64_t> covered;  // elements by batch entry
      for (const auto& block : blocks_of(GemmBlocks(shape, RowTiles(shape.m), threads, kLimits))) {
        covered[block.batch] += block.m.size() * block.n.size();
        EXPECT_GE(block.tiles.size(), 1);
        EXPECT_GE(block.panels.size(), 1);
      }
      ASSERT_EQ(std::ssize(covered), shape.batch);
      for (const auto& [batch, elements] : covered) EXPECT_EQ(elements, shape.m * shape.n);
    }
  }
}

TEST(GemmBlocks, a_product_without_elements_has_no_block) {
  for (const GemmShape& shape : {GemmShape{1, 0, 5, 5}, GemmShape{1, 5, 0, 5}, GemmShape{0, 5, 5}})
    EXPECT_TRUE(blocks_of(GemmBlocks(shape, RowTiles(shape.m), 2, kLimits)).empty());
}

TEST(GemmBlocks, a_last_panel_that_one_vector_holds_is_narrow) {
  const std::int64_t columns = microkernels().columns, lanes = microkernels().narrow_columns;
  for (const auto n : {1L, lanes, lanes + 1, columns, columns + 1, 3 * columns + lanes}) {
    const GemmBlocks blocks({1, 4, n, 300}, RowTiles(4), 1, kLimits);
    for (const auto& block : blocks_of(blocks)) {
      for (std::int64_t panel = 0; panel < block.panels.size(); ++panel) {
        const auto begin = (block.panels.begin + panel) * columns;
        EXPECT_EQ(blocks.is_narrow(block, panel), n - begin <= lanes) << panel << " of " << n;
      }
    }
    EXPECT_EQ(blocks.blocking().width, round_up(n, lanes));
  }
}

TEST(GemmBlocks, of_little_depth_are_bounded_by_their_sums) {
  auto limits = kLimits;
  const GemmShape shape = {1, limits.rows, 100'000, 3};
  const GemmBlocks deep(shape, RowTiles(shape.m), 1, limits);
  EXPECT_GE(deep.panel_elements(), limits.elements - 3 * deep.columns());
  limits.sum_rows = 2 * limits.rows;
  const GemmBlocks blocks(shape, RowTiles(shape.m), 1, limits);
  EXPECT_LE(blocks.panel_elements() / 3 * blocks.block_rows(), limits.elements);
}

TEST(GemmBlocks, depths_follow_one_another_and_an_empty_k_is_met_once) {
  const auto depths = [](std::int64_t k) {
    std::vector<Range> all;
    GemmBlocks({1, 1, 1, k}, RowTiles(1), 1, kLimits).for_each_depth([&](Range depth) {
      all.push_back(depth);
    });
    return all;
  };
  EXPECT_EQ(depths(0), (std::vector<Range>{{0, 0}}));
  EXPECT_EQ(depths(kGemmDepth), (std::vector<Range>{{0, kGemmDepth}}));
  EXPECT_EQ(depths(kGemmDepth + 1),
            (std::vector<Range>{{0, kGemmDepth}, {kGemmDepth, kGemmDepth + 1}}));
}

TEST(GemmBlocks, scratch_that_no_memory_holds_is_refused) {
  const GemmShape shape = {.m = std::int64_t{1} << 61, .n = std::int64_t{1} << 61, .k = 1};
  EXPECT_THROW((void)InPlaceGemm(shape, 1).scratch_bytes(), InvalidArgument);
}

TEST(TilePrefetch, each_panel_fetches_its_share_in_steps_of_k) {
  const std::vector<float> a(1000);
  const TilePrefetch<float> ahead = {
      .fetches = 4, .next = a.data(), .panel_step = 100, .fetch_step = 25};
  MicroTile tile = {.k_inner = 12, .b_inner = 32};
  ahead.add_to(tile, 3);
  EXPECT_EQ(tile.k_outer, 4);
  EXPECT_EQ(tile.k_inner, 3);
  EXPECT_EQ(tile.b_outer, 3 * 32);
  EXPECT_EQ(tile.ahead, a.data() + 300);
  EXPECT_EQ(tile.ahead_step, 25);
}

TEST(TilePrefetch, a_depth_that_the_steps_do_not_divide_stays_whole) {
  MicroTile tile = {.k_inner = 13, .b_inner = 32};
  TilePrefetch<float>{.fetches = 4}.add_to(tile, 0);
  EXPECT_EQ(tile.k_outer, 1);
  EXPECT_EQ(tile.k_inner, 13);
  EXPECT_EQ(tile.ahead, nullptr);
}

}  // namespace
}  // namespace triptych::cpu
