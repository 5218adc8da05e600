// Maxima of windows without a prepared plane: each row of the plane becomes a row of maxima along
// the row, and a row of outputs is the maximum of those. The results have the bits of a chain over
// the taps in their order: among equal numbers the first tap wins, and among NaNs the last.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/ops/conv_geometry.h"

namespace triptych::cpu {

/// True for windows of 2 taps or more along a row and few rows, without dilation, with a stride of
/// 1 or 2 along the row, where each window has an element of the plane and enough of them are
/// wholly inside.
bool takes_max_rows(const Window& window);

/// Floats of memory that max_of_windows needs.
std::int64_t max_rows_floats(const Window& window);

/// y = the maximum of each window over the plane x. `rows`: max_rows_floats().
void max_of_windows(const Window& window, const float* x, float* rows, float* y);

}  // namespace triptych::cpu
