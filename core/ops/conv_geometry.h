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
  /// True when the patches are disjoint tiles of several positions that cover the input.
  bool makes_tiles() const;
  std::int64_t taps() const { return kernel[0] * kernel[1]; }
  /// Input positions from the first to the last tap along `axis`.
  std::int64_t extent(int axis) const { return (kernel[axis] - 1) * dilation[axis] + 1; }
  /// Splits `total` padding of `axis`. `upper` puts the odd one at the end.
  void split_padding(int axis, std::int64_t total, bool upper);
};

/// Calls visit(output, input, tap), each a flat row-major index, for every tap of every output
/// position that meets the input. Outputs ascend, and taps ascend within an output.
template <class Visitor>
void for_each_tap(const Window& w, Visitor&& visit) {
  for (std::int64_t oy = 0; oy < w.out[0]; ++oy) {
    for (std::int64_t ox = 0; ox < w.out[1]; ++ox) {
      for (std::int64_t ky = 0; ky < w.kernel[0]; ++ky) {
        const auto iy = oy * w.stride[0] - w.pad_begin[0] + ky * w.dilation[0];
        if (iy < 0 || iy >= w.in[0]) continue;
        for (std::int64_t kx = 0; kx < w.kernel[1]; ++kx) {
          const auto ix = ox * w.stride[1] - w.pad_begin[1] + kx * w.dilation[1];
          if (ix < 0 || ix >= w.in[1]) continue;
          visit(oy * w.out[1] + ox, iy * w.in[1] + ix, ky * w.kernel[1] + kx);
        }
      }
    }
  }
}

/// The sizes of an image tensor [N, C, (H,) W] behind its channels.
std::vector<std::int64_t> spatial_sizes(const Shape& shape);

/// [batch, channels, plane], with one spatial axis when `rank` is 3.
Shape image_shape(std::int64_t rank, std::int64_t batch, std::int64_t channels,
                  const std::int64_t (&plane)[2]);

/// Throws unless `shape` is [N, C, W] or [N, C, H, W] and not empty. `operand` names it.
void require_image(std::string_view op, std::string_view operand, const Shape& shape);

/// The attributes lifted to two dimensions. `in`, `out` and the padding of an auto_pad are left
/// open. Throws InvalidArgument as resolve_window does.
Window window_steps(std::string_view op, const WindowAttributes& attributes,
                    const std::vector<std::int64_t>& kernel);

/// `window` as explicit attributes for operands of this rank (3 or 4).
WindowAttributes explicit_attributes(const Window& window, std::int64_t rank);

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
  std::int64_t taps() const { return window.taps(); }
  std::int64_t group_in() const { return in_channels / groups; }
  std::int64_t group_out() const { return out_channels / groups; }
  /// Multiply-adds of the forward pass, padding included.
  double macs() const;
};

/// Does the activation of `op` cut its results at 0? Operators without one have none.
bool has_relu(const auto& op) {
  if constexpr (requires { op.activation; }) return op.activation == "relu";
  return false;
}

/// Throws InvalidArgument unless x [N, C, (H,) W] and w [first, second, (kh,) kw] have one rank, no
/// size 0, `groups` divides w's first size, and a given kernel_shape is w's.
void require_conv_operands(std::string_view op, const WindowAttributes& attributes,
                           std::int64_t groups, const Shape& x, const Shape& w);

/// The geometry of Conv for these operands. Throws InvalidArgument when they do not fit.
ConvGeometry conv_geometry(std::string_view op, const WindowAttributes& attributes,
                           std::int64_t groups, const Shape& x, const Shape& w);

/// Calls visit(y, x, w), flat indices into the three operands, for every multiply-add of a
/// convolution but those with the padding.
template <class Visitor>
void for_each_mac(const ConvGeometry& g, Visitor&& visit) {
  for (std::int64_t n = 0; n < g.batch; ++n) {
    for (std::int64_t o = 0; o < g.out_channels; ++o) {
      for (std::int64_t c = 0; c < g.group_in(); ++c) {
        const auto x_channel = n * g.in_channels + o / g.group_out() * g.group_in() + c;
        const auto y0 = (n * g.out_channels + o) * g.out_plane();
        const auto w0 = (o * g.group_in() + c) * g.taps();
        for_each_tap(g.window, [&](std::int64_t p, std::int64_t q, std::int64_t t) {
          visit(y0 + p, x_channel * g.in_plane() + q, w0 + t);
        });
      }
    }
  }
}

/// y = x convolved by w, in float64. `y` has its size.
void convolve(const ConvGeometry& g, const std::vector<double>& x, const std::vector<double>& w,
              std::vector<double>& y);

/// The same for the transpose of that convolution, which has `y` as input here and `x` as output.
void convolve_transposed(const ConvGeometry& g, const std::vector<double>& y,
                         const std::vector<double>& w, std::vector<double>& x);

}  // namespace triptych
