// Random windows for convolutions and pooling.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/conv_geometry.h"
#include "tests/conformance/random/grower.h"

namespace triptych::conformance {

/// Fills the attributes such that at least one window fits an input of these spatial sizes, and
/// returns the kernel's sizes. `pooling`: no window lies wholly in the padding, and kernel_shape is
/// set.
std::vector<std::int64_t> some_window(Grower& grower, const std::vector<std::int64_t>& spatial,
                                      bool pooling, WindowAttributes& window);

}  // namespace triptych::conformance
