// SPDX-License-Identifier: Apache-2.0
#include "core/base/quantized_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/random.h"

namespace triptych {
namespace {

constexpr auto kMost = std::numeric_limits<std::int32_t>::max();
constexpr auto kLeast = std::numeric_limits<std::int32_t>::min();

TEST(QuantizedMath, rounds_ties_to_even) {
  EXPECT_EQ(quantize_to_i8(0.5F, 1), 0);
  EXPECT_EQ(quantize_to_i8(1.5F, 1), 2);
  EXPECT_EQ(quantize_to_i8(-2.5F, 1), -2);
  EXPECT_EQ(quantize_to_i8(-3.5F, 1), -4);
}

TEST(QuantizedMath, agrees_with_the_standard_library_on_random_numbers) {
  RandomStream random(3, 0);
  for (int i = 0; i < 100000; ++i) {
    const float x = random.uniform(-4, 4), scale = random.uniform(0.001F, 0.1F);
    const float expected = std::fmin(std::fmax(std::nearbyint(x / scale), -128.0F), 127.0F);
    ASSERT_EQ(quantize_to_i8(x, scale), static_cast<std::int8_t>(expected)) << x << " " << scale;
  }
}

TEST(QuantizedMath, cuts_what_int8_cannot_hold) {
  EXPECT_EQ(quantize_to_i8(std::numeric_limits<float>::infinity(), 1), 127);
  EXPECT_EQ(quantize_to_i8(-1e30F, 1), -128);
  EXPECT_EQ(quantize_to_i8(std::numeric_limits<float>::quiet_NaN(), 1), 0);
  EXPECT_EQ(saturate_to_i8(128), 127);
  EXPECT_EQ(saturate_to_i8(std::numeric_limits<std::int64_t>::min()), -128);
}

TEST(QuantizedMath, requantises_to_the_nearest_with_halves_upwards) {
  EXPECT_EQ(requantize(3, 1, 1), 2);    // 1.5
  EXPECT_EQ(requantize(-3, 1, 1), -1);  // -1.5
  EXPECT_EQ(requantize(5, 1, 2), 1);    // 1.25
  EXPECT_EQ(requantize(-7, 3, 4), -1);  // -1.3125
}

TEST(QuantizedMath, requantises_the_ends_of_every_range_without_overflow) {
  EXPECT_EQ(requantize(kLeast, kLeast, 62), 1);
  EXPECT_EQ(requantize(kMost, kLeast, 62), -1);
  EXPECT_EQ(requantize(kLeast, kLeast, 1), std::int64_t{1} << 61);
  EXPECT_EQ(requantize(100, 3, 0), requantize(100, 3, 1));
  EXPECT_EQ(requantize(100, 3, kMost), requantize(100, 3, 62));
}

TEST(QuantizedMath, adds_modulo_two_to_the_32) {
  EXPECT_EQ(wrapping_add(kMost, 1), kLeast);
  EXPECT_EQ(wrapping_add(kLeast, -1), kMost);
}

}  // namespace
}  // namespace triptych
