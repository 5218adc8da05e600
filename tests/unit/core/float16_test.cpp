// SPDX-License-Identifier: Apache-2.0
#include "core/base/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace triptych {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Format {
  const char* name;
  std::uint16_t (*round)(float);
  float (*widen)(std::uint16_t);
  std::uint16_t infinity;
  std::uint16_t nan;
};

class SixteenBits : public testing::TestWithParam<Format> {
 protected:
  const Format& format() const { return GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Formats, SixteenBits,
                         testing::Values(Format{"bf16", bf16_bits, bf16_to_float, 0x7F80, 0x7FC0},
                                         Format{"f16", f16_bits, f16_to_float, 0x7C00, 0x7E00}),
                         [](const auto& tested) { return tested.param.name; });

TEST_P(SixteenBits, survive_the_way_to_float_and_back) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto narrow = static_cast<std::uint16_t>(bits);
    const float wide = format().widen(narrow);
    const bool nan = (narrow & 0x7FFF) > format().infinity;
    ASSERT_EQ(std::isnan(wide), nan) << bits;
    ASSERT_EQ(format().round(wide), nan ? format().nan : narrow) << bits;
  }
}

TEST_P(SixteenBits, round_midpoints_to_even_and_the_rest_to_nearest) {
  for (std::uint16_t low = 0; low + 1 < format().infinity; ++low) {
    const auto high = static_cast<std::uint16_t>(low + 1);
    const double middle = (double{format().widen(low)} + double{format().widen(high)}) / 2;
    const auto tie = static_cast<float>(middle);
    if (static_cast<double>(tie) != middle) continue;  // half of float's own smallest step
    const auto even = low % 2 == 0 ? low : high;
    ASSERT_EQ(format().round(tie), even) << low;
    ASSERT_EQ(format().round(-tie), even | 0x8000) << low;
    ASSERT_EQ(format().round(std::nextafter(tie, 0.0F)), low) << low;
    ASSERT_EQ(format().round(std::nextafter(tie, kInfinity)), high) << low;
  }
}

TEST_P(SixteenBits, keep_signs_infinities_and_one_nan) {
  EXPECT_EQ(format().round(-0.0F), 0x8000);
  EXPECT_EQ(format().round(kInfinity), format().infinity);
  EXPECT_EQ(format().round(-kInfinity), format().infinity | 0x8000);
  EXPECT_EQ(format().round(kNaN), format().nan);
  EXPECT_EQ(format().round(-kNaN), format().nan);
  EXPECT_EQ(format().round(std::numeric_limits<float>::max()), format().infinity);
}

TEST(Float16, overflows_from_65520) {
  EXPECT_EQ(f16_bits(65519.996F), 0x7BFF);
  EXPECT_EQ(f16_bits(65520.0F), 0x7C00);
}

TEST(Float16, has_subnormals) {
  EXPECT_EQ(f16_bits(0x1p-24F), 0x0001);
  EXPECT_EQ(f16_bits(0x1p-25F), 0x0000);
  EXPECT_EQ(f16_bits(0x1.8p-25F), 0x0001);
  EXPECT_EQ(f16_to_float(0x03FF), 1023 * 0x1p-24F);
}

TEST(BFloat16, is_the_upper_half_of_a_float) {
  EXPECT_EQ(bf16_bits(1.0F), 0x3F80);
  EXPECT_EQ(bf16_bits(-2.5F), 0xC020);
  EXPECT_EQ(round_to_bf16(1.00390625F), 1.0F);
  EXPECT_EQ(static_cast<float>(BFloat16(0.1F)), 0.10009765625F);
}

}  // namespace
}  // namespace triptych
