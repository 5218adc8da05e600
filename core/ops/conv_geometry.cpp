// SPDX-License-Identifier: Apache-2.0
#include "core/ops/conv_geometry.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/checked_math.h"

namespace triptych {
namespace {

using Sizes = std::vector<std::int64_t>;

/// Largest attribute entry: a product of two of them still fits in 64 bits.
constexpr std::int64_t kLargestEntry = 0x7FFFFFFF;

/// `list` or its default, checked against the required length and the smallest legal entry.
Sizes resolve_list(std::string_view op, std::string_view name, const Sizes& list,
                   const Sizes& fallback, std::int64_t minimum) {
  if (list.empty()) return fallback;
  if (list.size() != fallback.size()) {
    throw_invalid(op, fmt::format("{} {} has {} entries, the operands need {}", name, list,
                                  list.size(), fallback.size()));
  }
  const auto [low, high] = std::minmax_element(list.begin(), list.end());
  if (*low < minimum || *high > kLargestEntry) {
    throw_invalid(
        op, fmt::format("{} {} must lie between {} and {}", name, list, minimum, kLargestEntry));
  }
  return list;
}

/// Fills `out` of one axis, and its padding when `auto_pad` chooses it.
void resolve_axis(std::string_view op, const std::string& auto_pad, bool ceil_mode, int axis,
                  Window& w) {
  const auto stride = w.stride[axis];
  if (auto_pad.starts_with("SAME")) {
    w.out[axis] = ceil_div(w.in[axis], stride);
    const auto covered = checked_add((w.out[axis] - 1) * stride, w.extent(axis));
    w.split_padding(axis, std::max<std::int64_t>(covered - w.in[axis], 0),
                    auto_pad == "SAME_UPPER");
    return;
  }
  const auto from_begin = checked_add(w.in[axis], w.pad_begin[axis]);
  const auto padded = checked_add(from_begin, w.pad_end[axis]);
  const auto slack = padded - w.extent(axis);
  if (slack < 0) {
    throw_invalid(op, fmt::format("the window spans {} positions of axis {}, the padded input has "
                                  "{}; use a smaller kernel or dilation, or more padding",
                                  w.extent(axis), axis == 0 ? "height" : "width", padded));
  }
  w.out[axis] = slack / stride + 1;
  // VALID counts whole windows only, regardless of ceil_mode. So does ONNX.
  const bool hangs_over = ceil_mode && auto_pad == "NOTSET" && slack % stride != 0;
  if (hangs_over && w.out[axis] * stride < from_begin) ++w.out[axis];
}

}  // namespace

bool Window::makes_tiles() const {
  if (taps() == 1) return false;
  for (int axis = 0; axis < 2; ++axis) {
    if (kernel[axis] != stride[axis] || pad_begin[axis] != 0 || dilation[axis] != 1 ||
        in[axis] != out[axis] * stride[axis]) {
      return false;
    }
  }
  return true;
}

bool Window::is_pointwise() const {
  for (int axis = 0; axis < 2; ++axis) {
    if (kernel[axis] != 1 || stride[axis] != 1 || pad_begin[axis] != 0 || pad_end[axis] != 0) {
      return false;
    }
  }
  return true;
}

void Window::split_padding(int axis, std::int64_t total, bool upper) {
  pad_begin[axis] = upper ? total / 2 : total - total / 2;
  pad_end[axis] = total - pad_begin[axis];
}

std::vector<std::int64_t> spatial_sizes(const Shape& shape) {
  return {shape.dims().begin() + 2, shape.dims().end()};
}

Shape image_shape(std::int64_t rank, std::int64_t batch, std::int64_t channels,
                  const std::int64_t (&plane)[2]) {
  if (rank == 3) return {batch, channels, plane[1]};
  return {batch, channels, plane[0], plane[1]};
}

void require_image(std::string_view op, std::string_view operand, const Shape& shape) {
  if (shape.rank() == 3 || shape.rank() == 4) {
    if (shape.elements() > 0) return;
    throw_invalid(op, fmt::format("{} is {}; no size may be 0", operand, to_string(shape)));
  }
  throw_invalid(op, fmt::format("{} is {}; it must have 1 or 2 axes behind its first two", operand,
                                to_string(shape)));
}

Window window_steps(std::string_view op, const WindowAttributes& attributes,
                    const std::vector<std::int64_t>& kernel) {
  const auto& auto_pad = attributes.auto_pad;
  if (auto_pad != "NOTSET" && auto_pad != "VALID" && auto_pad != "SAME_UPPER" &&
      auto_pad != "SAME_LOWER") {
    throw_invalid(op, fmt::format("auto_pad is \"{}\"; it must be NOTSET, VALID, SAME_UPPER or "
                                  "SAME_LOWER",
                                  auto_pad));
  }
  const auto rank = kernel.size();
  if (rank != 1 && rank != 2) {
    throw_invalid(op, fmt::format("kernel_shape {} must have 1 or 2 entries", kernel));
  }
  const Sizes ones(rank, 1);
  resolve_list(op, "kernel_shape", kernel, ones, 1);
  const auto strides = resolve_list(op, "strides", attributes.strides, ones, 1);
  const auto dilations = resolve_list(op, "dilations", attributes.dilations, ones, 1);
  const auto pads = resolve_list(op, "pads", attributes.pads, Sizes(2 * rank, 0), 0);
  if (auto_pad != "NOTSET" && *std::max_element(pads.begin(), pads.end()) > 0) {
    throw_invalid(op, fmt::format("pads {} and auto_pad {} exclude each other", pads, auto_pad));
  }
  Window window;
  for (std::size_t i = 0; i < rank; ++i) {
    const auto axis = i + 2 - rank;
    window.kernel[axis] = kernel[i];
    window.stride[axis] = strides[i];
    window.dilation[axis] = dilations[i];
    window.pad_begin[axis] = pads[i];
    window.pad_end[axis] = pads[i + rank];
  }
  return window;
}

Window resolve_window(std::string_view op, const WindowAttributes& attributes,
                      const std::vector<std::int64_t>& spatial,
                      const std::vector<std::int64_t>& kernel, bool ceil_mode) {
  if (kernel.size() != spatial.size()) {
    throw_invalid(op, fmt::format("kernel_shape {} has {} entries, the input {} spatial axes",
                                  kernel, kernel.size(), spatial.size()));
  }
  auto window = window_steps(op, attributes, kernel);
  for (std::size_t i = 0; i < spatial.size(); ++i) {
    const auto axis = static_cast<int>(i + 2 - spatial.size());
    window.in[axis] = spatial[i];
    resolve_axis(op, attributes.auto_pad, ceil_mode, axis, window);
  }
  return window;
}

WindowAttributes explicit_attributes(const Window& window, std::int64_t rank) {
  WindowAttributes attributes;
  for (auto axis = 4 - rank; axis < 2; ++axis) {
    attributes.kernel_shape.push_back(window.kernel[axis]);
    attributes.strides.push_back(window.stride[axis]);
    attributes.dilations.push_back(window.dilation[axis]);
    attributes.pads.push_back(window.pad_begin[axis]);
  }
  for (auto axis = 4 - rank; axis < 2; ++axis) attributes.pads.push_back(window.pad_end[axis]);
  return attributes;
}

double ConvGeometry::macs() const {
  return static_cast<double>(batch) * static_cast<double>(out_channels) *
         static_cast<double>(out_plane()) * static_cast<double>(group_in()) *
         static_cast<double>(taps());
}

void require_conv_operands(std::string_view op, const WindowAttributes& attributes,
                           std::int64_t groups, const Shape& x, const Shape& w) {
  require_image(op, "x", x);
  require_image(op, "w", w);
  if (x.rank() != w.rank()) {
    throw_invalid(op,
                  fmt::format("x is {}, w is {}; their ranks differ", to_string(x), to_string(w)));
  }
  if (groups < 1 || w[0] % groups != 0) {
    throw_invalid(op, fmt::format("group {} does not divide w's first size, {}", groups, w[0]));
  }
  if (!attributes.kernel_shape.empty() && attributes.kernel_shape != spatial_sizes(w)) {
    throw_invalid(
        op, fmt::format("kernel_shape is {}, w is {}", attributes.kernel_shape, to_string(w)));
  }
}

ConvGeometry conv_geometry(std::string_view op, const WindowAttributes& attributes,
                           std::int64_t groups, const Shape& x, const Shape& w) {
  require_conv_operands(op, attributes, groups, x, w);
  if (x[1] % groups != 0 || x[1] / groups != w[1]) {
    throw_invalid(op, fmt::format("w has {} input channels per group, x has {} channels in {} "
                                  "groups",
                                  w[1], x[1], groups));
  }
  return {.batch = x[0],
          .in_channels = x[1],
          .out_channels = w[0],
          .groups = groups,
          .window = resolve_window(op, attributes, spatial_sizes(x), spatial_sizes(w))};
}

void convolve(const ConvGeometry& g, const std::vector<double>& x, const std::vector<double>& w,
              std::vector<double>& y) {
  std::fill(y.begin(), y.end(), 0.0);
  for_each_mac(
      g, [&, to = y.data()](auto yi, auto xi, auto wi) { to[yi] += x.data()[xi] * w.data()[wi]; });
}

void convolve_transposed(const ConvGeometry& g, const std::vector<double>& y,
                         const std::vector<double>& w, std::vector<double>& x) {
  std::fill(x.begin(), x.end(), 0.0);
  for_each_mac(
      g, [&, to = x.data()](auto yi, auto xi, auto wi) { to[xi] += y.data()[yi] * w.data()[wi]; });
}

}  // namespace triptych
