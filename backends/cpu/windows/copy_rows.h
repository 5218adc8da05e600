// Rows copied from plane to plane: few elements each, so that the treatment of the last ones
// matters.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace triptych::cpu {

/// Rows of `columns` elements: element c of row r comes from r * from_stride + c * step and goes to
/// r * to_stride + c.
struct RowCopy {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t from_stride = 0;
  std::int64_t to_stride = 0;
  std::int64_t step = 1;  ///< 1, 2 or 4
};

void copy_rows(const float* from, const RowCopy& copy, float* to);

template <class T>
void copy_rows(const T* from, const RowCopy& copy, T* to) {
  for (std::int64_t r = 0; r < copy.rows; ++r) {
    for (std::int64_t c = 0; c < copy.columns; ++c) {
      to[r * copy.to_stride + c] = from[r * copy.from_stride + c * copy.step];
    }
  }
}

}  // namespace triptych::cpu
