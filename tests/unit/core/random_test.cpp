// SPDX-License-Identifier: Apache-2.0
#include "core/base/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace triptych {
namespace {

using testing::ElementsAre;

constexpr int kDraws = 20000;

// The known answers of the authors' library, Random123 (kat_vectors, philox4x32 10).
TEST(Philox, gives_the_published_answers) {
  EXPECT_THAT(philox4x32({0, 0, 0, 0}, {0, 0}).words,
              ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
  const auto ones = ~0u;
  EXPECT_THAT(philox4x32({ones, ones, ones, ones}, {ones, ones}).words,
              ElementsAre(0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu));
  EXPECT_THAT(
      philox4x32({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u})
          .words,
      ElementsAre(0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u));
}

TEST(RandomBits, take_four_numbers_from_each_block) {
  const auto block = philox4x32({5, 0, 7, 0}, {3, 0});
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(random_bits(3, 7, 20 + i), block[i]);
}

TEST(RandomBits, use_all_64_bits_of_seed_stream_and_index) {
  const auto bits = random_bits(1, 2, 3);
  const std::uint64_t high = std::uint64_t{1} << 40;
  EXPECT_NE(random_bits(1 + high, 2, 3), bits);
  EXPECT_NE(random_bits(1, 2 + high, 3), bits);
  EXPECT_NE(random_bits(1, 2, 3 + high), bits);
}

TEST(RandomStream, follows_the_index) {
  RandomStream stream(9, 4);
  for (std::uint64_t i = 0; i < 10; ++i) EXPECT_EQ(stream.bits(), random_bits(9, 4, i));
}

TEST(RandomStream, stays_in_range_and_fills_it) {
  RandomStream stream(1, 1);
  double sum = 0;
  std::array<int, 5> counts{};
  for (int i = 0; i < kDraws; ++i) {
    const float uniform = stream.uniform();
    ASSERT_GE(uniform, 0.0F);
    ASSERT_LT(uniform, 1.0F);
    sum += uniform;
    ++counts.at(static_cast<std::size_t>(stream.below(5)));
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.02);
  for (const int count : counts) EXPECT_NEAR(count, kDraws / 5.0, kDraws / 50.0);
}

TEST(RandomStream, draws_standard_normals) {
  RandomStream stream(1, 2);
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = stream.normal();
    ASSERT_TRUE(std::isfinite(value));
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.03);
  EXPECT_NEAR(squares / kDraws, 1, 0.05);
}

}  // namespace
}  // namespace triptych
