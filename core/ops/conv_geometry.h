// The geometry that convolution, its gradients and pooling share: attributes resolved against
// shapes, one-dimensional problems lifted to two dimensions (height 1).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/shape.h"

namespace triptych {

/// The spatial attributes that ONNX's Conv, ConvTranspose and pooling operators have in common.
/// Empty lists mean ONNX's defaults (all ones, or zeros for pads). pads: begins, then ends.
struct WindowAttributes {
  std::vector<std::int64_t> kernel_shape;
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> pads;
  std::vector<std::int64_t> dilations;
  std::string auto_pad = "NOTSET";  ///< NOTSET, VALID, SAME_UPPER or SAME_LOWER

  /// Visits the five members of `self`, an operator that derives from this struct.
  static void visit_window(auto& self, auto& visitor) {
    visitor("kernel_shape", self.kernel_shape);
    visitor("strides", self.strides);
    visitor("pads", self.pads);
    visitor("dilations", self.dilations);
    visitor("auto_pad", self.auto_pad);
  }
  bool operator==(const WindowAttributes&) const = default;
};

/// A window that slides over one image plane. Output position o covers input positions
/// o * stride - pad_begin + tap * dilation. Index 0 is height, 1 is width.
struct Window {
  std::int64_t in[2] = {1, 1};
  std::int64_t out[2] = {1, 1};
  std::int64_t kernel[2] = {1, 1};
  std::int64_t stride[2] = {1, 1};
  std::int64_t dilation[2] = {1, 1};
  std::int64_t pad_begin[2] = {0, 0};
  std::int64_t pad_end[2] = {0, 0};

  bool is_pointwise() const;  ///< 1x1, stride 1, no padding
};

/// Resolves the window of a Conv or pooling operator. `spatial` holds the input's 1 or 2 spatial
/// sizes, `kernel` the window's. Throws InvalidArgument "[op] ..." for strides, dilations or
/// kernels below 1, negative pads, lists of the wrong length, an unknown auto_pad, or a window
/// larger than the padded input. `ceil_mode` as in ONNX pooling: the last window may hang over the
/// padding, but must start inside input or begin padding.
Window resolve_window(std::string_view op, const WindowAttributes& attributes,
                      const std::vector<std::int64_t>& spatial,
                      const std::vector<std::int64_t>& kernel, bool ceil_mode = false);

/// A whole convolution. x: [batch, in_channels, in], w: [out_channels, in_channels / groups,
/// kernel], y: [batch, out_channels, out].
struct ConvGeometry {
  std::int64_t batch = 1;
  std::int64_t in_channels = 1;
  std::int64_t out_channels = 1;
  std::int64_t groups = 1;
  Window window;

  std::int64_t in_plane() const { return window.in[0] * window.in[1]; }
  std::int64_t out_plane() const { return window.out[0] * window.out[1]; }
  std::int64_t taps() const { return window.kernel[0] * window.kernel[1]; }
  std::int64_t group_in() const { return in_channels / groups; }
  std::int64_t group_out() const { return out_channels / groups; }
  /// Multiply-adds of the forward pass, padding included.
  double macs() const;
};

}  // namespace triptych
