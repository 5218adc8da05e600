// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/base/checked_math.h"
#include "core/base/random.h"
#include "core/tensor/tensor.h"

namespace triptych {
namespace {

TEST(Arena, nothing_needs_no_memory) { EXPECT_EQ(pack_arena({}).bytes, 0u); }

TEST(Arena, blocks_that_never_meet_share_memory) {
  const Block blocks[] = {{128, 0, 1}, {128, 2, 3}, {64, 4, 4}};
  const auto packing = pack_arena(blocks);
  EXPECT_EQ(packing.bytes, 128u);
  EXPECT_EQ(packing.offsets, (std::vector<std::size_t>{0, 0, 0}));
}

TEST(Arena, blocks_that_meet_in_one_step_lie_apart) {
  const Block blocks[] = {{128, 0, 2}, {64, 2, 3}};
  const auto packing = pack_arena(blocks);
  EXPECT_EQ(packing.bytes, 192u);
  EXPECT_FALSE(has_overlap(blocks, packing));
}

TEST(Arena, blocks_at_the_start_share_it_and_others_take_the_room_they_leave) {
  const Block blocks[] = {{256, 0, 3}, {64, 1, 1, true}, {192, 3, 3, true}, {128, 0, 1}};
  const auto packing = pack_arena(blocks);
  EXPECT_FALSE(has_overlap(blocks, packing));
  EXPECT_EQ(packing.offsets, (std::vector<std::size_t>{192, 0, 0, 64}));
  EXPECT_EQ(packing.bytes, 448u);
}

TEST(Arena, what_is_in_use_longest_goes_first_where_that_is_smaller) {
  // By size it lies above the block of 320 and the two others cannot lie on one side of it.
  const Block blocks[] = {{192, 5, 7}, {192, 1, 5}, {320, 1, 1}, {192, 4, 6}};
  EXPECT_EQ(pack_arena(blocks).bytes, 576u);
}

TEST(Arena, a_block_goes_into_the_smallest_gap_that_holds_it) {
  // When the last block is placed, time 5 has gaps of 512 bytes at 1024, 64 at 2176, 128 at 2432.
  const Block blocks[] = {{1024, 0, 9}, {512, 0, 4}, {448, 0, 9}, {256, 0, 4}, {192, 0, 9},
                          {192, 5, 5},  {128, 0, 4}, {64, 0, 9},  {64, 5, 5}};
  const auto packing = pack_arena(blocks);
  EXPECT_EQ(packing.offsets,
            (std::vector<std::size_t>{0, 1024, 1536, 1984, 2240, 1984, 2432, 2560, 2176}));
  EXPECT_EQ(packing.bytes, 2624u);
}

TEST(Arena, odd_sizes_keep_every_offset_aligned) {
  const Block blocks[] = {{3, 0, 1}, {1, 0, 1}, {65, 0, 1}};
  const auto packing = pack_arena(blocks);
  for (const auto offset : packing.offsets) EXPECT_EQ(offset % kAlignment, 0u);
  EXPECT_EQ(packing.bytes, 256u);
}

TEST(Arena, empty_blocks_take_no_room) {
  const Block blocks[] = {{0, 0, 9}, {64, 0, 9}, {0, 0, 9}};
  EXPECT_EQ(pack_arena(blocks).bytes, 64u);
}

TEST(Arena, sizes_beyond_64_bits_are_refused) {
  const Block blocks[] = {{std::size_t{1} << 62, 0, 1}, {std::size_t{1} << 62, 0, 1}};
  EXPECT_THROW(pack_arena(blocks), InvalidArgument);
}

TEST(Arena, an_overlap_is_found) {
  const Block blocks[] = {{128, 0, 2}, {128, 2, 3}};
  EXPECT_TRUE(has_overlap(blocks, {.offsets = {0, 64}, .bytes = 192}));
  EXPECT_FALSE(has_overlap(blocks, {.offsets = {0, 128}, .bytes = 256}));
}

std::size_t peak(const std::vector<Block>& blocks) {
  std::size_t largest = 0;
  for (std::size_t time = 0; time < 64; ++time) {
    std::size_t alive = 0;
    for (const auto& block : blocks) {
      if (block.first <= time && time <= block.last) alive += block.bytes;
    }
    largest = std::max(largest, alive);
  }
  return largest;
}

TEST(Arena, random_blocks_never_overlap_and_fit_close_to_the_peak) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    RandomStream random(seed, 0);
    std::vector<Block> blocks(static_cast<std::size_t>(random.below(60)));
    std::size_t sum = 0;
    for (auto& block : blocks) {
      block.bytes = static_cast<std::size_t>(random.below(32)) * kAlignment;
      block.first = static_cast<std::size_t>(random.below(40));
      block.last = block.first + static_cast<std::size_t>(random.below(12));
      sum += block.bytes;
    }
    const auto packing = pack_arena(blocks);
    EXPECT_FALSE(has_overlap(blocks, packing)) << "seed " << seed;
    EXPECT_LE(packing.bytes, sum);
    EXPECT_GE(packing.bytes, peak(blocks));
    EXPECT_LE(packing.bytes, peak(blocks) * 2) << "seed " << seed;
  }
}

/// Blocks of a random plan: activations of all durations, and scratch at the start.
std::vector<Block> random_blocks(std::uint64_t seed) {
  RandomStream random(seed, 0);
  std::vector<Block> blocks(static_cast<std::size_t>(random.below(120)));
  for (auto& block : blocks) {
    block.bytes = static_cast<std::size_t>(random.below(32)) * (seed % 2 == 0 ? kAlignment : 17);
    block.first = static_cast<std::size_t>(random.below(60));
    block.last = block.first + static_cast<std::size_t>(random.below(seed % 5 == 0 ? 60 : 9));
  }
  for (std::size_t time = 0; time < 30; time += 2) {
    blocks.push_back({static_cast<std::size_t>(random.below(500)), time, time, true});
  }
  return blocks;
}

bool lie_apart(const Block& a, std::size_t a_offset, const Block& b, std::size_t b_offset) {
  return a.last < b.first || b.last < a.first || a_offset + a.bytes <= b_offset ||
         b_offset + b.bytes <= a_offset;
}

/// The rule of arena.h in its plainest form: each block is compared with all placed ones.
std::size_t plain_offset(const Block& block, const std::vector<Block>& blocks,
                         const std::vector<std::size_t>& placed,
                         const std::vector<std::size_t>& offsets) {
  std::size_t best = 0, best_gap = 0, end = 0;
  for (const auto i : placed) {  // in ascending order of offsets
    const auto& other = blocks[i];
    if (other.last < block.first || block.last < other.first) continue;
    const auto gap = offsets[i] > end ? offsets[i] - end : 0;
    if (gap > 0 && gap >= block.bytes && (best_gap == 0 || gap < best_gap)) {
      best = end;
      best_gap = gap;
    }
    end = std::max<std::size_t>(end,
                                offsets[i] + round_up(static_cast<std::int64_t>(other.bytes), 64));
  }
  return best_gap == 0 ? end : best;
}

Packing plain_packing(const std::vector<Block>& blocks, auto&& key) {
  std::vector<std::size_t> order(blocks.size()), placed;
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>{}, [&](auto i) { return blocks[i].bytes; });
  std::ranges::stable_sort(order, std::greater<>{}, [&](auto i) { return key(blocks[i]); });
  std::ranges::stable_partition(order, [&](auto i) { return blocks[i].at_start; });
  Packing packing{.offsets = std::vector<std::size_t>(blocks.size(), 0), .bytes = 0};
  for (const auto i : order) {
    if (blocks[i].bytes == 0) continue;
    auto& offset = packing.offsets[i];
    if (!blocks[i].at_start) offset = plain_offset(blocks[i], blocks, placed, packing.offsets);
    packing.bytes = std::max<std::size_t>(
        packing.bytes, offset + round_up(static_cast<std::int64_t>(blocks[i].bytes), 64));
    placed.insert(std::ranges::upper_bound(placed, offset, {},
                                           [&](auto other) { return packing.offsets[other]; }),
                  i);
  }
  return packing;
}

TEST(Arena, every_offset_is_that_of_the_plain_rule) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto blocks = random_blocks(seed);
    auto best = plain_packing(blocks, [](const Block& block) { return block.bytes; });
    auto other = plain_packing(blocks, [](const Block& block) { return block.last - block.first; });
    if (other.bytes < best.bytes) best = std::move(other);
    const auto packing = pack_arena(blocks);
    EXPECT_EQ(packing.bytes, best.bytes) << "seed " << seed;
    EXPECT_EQ(packing.offsets, best.offsets) << "seed " << seed;
  }
}

TEST(Arena, an_overlap_is_found_among_many) {
  int overlaps = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const auto blocks = random_blocks(seed);
    auto packing = pack_arena(blocks);
    RandomStream random(seed, 1);
    const auto moved = static_cast<std::size_t>(random.below(std::ssize(blocks)));
    packing.offsets[moved] = static_cast<std::size_t>(random.below(40)) * kAlignment;
    bool meets = false;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      meets = meets ||
              (i != moved && blocks[i].bytes > 0 && blocks[moved].bytes > 0 &&
               !lie_apart(blocks[i], packing.offsets[i], blocks[moved], packing.offsets[moved]));
    }
    EXPECT_EQ(has_overlap(blocks, packing), meets) << "seed " << seed;
    overlaps += meets ? 1 : 0;
  }
  EXPECT_GT(overlaps, 50);
  EXPECT_LT(overlaps, 350);
}

}  // namespace
}  // namespace triptych
