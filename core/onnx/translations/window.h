// Attributes of windows that slide over images.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/onnx/node_import.h"
#include "core/ops/conv_geometry.h"

namespace triptych::onnx {

constexpr std::int64_t kVolume = 5;  ///< rank of [N, C, D, H, W]

/// Throws IoError unless all are at least `low`, and so small that no product of two overflows.
void require_range(const NodeImport& n, const char* name, const std::vector<std::int64_t>& list,
                   std::int64_t low);

/// kernel_shape, strides, pads, dilations and auto_pad of the node.
WindowAttributes window_attributes(NodeImport& n);

/// The same for `axes` spatial axes, each list filled with its defaults. auto_pad must be NOTSET.
WindowAttributes filled_window(const NodeImport& n, WindowAttributes window, std::int64_t axes);

/// The window's part for the spatial axes [first, last) of `axes`.
WindowAttributes window_part(const WindowAttributes& window, std::int64_t first, std::int64_t last);

/// The pads that auto_pad stands for, for an image with these spatial sizes.
WindowAttributes resolved_padding(const NodeImport& n, WindowAttributes window, const Dims& sizes,
                                  const Dims& kernel);

}  // namespace triptych::onnx
