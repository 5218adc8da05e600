// Random windows for convolutions and pooling.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/conv_geometry.h"
#include "tests/conformance/random/grower.h"

namespace triptych::conformance {

/// Changes one number of a window without auto_pad by 1: a size of `kernel`, a stride, a dilation
/// or a pad. Kernels that are specialised for the window must notice. The image has 3 positions an
/// axis.
void change_one_number(Grower& grower, std::vector<std::int64_t>& kernel, WindowAttributes& window);

/// Fills the attributes such that at least one window fits an input of these spatial sizes, and
/// returns the kernel's sizes. `pooling`: no window lies wholly in the padding, and kernel_shape is
/// set.
std::vector<std::int64_t> some_window(Grower& grower, const std::vector<std::int64_t>& spatial,
                                      bool pooling, WindowAttributes& window);

}  // namespace triptych::conformance
