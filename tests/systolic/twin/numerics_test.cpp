// The portable arithmetic against the processor's own, and the chains of the array against both.
// SPDX-License-Identifier: Apache-2.0
#include "systolic/twin/numerics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
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

/// A few positions and strips with operands near a random exponent, in rows of any stride.
void compare_chains(std::mt19937& random) {
  const int middle = static_cast<int>(random() % 256);
  const auto draw = [&] {
    const int exponent = std::clamp(middle + static_cast<int>(random() % 12) - 6, 0, 255);
    return from_bf16(
        static_cast<std::uint16_t>((random() & 0x807F) | static_cast<unsigned>(exponent) << 7));
  };
  const auto size = [&](std::uint32_t most) {
    return 1 + static_cast<std::uint32_t>(random() % most);
  };
  const std::uint32_t rows = size(20), positions = size(20), first = size(3);
  std::vector<Vector> weights(4 * rows);
  for (Vector& vector : weights) std::ranges::generate(vector.lanes, draw);
  std::vector<float> x(std::size_t{positions} * rows);
  std::ranges::generate(x, draw);
  std::vector<Strip> strips;
  for (std::uint32_t i = 0, most = size(4); i < most; ++i)
    strips.push_back({weights.data() + i * rows, 30 * i, 16 * (i % 2), size(kStrip)});
  Accumulators accumulators{2 * kStrip, std::vector<Vector>(2 * 120), {}};
  for (Vector& vector : accumulators.real) std::ranges::generate(vector.lanes, draw);
  Accumulators expected = accumulators;
  const bool transposed = random() % 2 == 0, accumulate = random() % 2 == 0;
  const std::ptrdiff_t stride = transposed ? 1 : rows, step = transposed ? positions : 1;
  for (const Strip& strip : strips)
    for (std::uint32_t m = 0; m < positions; ++m)
      for (std::uint32_t c = 0; c < strip.columns; ++c) {
        float& chain = expected.real_at(strip.accumulator + first + m)[strip.first + c];
        if (!accumulate) chain = 0;
        for (std::uint32_t r = 0; r < rows; ++r)
          chain = soft_fma(x[static_cast<std::size_t>(m * stride + r * step)],
                           strip.weights[r].lanes[c], chain);
      }
  {
    const FlushSubnormals flush_subnormals;
    multiply_bf16({{x.data(), stride, step, positions}, strips, rows, accumulate, first},
                  accumulators);
  }
  ASSERT_EQ(std::memcmp(accumulators.real.data(), expected.real.data(),
                        expected.real.size() * sizeof(Vector)),
            0);
}

TEST(Numerics, the_arrays_chains_are_those_of_the_portable_arithmetic) {
  std::mt19937 random(5);
  for (int i = 0; i < 3000; ++i) compare_chains(random);
}

}  // namespace
}  // namespace triptych::mmu
