// Windows of pooling over planes: one element per thread for all windows, and adjacent 2 x 2
// windows with whole rows per access.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <initializer_list>

#include "backends/cuda/kernels/divisor.h"
#include "backends/cuda/kernels/elementwise.cuh"
#include "backends/cuda/kernels/operand_span.h"
#include "core/base/reduction.h"
#include "core/ops/conv_geometry.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

/// Adjacent 2 x 2 windows, each wholly inside: the pooling of a U-Net.
inline bool is_two_by_two(const Window& w) {
  for (int axis = 0; axis < 2; ++axis) {
    if (w.kernel[axis] != 2 || w.stride[axis] != 2 || w.dilation[axis] != 1) return false;
    if (w.pad_begin[axis] != 0 || 2 * w.out[axis] > w.in[axis]) return false;
  }
  return true;
}

/// The largest element of a window: its place in the plane, and its number in the window.
struct Maximum {
  std::int64_t input = -1, tap = 0;
};

/// A window with steps known to the compiler when they are two by two.
template <bool kTwoByTwo>
struct Steps {
  Window w;
  WideDivisor in_width = WideDivisor(w.in[1]), out_width = WideDivisor(w.out[1]);

  __device__ std::int64_t kernel(int axis) const { return kTwoByTwo ? 2 : w.kernel[axis]; }
  __device__ std::int64_t stride(int axis) const { return kTwoByTwo ? 2 : w.stride[axis]; }
  __device__ std::int64_t dilation(int axis) const { return kTwoByTwo ? 1 : w.dilation[axis]; }
  __device__ std::int64_t pad(int axis) const { return kTwoByTwo ? 0 : w.pad_begin[axis]; }
  __device__ std::int64_t in_size() const { return w.in[0] * w.in[1]; }
  __device__ std::int64_t out_size() const { return w.out[0] * w.out[1]; }

  /// Calls visit(input, tap) for the elements of the window at `output`, row by row.
  template <class Visit>
  __device__ void for_each_input(std::int64_t output, const Visit& visit) const {
    const std::int64_t row = out_width.divide(output), column = output - row * w.out[1];
    const std::int64_t y0 = row * stride(0) - pad(0), x0 = column * stride(1) - pad(1);
    for (std::int64_t ky = 0; ky < kernel(0); ++ky) {
      const std::int64_t y = y0 + ky * dilation(0);
      if (!kTwoByTwo && (y < 0 || y >= w.in[0])) continue;
      for (std::int64_t kx = 0; kx < kernel(1); ++kx) {
        const std::int64_t x = x0 + kx * dilation(1);
        if (!kTwoByTwo && (x < 0 || x >= w.in[1])) continue;
        visit(y * w.in[1] + x, ky * kernel(1) + kx);
      }
    }
  }

  /// The output that reads position `at` of an axis with tap `tap`, or -1.
  __device__ std::int64_t output_at(int axis, std::int64_t at, std::int64_t tap) const {
    const std::int64_t start = at + pad(axis) - tap * dilation(axis);
    if (start < 0 || start % stride(axis) != 0) return -1;
    const std::int64_t output = start / stride(axis);
    return output < w.out[axis] ? output : -1;
  }
  /// Calls visit(output, tap) for the windows that `input` is in, in ascending order of outputs.
  template <class Visit>
  __device__ void for_each_output(std::int64_t input, const Visit& visit) const {
    const std::int64_t y = in_width.divide(input), x = input - y * w.in[1];
    for (std::int64_t ky = kernel(0) - 1; ky >= 0; --ky) {
      const std::int64_t row = output_at(0, y, ky);
      if (row < 0) continue;
      for (std::int64_t kx = kernel(1) - 1; kx >= 0; --kx) {
        const std::int64_t column = output_at(1, x, kx);
        if (column >= 0) visit(row * w.out[1] + column, ky * kernel(1) + kx);
      }
    }
  }

  /// The maximum of the window at `output` of the plane x, by MaxPoolGradient's rule.
  template <class T>
  __device__ Maximum largest(const Global<const T>& x, std::int64_t output) const {
    using C = scalar::ComputeType<T>;
    Maximum best;
    C most{};
    for_each_input(output, [&](std::int64_t input, std::int64_t tap) {
      const T element = x[input];
      const auto value = static_cast<C>(element);
      if (best.input < 0 || outranks(value, most)) {
        most = value;
        best = {input, tap};
      }
    });
    return best;
  }
};

/// How the planes of an operand [N, C, ...] lie.
struct Planes {
  std::int64_t channels, count, image_stride, span;

  explicit Planes(const Operand& operand)
      : channels(operand.spec.shape[1]),
        count(operand.spec.shape[0] * channels),
        image_stride(operand.outer_stride),
        span(span_of(operand)) {}
};

/// An operand as planes of `size` elements.
template <class T>
struct PlaneArray {
  Global<T> data;
  std::int64_t channels = 1, image_stride = 0, size = 0;

  PlaneArray() = default;
  PlaneArray(const Planes& planes, std::int64_t plane_size, T* memory)
      : data(memory, planes.span),
        channels(planes.channels),
        image_stride(planes.image_stride),
        size(plane_size) {}
  __device__ Global<T> at(std::int64_t plane) const {
    return data.from(plane / channels * image_stride + plane % channels * size);
  }
};

/// Two by two windows that cover whole planes, in 32-bit indices. A thread owns kEach neighbours:
/// it reads their two rows in one access each.
template <int kEach>
struct WindowGroups {
  Divisor channels, of_plane, columns;
  std::uint32_t count = 0;  ///< of all planes

  WindowGroups(const Window& w, const Planes& planes)
      : channels(planes.channels),
        of_plane(w.out[0] * w.out[1] / kEach),
        columns(w.out[1] / kEach),
        count(static_cast<std::uint32_t>(planes.count * w.out[0] * w.out[1] / kEach)) {}

  /// Calls visit(image, upper, lower, output) for each group of this thread: its image, and the
  /// first element of both rows and of the output in it.
  template <class Visit>
  __device__ void for_each(const Visit& visit) const {
    for (auto i = global_thread(); i < count; i += all_threads()) {
      const auto group = static_cast<std::uint32_t>(i);
      const std::uint32_t plane = of_plane.divide(group);
      const std::uint32_t in_plane = group - plane * of_plane.value();
      const std::uint32_t row = columns.divide(in_plane);
      const std::uint32_t column = in_plane - row * columns.value();
      const std::uint32_t image = channels.divide(plane);
      const std::uint32_t channel = plane - image * channels.value();
      const std::uint32_t width = 2 * kEach * columns.value();
      const std::int64_t size = std::int64_t{kEach} * of_plane.value();
      const std::int64_t upper = channel * 4 * size + 2 * row * width + 2 * kEach * column;
      visit(image, upper, upper + width, channel * size + kEach * in_plane);
    }
  }
};

/// Number of the largest element, row by row, of window `w` of a group, and its value.
struct Largest {
  int number = 0;
  float value;

  template <int kCount>
  __device__ Largest(const Vector<float, kCount>& above, const Vector<float, kCount>& below, int w)
      : value(above[2 * w]) {
    const float others[3] = {above[2 * w + 1], below[2 * w], below[2 * w + 1]};
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      const bool larger = outranks(others[k], value);
      value = chosen(larger, others[k], value);
      if (larger) number = k + 1;
    }
  }
};

/// Two rows of dx below kEach windows. Their gradients go to their maxima.
template <int kEach>
struct SpreadRows {
  Vector<float, 2 * kEach> above, below;

  /// `best`: number of the largest element of window w.
  __device__ void put(int w, int best, float gradient) {
    const float sum = exact::canonical(0.0F + gradient);
    above[2 * w] = best == 0 ? sum : 0;
    above[2 * w + 1] = best == 1 ? sum : 0;
    below[2 * w] = best == 2 ? sum : 0;
    below[2 * w + 1] = best == 3 ? sum : 0;
  }
  /// Adds another gradient.
  __device__ void add(const Vector<float, 2 * kEach>& more_above,
                      const Vector<float, 2 * kEach>& more_below) {
#pragma unroll
    for (int i = 0; i < 2 * kEach; ++i) {
      above[i] = exact::canonical(above[i] + more_above[i]);
      below[i] = exact::canonical(below[i] + more_below[i]);
    }
  }
};

/// A tensor of a pooling: its planes and its memory.
struct PooledTensor {
  const Planes& planes;
  const std::byte* memory;

  bool moves(int elements) const {
    const auto bytes = static_cast<std::uintptr_t>(elements) * sizeof(float);
    return planes.image_stride % elements == 0 &&
           reinterpret_cast<std::uintptr_t>(memory) % bytes == 0;
  }
};

/// True when the kernels above take the windows, kEach to a thread: every row of the tensors they
/// read or write is whole in accesses, `wide` by windows and `narrow` by their outputs.
template <int kEach>
bool takes_groups(const Window& w, std::initializer_list<PooledTensor> wide,
                  const PooledTensor& narrow) {
  const bool covers = is_two_by_two(w) && 2 * w.out[0] == w.in[0] && 2 * w.out[1] == w.in[1];
  if (!covers || narrow.planes.count * w.in[0] * w.in[1] >= std::int64_t{1} << 31) return false;
  return w.out[1] % kEach == 0 && narrow.moves(kEach) &&
         std::ranges::all_of(wide, [](const PooledTensor& t) { return t.moves(2 * kEach); });
}

/// Common part of the pooling kernels.
class PoolKernel : public Kernel {
 public:
  static Verdict accepts(const KernelQuery&) { return Verdict::yes(); }

 protected:
  explicit PoolKernel(const Window& window) : window_(window), two_by_two_(is_two_by_two(window)) {}

  const Window& window() const { return window_; }
  std::int64_t in_size() const { return window_.in[0] * window_.in[1]; }
  std::int64_t out_size() const { return window_.out[0] * window_.out[1]; }
  /// Calls body(steps).
  template <class Body>
  void with_steps(const Body& body) const {
    two_by_two_ ? body(Steps<true>{window_}) : body(Steps<false>{window_});
  }

 private:
  Window window_;
  bool two_by_two_;
};

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
