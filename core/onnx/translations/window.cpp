// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/translations/window.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/checked_math.h"

namespace triptych::onnx {
namespace {

std::vector<std::int64_t> part(const std::vector<std::int64_t>& list, std::int64_t first,
                               std::int64_t last) {
  return {list.begin() + first, list.begin() + last};
}

constexpr std::int64_t kLargest = std::int64_t{1} << 24;

}  // namespace

void require_range(const NodeImport& n, const char* name, const std::vector<std::int64_t>& list,
                   std::int64_t low) {
  const auto fits = [=](std::int64_t value) { return value >= low && value <= kLargest; };
  if (std::ranges::all_of(list, fits)) return;
  n.broken(fmt::format("attribute {} is out of range: {} to {}", name, low, kLargest));
}

WindowAttributes window_attributes(NodeImport& n) {
  WindowAttributes window;
  window.kernel_shape = n.integers("kernel_shape");
  window.strides = n.integers("strides");
  window.pads = n.integers("pads");
  window.dilations = n.integers("dilations");
  window.auto_pad = n.text("auto_pad", "NOTSET");
  if (window.auto_pad != "NOTSET") window.pads.clear();
  require_range(n, "strides", window.strides, 1);
  require_range(n, "dilations", window.dilations, 1);
  require_range(n, "kernel_shape", window.kernel_shape, 1);
  require_range(n, "pads", window.pads, 0);
  return window;
}

WindowAttributes filled_window(const NodeImport& n, WindowAttributes window, std::int64_t axes) {
  if (axes < 1) n.broken("its input has no spatial dimensions");
  const auto count = static_cast<std::size_t>(axes);
  if (window.strides.empty()) window.strides.assign(count, 1);
  if (window.dilations.empty()) window.dilations.assign(count, 1);
  if (window.pads.empty()) window.pads.assign(2 * count, 0);
  const bool fits = window.strides.size() == count && window.dilations.size() == count &&
                    window.pads.size() == 2 * count &&
                    (window.kernel_shape.empty() || window.kernel_shape.size() == count);
  if (!fits) n.broken("kernel_shape, strides, pads or dilations do not fit its dimensions");
  return window;
}

WindowAttributes window_part(const WindowAttributes& window, std::int64_t first,
                             std::int64_t last) {
  const auto axes = static_cast<std::int64_t>(window.strides.size());
  WindowAttributes result;
  if (!window.kernel_shape.empty()) result.kernel_shape = part(window.kernel_shape, first, last);
  result.strides = part(window.strides, first, last);
  result.dilations = part(window.dilations, first, last);
  result.pads = part(window.pads, first, last);
  const auto ends = part(window.pads, axes + first, axes + last);
  result.pads.insert(result.pads.end(), ends.begin(), ends.end());
  return result;
}

WindowAttributes resolved_padding(const NodeImport& n, WindowAttributes window, const Dims& sizes,
                                  const Dims& kernel) {
  const auto mode = std::exchange(window.auto_pad, "NOTSET");
  const auto axes = sizes.size();
  window = filled_window(n, std::move(window), static_cast<std::int64_t>(axes));
  if (mode == "NOTSET" || mode == "VALID") return window;
  if (mode != "SAME_UPPER" && mode != "SAME_LOWER") n.broken("auto_pad is unknown");
  for (std::size_t a = 0; a < axes; ++a) {
    const auto outputs = ceil_div(sizes[a], window.strides[a]);
    const auto covered =
        (outputs - 1) * window.strides[a] + (kernel[a] - 1) * window.dilations[a] + 1;
    const auto total = std::max<std::int64_t>(covered - sizes[a], 0);
    const auto smaller = total / 2;
    window.pads[a] = mode == "SAME_UPPER" ? smaller : total - smaller;
    window.pads[axes + a] = total - window.pads[a];
  }
  return window;
}

}  // namespace triptych::onnx
