// Rows copied in vectors: every element where it belongs, nothing read or written beyond.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/windows/copy_rows.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace triptych::cpu {
namespace {

template <class T>
void expect_copied(const RowCopy& copy) {
  SCOPED_TRACE(fmt::format("{} x {}, step {}, to rows of {}", copy.rows, copy.columns, copy.step,
                           copy.to_stride));
  const auto size = [&](std::int64_t stride, std::int64_t step) {
    const auto last = (copy.rows - 1) * stride + (copy.columns - 1) * step;
    return static_cast<std::size_t>(copy.rows > 0 && copy.columns > 0 ? last + 1 : 0);
  };
  // As long as needed and no longer: a sanitizer sees accesses beyond it.
  std::vector<T> from(size(copy.from_stride, copy.step)), to(size(copy.to_stride, 1), T{77});
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<T>(i % 71);
  auto expected = to;
  for (std::int64_t r = 0; r < copy.rows; ++r) {
    for (std::int64_t c = 0; c < copy.columns; ++c) {
      expected[static_cast<std::size_t>(r * copy.to_stride + c)] =
          from[static_cast<std::size_t>(r * copy.from_stride + c * copy.step)];
    }
  }
  copy_rows(from.data(), copy, to.data());
  EXPECT_EQ(to, expected);
}

TEST(CopyRows, every_element_goes_where_it_belongs) {
  for (const std::int64_t step : {1, 2, 4}) {
    for (std::int64_t columns = 0; columns < 70; ++columns) {
      for (const std::int64_t gap : {0, 3}) {
        const RowCopy copy = {.rows = 3,
                              .columns = columns,
                              .from_stride = columns * step + gap,
                              .to_stride = columns + 2 * gap,
                              .step = step};
        expect_copied<float>(copy);
        expect_copied<std::int8_t>(copy);
      }
    }
    expect_copied<float>({.rows = 0, .columns = 5, .from_stride = 5, .to_stride = 5});
  }
}

}  // namespace
}  // namespace triptych::cpu
