// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/tiles/tile_unit.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "core/base/float16.h"
#include "core/tensor/tensor.h"

namespace triptych::cpu {
namespace {

using Words = std::vector<TileWord>;

enum class Values { Plain, Small, Special };

/// Two random bfloat16.
TileWord random_word(std::mt19937& random, Values values) {
  const auto half = [&]() -> TileWord {
    std::normal_distribution<float> normal;
    const auto draw = random() % 16;
    if (values == Values::Special && draw == 0) return 0x7F80;
    if (values == Values::Special && draw == 1) return 0x7FC0;
    const float scale =
        values != Values::Plain ? std::ldexp(1.0F, -static_cast<int>(random() % 80)) : 1;
    return bf16_bits(normal(random) * scale);
  };
  const auto low = half();
  return low | half() << 16;
}

struct TileProblem {
  std::int64_t depth = 16, steps = 3, row_blocks = 2, column_blocks = 2;
  Values values = Values::Plain;
};

/// Sums of a random product, as bits.
std::vector<std::uint32_t> sums_of(const TileProblem& problem, TileUnit::Kind kind) {
  std::mt19937 random(7);
  const auto stride = problem.column_blocks * kTileColumns + 5;
  AlignedBytes a_bytes = allocate_aligned(
      static_cast<std::size_t>(problem.steps * problem.row_blocks * kTileRows * problem.depth * 4));
  auto* a = reinterpret_cast<TileWord*>(a_bytes.get());
  for (std::int64_t i = 0; i < problem.steps * problem.row_blocks * kTileRows * problem.depth; ++i)
    a[i] = random_word(random, problem.values);
  Words b(static_cast<std::size_t>((problem.depth + problem.steps) * stride));
  for (auto& word : b) word = random_word(random, problem.values);
  std::vector<std::int64_t> offsets;
  for (std::int64_t step = 0; step < problem.steps; ++step) offsets.push_back(step * (stride - 4));
  const auto sums_stride = problem.column_blocks * kTileColumns;
  std::vector<float> sums(static_cast<std::size_t>(problem.row_blocks * kTileRows * sums_stride));
  TileUnit(problem.depth, kind)
      .multiply({.a = a,
                 .b = b.data(),
                 .b_offsets = offsets,
                 .b_stride = stride,
                 .sums = sums.data(),
                 .sums_stride = sums_stride,
                 .row_blocks = problem.row_blocks,
                 .column_blocks = problem.column_blocks});
  std::vector<std::uint32_t> bits;
  for (const float sum : sums)
    bits.push_back(std::isnan(sum) ? 0x7FC00000U : std::bit_cast<std::uint32_t>(sum));
  return bits;
}

TEST(TileUnit, TheStandInHasTheBitsOfTheHardware) {
  if (!tile_unit_missing().empty()) GTEST_SKIP() << tile_unit_missing();
  for (const auto values : {Values::Plain, Values::Small, Values::Special})
    for (const std::int64_t depth : {1, 2, 7, 16})
      for (const std::int64_t rows : {1, 2})
        for (const std::int64_t columns : {1, 2})
          for (const std::int64_t steps : {1, 9}) {
            const TileProblem problem = {depth, steps, rows, columns, values};
            EXPECT_EQ(sums_of(problem, TileUnit::Kind::Hardware),
                      sums_of(problem, TileUnit::Kind::StandIn))
                << "depth " << depth << ", blocks " << rows << " x " << columns << ", steps "
                << steps;
          }
}

TEST(TileUnit, SubnormalOperandsCountAsZero) {
  alignas(64) TileWord a[16] = {}, b[16] = {};
  a[0] = 0x3F80;  // 1
  b[0] = 0x0001;  // the smallest subnormal
  const std::int64_t offset = 0;
  float sums[16 * 16];
  TileUnit(1, TileUnit::Kind::StandIn)
      .multiply({.a = a,
                 .b = b,
                 .b_offsets = {&offset, 1},
                 .b_stride = 16,
                 .sums = sums,
                 .sums_stride = 16});
  EXPECT_EQ(sums[0], 0);
  b[0] = 0x0080;  // the smallest normal
  TileUnit(1, TileUnit::Kind::StandIn)
      .multiply({.a = a,
                 .b = b,
                 .b_offsets = {&offset, 1},
                 .b_stride = 16,
                 .sums = sums,
                 .sums_stride = 16});
  EXPECT_EQ(sums[0], 0x1p-126F);
}

}  // namespace
}  // namespace triptych::cpu
