// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/tiles/tile_unit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "backends/cpu/tiles/store_rows.h"
#include "core/base/exact_math.h"
#include "core/base/float16.h"
#include "core/base/quantized_math.h"
#include "core/base/random.h"

namespace triptych::cpu {
namespace {

using Words = std::vector<TileWord>;

enum class Values { Plain, Small, Special, Int8 };

/// Random elements.
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
  if (values == Values::Int8) return static_cast<TileWord>(random());
  const auto low = half();
  return low | half() << 16;
}

struct TileProblem {
  std::int64_t depth = 16, steps = 3, row_blocks = 2, column_blocks = 2;
  Values values = Values::Plain;
  bool accumulate = false;
  TileNumbers numbers = TileNumbers::Bf16;
};

template <class T>
const std::byte* bytes(const std::vector<T>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

/// Sums of a random product, as bits.
std::vector<std::uint32_t> sums_of(const TileProblem& problem, TileUnit::Kind kind) {
  std::mt19937 random(7);
  const auto words = [&](std::int64_t count) {
    Words result(static_cast<std::size_t>(count));
    for (auto& word : result) word = random_word(random, problem.values);
    return result;
  };
  // Lines and steps lie apart by odd numbers of words, and by halves of one in a.
  const auto a_line = problem.depth + 3, b_line = problem.column_blocks * kTileColumns + 5;
  const auto a = words(kMostTileRowBlocks * kTileRows * a_line + 7 * problem.steps);
  const auto b = words((problem.depth + problem.steps) * b_line);
  std::vector<std::int64_t> a_steps, b_steps;
  for (std::int64_t step = 0; step < problem.steps; ++step) {
    a_steps.push_back(step * 26);
    b_steps.push_back(step * (b_line - 4) * 4);
  }
  const auto stride = problem.column_blocks * kTileColumns;
  std::vector<float> sums(static_cast<std::size_t>(problem.row_blocks * kTileRows * stride), 0.5F);
  TileUnit(problem.numbers, problem.depth, kind)
      .multiply({.a = {bytes(a), a_steps, a_line * 4, kTileRows * a_line * 4},
                 .b = {bytes(b), b_steps, b_line * 4, kTileColumns * 4},
                 .sums = sums.data(),
                 .sums_stride = stride,
                 .row_blocks = problem.row_blocks,
                 .column_blocks = problem.column_blocks,
                 .accumulate = problem.accumulate});
  std::vector<std::uint32_t> bits;
  const bool floats = problem.numbers == TileNumbers::Bf16;
  for (const float sum : sums)
    bits.push_back(floats && std::isnan(sum) ? 0x7FC00000U : std::bit_cast<std::uint32_t>(sum));
  return bits;
}

TEST(TileUnit, TheStandInHasTheBitsOfTheHardware) {
  if (!tile_unit_missing().empty()) GTEST_SKIP() << tile_unit_missing();
  for (const auto values : {Values::Plain, Values::Small, Values::Special, Values::Int8})
    for (const std::int64_t depth : {1, 2, 7, 16})
      for (const std::int64_t rows : {1, 2, 3, 4})
        for (const std::int64_t columns : {1, 2})
          for (const std::int64_t steps : {1, 9}) {
            if (rows > 2 && columns > 1) continue;
            TileProblem problem = {depth, steps, rows, columns, values, steps > 1};
            if (values == Values::Int8) problem.numbers = TileNumbers::Int8;
            EXPECT_EQ(sums_of(problem, TileUnit::Kind::Hardware),
                      sums_of(problem, TileUnit::Kind::StandIn))
                << "depth " << depth << ", blocks " << rows << " x " << columns << ", steps "
                << steps;
          }
}

/// The sum that starts at `start` after one step of two products, as bits.
std::uint32_t sum_of_two(float start, const std::array<float, 2>& x, const std::array<float, 2>& y,
                         TileUnit::Kind kind) {
  const auto word = [](const std::array<float, 2>& pair) {
    return TileWord{bf16_bits(pair[0])} | TileWord{bf16_bits(pair[1])} << 16;
  };
  const Words a(16, word(x)), b(16, word(y));
  const std::int64_t step = 0;
  std::vector<float> sums(256, start);
  TileUnit(TileNumbers::Bf16, 1, kind)
      .multiply({.a = {bytes(a), {&step, 1}, 4, 0},
                 .b = {bytes(b), {&step, 1}, 64, 0},
                 .sums = sums.data(),
                 .sums_stride = 16,
                 .accumulate = true});
  return std::bit_cast<std::uint32_t>(sums[17]);
}

TEST(StoreRows, RoundsFinishedSumsAndLeavesOtherElementsAlone) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = exact::kInfinity;
  const float sums[] = {1.00390625F, -2, 0x1p-130F, nan, 1.01171875F, -infinity, -0x1p-127F, 7};
  const float bias[] = {0, 1, 0};
  for (const auto kind : {TileUnit::Kind::StandIn, tile_unit_kind()}) {
    std::vector<std::uint16_t> to(10, 0xABCD);
    store_rows({.sums = sums, .sums_stride = 4, .positions = 2, .channels = 3, .bias = bias},
               to.data() + 1, 5, kind);
    EXPECT_EQ(to, (std::vector<std::uint16_t>{0xABCD, 0x3F80, 0xBF80, 0, 0xABCD, 0xABCD, 0x3F82,
                                              0xFF80, 0x8000, 0xABCD}));
    store_rows({.sums = sums, .sums_stride = 4, .positions = 2, .channels = 4, .relu = true},
               to.data(), 4, kind);
    EXPECT_EQ((std::vector(to.begin(), to.begin() + 3)),
              (std::vector<std::uint16_t>{0x3F80, 0, 0}));
    EXPECT_TRUE(std::isnan(bf16_to_float(to[3])));
    EXPECT_EQ(to[7], bf16_bits(7));
  }
}

TEST(StoreRows, TheStandInHasTheBitsOfTheHardware) {
  if (!tile_unit_missing().empty()) GTEST_SKIP() << tile_unit_missing();
  RandomStream random(3, 1);
  std::vector<float> sums(7 * 40), bias(40);
  for (const std::int64_t channels : {1, 8, 15, 16, 17, 31, 32, 33, 40}) {
    for (auto& sum : sums) sum = std::bit_cast<float>(random.bits());
    for (auto& sum : sums) sum = std::isnan(sum) ? 1 : sum;
    for (auto& value : bias) value = random.uniform(-1, 1);
    for (const bool relu : {false, true}) {
      for (const bool has_bias : {false, true}) {
        const SumRows rows = {.sums = sums.data(),
                              .sums_stride = 40,
                              .positions = 7,
                              .channels = channels,
                              .bias = has_bias ? bias.data() : nullptr,
                              .relu = relu};
        std::vector<std::uint16_t> hardware(7 * 41, 0xABCD), stand_in = hardware;
        store_rows(rows, hardware.data(), 41, TileUnit::Kind::Hardware);
        store_rows(rows, stand_in.data(), 41, TileUnit::Kind::StandIn);
        EXPECT_EQ(hardware, stand_in) << channels << " channels, relu " << relu;
      }
    }
  }
}

TEST(StoreRows, IntegersHaveTheBitsOfTheFormula) {
  RandomStream random(3, 2);
  const auto word = [&] { return std::bit_cast<std::int32_t>(random.bits()); };
  std::vector<std::int32_t> sums(5 * 40), bias(40), multiplier(40), shift(40);
  for (const std::int64_t channels : {1, 8, 15, 16, 17, 33, 40}) {
    // Shifts below 22, all of them, and those that the vectors compute by upper halves.
    for (const auto& [wide, first_shift, shifts] :
         {std::tuple(false, -2, 22), std::tuple(true, -2, 70), std::tuple(true, 32, 31)}) {
      for (auto& sum : sums) sum = wide ? word() : word() >> 16;
      for (auto& value : bias) value = wide ? word() : word() >> 18;
      for (auto& value : multiplier) value = wide ? word() : word() & 0xFFF;
      for (auto& value : shift) {
        value = first_shift + static_cast<std::int32_t>(random.below(shifts));
      }
      for (const bool relu : {false, true}) {
        for (const auto kind : {TileUnit::Kind::StandIn, tile_unit_kind()}) {
          std::vector<std::int8_t> to(5 * 41, 99), expected = to;
          for (std::size_t i = 0; i < 5; ++i) {
            for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
              const auto value =
                  requantize(wrapping_add(sums[i * 40 + c], bias[c]), multiplier[c], shift[c]);
              expected[i * 41 + c] =
                  saturate_to_i8(relu ? std::max<std::int64_t>(value, 0) : value);
            }
          }
          const IntegerRows rows = {.sums = sums.data(),
                                    .sums_stride = 40,
                                    .positions = 5,
                                    .channels = channels,
                                    .bias = bias.data(),
                                    .multiplier = multiplier.data(),
                                    .shift = shift.data(),
                                    .relu = relu};
          store_rows(rows, to.data(), 41, kind);
          EXPECT_EQ(to, expected) << channels << " channels, relu " << relu;
        }
      }
    }
  }
}

TEST(TileUnit, ResultsAroundTheSmallestNormalAreFlushedAsByTheHardware) {
  if (!tile_unit_missing().empty()) GTEST_SKIP() << tile_unit_missing();
  const float starts[] = {0, -0x1p-127F, 0x1p-126F, -0x1p-126F, 0x1.8p-126F};
  const std::array<float, 2> factors[] = {
      {0x1p-63F, -0x1p-75F}, {0x1p-63F, 0x1p-75F}, {-0x1p-63F, 0x1p-76F}, {0x1.8p-63F, -0x1p-63F}};
  for (const float start : starts)
    for (const auto& x : factors)
      for (const auto& y : {std::array{0x1p-63F, 0x1p-75F}, std::array{0x1p-63F, 0x1p-63F}})
        EXPECT_EQ(sum_of_two(start, x, y, TileUnit::Kind::Hardware),
                  sum_of_two(start, x, y, TileUnit::Kind::StandIn))
            << start << ' ' << x[0] << ' ' << x[1] << ' ' << y[1];
}

TEST(TileUnit, SubnormalOperandsCountAsZero) {
  const Words one(16, 0x3F80);
  const std::int64_t step = 0;
  for (const auto& [bits, expected] : {std::pair{0x0001U, 0.0F}, {0x0080U, 0x1p-126F}}) {
    const Words smallest(16, bits);
    float sums[16 * 16];
    TileUnit(TileNumbers::Bf16, 1, tile_unit_kind())
        .multiply({.a = {bytes(one), {&step, 1}, 4, 0},
                   .b = {bytes(smallest), {&step, 1}, 64, 0},
                   .sums = sums,
                   .sums_stride = 16});
    EXPECT_EQ(sums[17], expected);
  }
}

}  // namespace
}  // namespace triptych::cpu
