// Pooling over planes: where they lie, and the maximum of each window.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/grain.h"
#include "backends/cpu/kernels/elementwise.h"
#include "core/base/reduction.h"
#include "core/ops/conv_geometry.h"
#include "core/runtime/kernel.h"

namespace triptych::cpu {

/// Pairs of planes of pooling: of a tensor with the window's input size and of one with its output
/// size.
struct PoolPlanes {
  Window window;
  std::int64_t channels, count;
  std::int64_t in_stride, out_stride;  ///< from image to image

  PoolPlanes(const Window& w, const Operand& in, const Operand& out)
      : window(w),
        channels(in.spec.shape[1]),
        count(in.spec.shape[0] * channels),
        in_stride(in.outer_stride),
        out_stride(out.outer_stride) {}

  std::int64_t in_size() const { return window.in[0] * window.in[1]; }
  std::int64_t out_size() const { return window.out[0] * window.out[1]; }
  std::int64_t in_offset(std::int64_t plane) const {
    return plane / channels * in_stride + plane % channels * in_size();
  }
  std::int64_t out_offset(std::int64_t plane) const {
    return plane / channels * out_stride + plane % channels * out_size();
  }
  /// Calls body(plane) for every plane, in parallel, and before() for each range of them.
  template <class Before, class Body>
  void for_each_plane(const Before& before, const Body& body) const {
    parallel_for(count, grain_of(in_size()), [&](std::int64_t begin, std::int64_t end) {
      before();
      for (auto plane = begin; plane < end; ++plane) body(plane);
    });
  }
  template <class Body>
  void for_each_plane(const Body& body) const {
    for_each_plane([] {}, body);
  }
};

/// Adjacent 2 x 2 windows, each wholly inside: the pooling of a U-Net.
inline bool is_two_by_two(const Window& w) {
  for (int axis = 0; axis < 2; ++axis) {
    if (w.kernel[axis] != 2 || w.stride[axis] != 2 || w.dilation[axis] != 1) return false;
    if (w.pad_begin[axis] != 0 || 2 * w.out[axis] > w.in[axis]) return false;
  }
  return true;
}

/// Zeros in the odd column and row of a plane of dx, which adjacent 2 x 2 windows leave out.
inline void clear_beside_two_by_two(const Window& w, float* dx) {
  const auto in = w.in[1], columns = 2 * w.out[1], rows = 2 * w.out[0];
  for (std::int64_t row = 0; row < rows; ++row)
    std::fill(dx + row * in + columns, dx + (row + 1) * in, 0.0F);
  std::fill(dx + rows * in, dx + w.in[0] * in, 0.0F);
}

/// Calls visit(output, input, tap) with the maximum of each window, by MaxPoolGradient's rule.
template <class T, class Visitor>
void for_each_maximum(const Window& w, const T* x, const Visitor& visit) {
  using C = ComputeType<T>;
  std::int64_t current = -1, best = 0, best_tap = 0;
  for_each_tap(w, [&](std::int64_t output, std::int64_t input, std::int64_t tap) {
    const bool begins = output != current;
    if (!begins && !outranks(static_cast<C>(x[input]), static_cast<C>(x[best]))) return;
    if (begins && current >= 0) visit(current, best, best_tap);
    current = output;
    best = input;
    best_tap = tap;
  });
  if (current >= 0) visit(current, best, best_tap);
}

}  // namespace triptych::cpu
