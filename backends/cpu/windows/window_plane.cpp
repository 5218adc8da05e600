// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/windows/window_plane.h"

#include "core/base/checked_math.h"

namespace triptych::cpu {
namespace {

constexpr std::int64_t kMaxTaps = 1024;
constexpr std::int64_t kMaxGrowth = 16;  // of a plane, laid out

/// Rows (axis 0) or columns of a sub-plane.
std::int64_t phase_size(const Window& w, int axis) {
  return (w.extent(axis) - 1) / w.stride[axis] + w.out[axis];
}

}  // namespace

bool WindowPlane::pays(const Window& w) {
  if (w.kernel[0] > kMaxTaps || w.kernel[1] > kMaxTaps || w.taps() > kMaxTaps) return false;
  const auto phases = std::min(w.stride[0], w.kernel[0]) * std::min(w.stride[1], w.kernel[1]);
  const auto most = kMaxGrowth * w.in[0] * w.in[1] / phases;
  return phase_size(w, 0) <= most / phase_size(w, 1);
}

WindowPlane::WindowPlane(const Window& window)
    : w_(window), rows_(phase_size(w_, 0)), pitch_(phase_size(w_, 1)) {
  for (std::int64_t ky = 0; ky < w_.kernel[0]; ++ky) {
    for (std::int64_t kx = 0; kx < w_.kernel[1]; ++kx) {
      const auto y = ky * w_.dilation[0], x = kx * w_.dilation[1];
      const auto phase = phase_of(y % w_.stride[0], x % w_.stride[1]);
      taps_.push_back((phase * rows_ + y / w_.stride[0]) * pitch_ + x / w_.stride[1]);
    }
  }
}

std::int64_t WindowPlane::outputs() const {
  return ((w_.out[0] - 1) * pitch_ + w_.out[1] + kChainBlock - 1) / kChainBlock * kChainBlock;
}

WindowPlane::Span WindowPlane::within(int axis, std::int64_t first, std::int64_t count) const {
  const auto before = [&](std::int64_t limit) {
    const auto elements = limit <= first ? 0 : ceil_div(limit - first, w_.stride[axis]);
    return std::min(elements, count);
  };
  return {before(0), before(w_.in[axis])};
}

/// Index of the phase that begins `row` rows and `column` columns behind the padding's corner.
std::int64_t WindowPlane::phase_of(std::int64_t row, std::int64_t column) {
  row -= w_.pad_begin[0];
  column -= w_.pad_begin[1];
  const auto same = std::ranges::find_if(
      phases_, [=](const Phase& p) { return p.row == row && p.column == column; });
  if (same != phases_.end()) return same - phases_.begin();
  phases_.push_back({row, column, within(0, row, rows_), within(1, column, pitch_)});
  return static_cast<std::int64_t>(phases_.size()) - 1;
}

}  // namespace triptych::cpu
