// Max pooling in training: the index of each maximum is stored, and its gradient reads that instead
// of x.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/pool_planes.h"
#include "core/base/exact_math.h"
#include "core/ops/pool.h"

namespace triptych::cpu {
namespace {

using TapIndex = std::uint8_t;

void max_index_two_by_two(const Window& w, const float* x, float* y, TapIndex* index) {
  const auto in = w.in[1], rows = w.out[0], columns = w.out[1];
  simd([=] {
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto *top = x + 2 * row * in, *bottom = top + in;
      auto* largest = y + row * columns;
      auto* taps = index + row * columns;
#pragma GCC ivdep
      for (std::int64_t i = 0; i < columns; ++i) {
        const float a = top[2 * i], b = top[2 * i + 1], c = bottom[2 * i], d = bottom[2 * i + 1];
        const bool second = outranks(b, a);
        const float upper = exact::select(second, b, a);
        const bool third = outranks(c, upper);
        const float left = exact::select(third, c, upper);
        const bool fourth = outranks(d, left);
        largest[i] = exact::select(fourth, d, left);
        const int above = second ? 1 : 0, before = third ? 2 : above;
        taps[i] = static_cast<TapIndex>(fourth ? 3 : before);
      }
    }
  });
}

class MaxPoolIndexKernel : public Kernel {
 public:
  MaxPoolIndexKernel(const KernelQuery& query, Device&)
      : planes_(query.as<MaxPoolWithIndex>().window(query.inputs[0].spec.shape), query.inputs[0],
                query.outputs[0]),
        indices_(planes_.window, query.inputs[0], query.outputs[1]),
        two_by_two_(is_two_by_two(planes_.window)) {}
  static Verdict accepts(const KernelQuery&) { return Verdict::yes(); }

  void run(const KernelArgs& args) override {
    planes_.for_each_plane([&](std::int64_t plane) {
      const auto* x = args.in<float>(0) + planes_.in_offset(plane);
      auto* y = args.out<float>(0) + planes_.out_offset(plane);
      auto* index = args.out<TapIndex>(1) + indices_.out_offset(plane);
      if (two_by_two_) return max_index_two_by_two(planes_.window, x, y, index);
      for_each_maximum(planes_.window, x, [=](auto output, auto best, auto tap) {
        y[output] = x[best];
        index[output] = static_cast<TapIndex>(tap);
      });
    });
  }

 private:
  PoolPlanes planes_, indices_;
  bool two_by_two_;
};

/// dy goes to the tap of the index as +0 + dy, so that no -0 is written.
void max_index_gradient_two_by_two(const Window& w, const TapIndex* index, const float* dy,
                                   float* dx) {
  const auto in = w.in[1], rows = w.out[0], columns = w.out[1];
  simd([=] {
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto* taps = index + row * columns;
      const auto* dys = dy + row * columns;
      auto *top = dx + 2 * row * in, *bottom = top + in;
#pragma GCC ivdep
      for (std::int64_t i = 0; i < columns; ++i) {
        const int tap = taps[i];
        const float g = exact::canonical(0.0F + dys[i]);
        top[2 * i] = exact::select(tap == 0, g, 0);
        top[2 * i + 1] = exact::select(tap == 1, g, 0);
        bottom[2 * i] = exact::select(tap == 2, g, 0);
        bottom[2 * i + 1] = exact::select(tap == 3, g, 0);
      }
    }
  });
  clear_beside_two_by_two(w, dx);
}

/// dx of a plane, by ascending outputs.
void add_at_indices(const Window& w, const TapIndex* index, const float* dy, float* dx) {
  std::fill_n(dx, w.in[0] * w.in[1], 0.0F);
  for (std::int64_t row = 0; row < w.out[0]; ++row) {
    for (std::int64_t column = 0; column < w.out[1]; ++column) {
      const auto output = row * w.out[1] + column;
      const std::int64_t tap = index[output];
      const auto y = row * w.stride[0] - w.pad_begin[0] + tap / w.kernel[1] * w.dilation[0];
      const auto x = column * w.stride[1] - w.pad_begin[1] + tap % w.kernel[1] * w.dilation[1];
      auto& to = dx[y * w.in[1] + x];
      to = exact::canonical(to + dy[output]);
    }
  }
}

/// dx += other, while dx is in the cache.
void add_plane(const float* other, std::int64_t count, float* dx) {
  simd([=] {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) dx[i] = exact::canonical(dx[i] + other[i]);
  });
}

class MaxPoolIndexGradientKernel : public Kernel {
 public:
  MaxPoolIndexGradientKernel(const KernelQuery& query, Device&)
      : planes_(query.as<MaxPoolIndexGradient>().window(), query.outputs[0], query.inputs[1]),
        indices_(planes_.window, query.outputs[0], query.inputs[0]),
        two_by_two_(is_two_by_two(planes_.window)) {
    if (query.inputs.size() > 2) other_.emplace(planes_.window, query.inputs[2], query.inputs[1]);
  }
  static Verdict accepts(const KernelQuery&) { return Verdict::yes(); }

  void run(const KernelArgs& args) override {
    planes_.for_each_plane([&](std::int64_t plane) {
      const auto* index = args.in<TapIndex>(0) + indices_.out_offset(plane);
      const auto* dy = args.in<float>(1) + planes_.out_offset(plane);
      auto* dx = args.out<float>(0) + planes_.in_offset(plane);
      if (two_by_two_) {
        max_index_gradient_two_by_two(planes_.window, index, dy, dx);
      } else {
        add_at_indices(planes_.window, index, dy, dx);
      }
      if (other_) add_plane(args.in<float>(2) + other_->in_offset(plane), planes_.in_size(), dx);
    });
  }

 private:
  PoolPlanes planes_, indices_;
  std::optional<PoolPlanes> other_;  ///< of the gradient that is added
  bool two_by_two_;
};

}  // namespace

void add_pool_index_kernels(KernelList& list) {
  list.push_back(kernel_entry<MaxPoolIndexKernel>(MaxPoolWithIndex::kName, "planes"));
  list.push_back(kernel_entry<MaxPoolIndexGradientKernel>(MaxPoolIndexGradient::kName, "planes"));
}

}  // namespace triptych::cpu
