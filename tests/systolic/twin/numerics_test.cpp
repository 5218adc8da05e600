// The portable arithmetic against the processor's own, and the chains of the array against both.
// SPDX-License-Identifier: Apache-2.0
#include "systolic/twin/numerics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <random>

#include "systolic/twin/array.h"

namespace triptych::mmu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
float number(std::uint32_t x) { return std::bit_cast<float>(x); }

TEST(Numerics, products_of_subnormals_are_signed_zeros) {
  EXPECT_EQ(bits(soft_fma(number(0x00010000), 1.0F, 0.0F)), 0U);
  EXPECT_EQ(bits(soft_fma(number(0x80010000), 1.0F, -0.0F)), 0x80000000U);
  EXPECT_EQ(bits(soft_fma(-0x1p-70F, 0x1p-70F, -0.0F)), 0x80000000U);
}

TEST(Numerics, what_rounds_up_to_the_smallest_normal_number_stays) {
  // 1 - 2^-25 of the smallest normal number rounds up with 24 bits.
  const float sum = soft_fma(-0x1p-76F, 0x1p-75F, 0x1p-126F);
  EXPECT_EQ(sum, 0x1p-126F);
  EXPECT_EQ(soft_fma(-0x1p-75F, 0x1p-75F, 0x1p-126F), 0.0F);
}

TEST(Numerics, every_nan_is_the_canonical_one) {
  EXPECT_EQ(bits(soft_fma(kInfinity, 0.0F, 1.0F)), kCanonicalNan);
  EXPECT_EQ(bits(soft_add(number(0xFFC12345), 1.0F)), kCanonicalNan);
  EXPECT_EQ(bits(soft_add(kInfinity, -kInfinity)), kCanonicalNan);
}

TEST(Numerics, bf16_rounds_to_nearest_even) {
  EXPECT_EQ(to_bf16(number(0x3F808000)), 0x3F80);
  EXPECT_EQ(to_bf16(number(0x3F818000)), 0x3F82);
  EXPECT_EQ(to_bf16(number(0x3F808001)), 0x3F81);
  EXPECT_EQ(to_bf16(number(0x7F7FFFFF)), 0x7F80);
  EXPECT_EQ(to_bf16(number(0xFFC00001)), 0x7FC0);
  EXPECT_EQ(to_bf16(-0.0F), 0x8000);
}

/// Eight positions of one to sixteen rows with operands near a random exponent.
void compare_chains(std::mt19937& random) {
  const int middle = static_cast<int>(random() % 256);
  const auto draw = [&] {
    const int exponent = std::clamp(middle + static_cast<int>(random() % 12) - 6, 0, 255);
    return static_cast<std::uint16_t>((random() & 0x807F) | static_cast<unsigned>(exponent) << 7);
  };
  Tile tile{1 + static_cast<std::uint32_t>(random() % 16), kVector, {}};
  for (std::uint32_t i = 0; i < tile.rows * kVector; ++i) tile.weights.push_back(from_bf16(draw()));
  std::array<float, 8 * 16> x{};
  for (float& value : x) value = from_bf16(draw());
  Accumulators accumulators{kVector, std::vector<float>(8 * kVector), {}};
  {
    const FlushSubnormals flush_subnormals;
    multiply_bf16({x.data(), 16, 1, 8}, tile, true, 0, accumulators);
  }
  for (std::uint32_t m = 0; m < 8; ++m)
    for (std::uint32_t c = 0; c < kVector; ++c) {
      float chain = 0;
      for (std::uint32_t r = 0; r < tile.rows; ++r)
        chain = soft_fma(x[m * 16 + r], tile.weights[r * kVector + c], chain);
      ASSERT_EQ(bits(accumulators.real[m * kVector + c]), bits(chain));
    }
}

TEST(Numerics, the_arrays_chains_are_those_of_the_portable_arithmetic) {
  std::mt19937 random(5);
  for (int i = 0; i < 3000; ++i) compare_chains(random);
}

}  // namespace
}  // namespace triptych::mmu
