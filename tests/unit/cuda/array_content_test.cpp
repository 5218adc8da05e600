// Written parts of arrays, with units that are a power of two and others.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/plain/array_content.h"

#include <gtest/gtest.h>

namespace triptych::cuda::plain {
namespace {

TEST(ArrayContent, knows_its_units_of_any_size) {
  for (const std::size_t unit : {1U, 4U, 12U, 16U, 24U}) {
    ArrayContent content(10 * unit, unit);
    content.write(3 * unit, 2 * unit);
    EXPECT_FALSE(content.any_written(0, 3 * unit)) << unit;
    EXPECT_TRUE(content.any_written(2 * unit, 2 * unit)) << unit;
    EXPECT_FALSE(content.any_written(5 * unit, 5 * unit)) << unit;
    EXPECT_EQ(content.undefined_in(3 * unit, 2 * unit), std::nullopt) << unit;
    EXPECT_EQ(content.undefined_in(3 * unit, 3 * unit), 5 * unit) << unit;
    EXPECT_EQ(content.undefined_in(2 * unit, unit), 2 * unit) << unit;
  }
}

TEST(ArrayContent, a_part_of_a_unit_is_the_whole_unit) {
  ArrayContent content(64, 12);  // the last unit has four bytes
  content.write(61, 1);
  EXPECT_TRUE(content.any_written(60, 4));
  EXPECT_FALSE(content.any_written(0, 60));
  content.write(13, 12);
  EXPECT_EQ(content.undefined_in(12, 24), std::nullopt);
}

TEST(ArrayContent, may_be_written_as_a_whole) {
  ArrayContent content(64, 4);
  EXPECT_EQ(content.undefined_in(8, 4), 8U);
  content.write_all();
  EXPECT_EQ(content.undefined_in(0, 64), std::nullopt);
  EXPECT_TRUE(content.any_written(8, 4));
}

}  // namespace
}  // namespace triptych::cuda::plain
