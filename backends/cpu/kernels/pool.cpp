// SPDX-License-Identifier: Apache-2.0
#include "core/ops/pool.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <type_traits>

#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/grain.h"
#include "backends/cpu/kernels/elementwise.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/pool_planes.h"
#include "backends/cpu/tiles/stored_images.h"
#include "backends/cpu/windows/max_rows.h"
#include "backends/cpu/windows/window_plane.h"
#include "core/base/checked_math.h"
#include "core/base/exact_math.h"
#include "core/base/reduction.h"

namespace triptych::cpu {
namespace {

template <class T>
void max_two_by_two(const Window& w, const T* x, T* y) {
  constexpr MaxOf<T> largest;
  const auto in = w.in[1], rows = w.out[0], columns = w.out[1];
  simd([=] {
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto *top = x + 2 * row * in, *bottom = top + in;
      auto* target = y + row * columns;
#pragma GCC ivdep
      for (std::int64_t i = 0; i < columns; ++i) {
        const T upper = largest(top[2 * i], top[2 * i + 1]);
        const T left = largest(upper, bottom[2 * i]);
        target[i] = largest(left, bottom[2 * i + 1]);
      }
    }
  });
}

/// The planes that the windows of a kernel are read from, where that pays.
template <class T>
std::optional<PlaneScratch<T>> plane_scratch(const Window& window, const Device& device) {
  if (!WindowPlane::pays(window)) return std::nullopt;
  return PlaneScratch<T>(window, device_threads(device));
}

template <class T>
class MaxPoolKernel : public Kernel {
  static constexpr bool kFast = std::is_same_v<T, float> || std::is_same_v<T, std::int8_t>;

 public:
  MaxPoolKernel(const KernelQuery& query, const Device& device)
      : planes_(query.as<MaxPool>().window(query.inputs[0].spec.shape), query.inputs[0],
                query.outputs[0]),
        two_by_two_(is_two_by_two(planes_.window)),
        by_rows_(std::is_same_v<T, float> && !two_by_two_ && takes_max_rows(planes_.window)),
        threads_(device_threads(device)) {
    if (kFast && !two_by_two_ && !by_rows_) scratch_ = plane_scratch<T>(planes_.window, device);
  }

  std::size_t scratch_bytes() const override {
    if (by_rows_) {
      const auto floats = checked_mul(threads_, max_rows_floats(planes_.window));
      return static_cast<std::size_t>(checked_mul(floats, sizeof(float)));
    }
    return scratch_ ? scratch_->bytes() : 0;
  }

  void run(const KernelArgs& args) override {
    const auto before = [&] {
      if constexpr (kFast) {  // never larger than the first element, with which a chain begins
        using Limits = std::numeric_limits<T>;
        const T lowest = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
        if (scratch_) scratch_->layout().pad(lowest, scratch_->plane(args.scratch));
      }
    };
    planes_.for_each_plane(before, [&](std::int64_t plane) {
      const T* x = args.in<T>(0) + planes_.in_offset(plane);
      T* y = args.out<T>(0) + planes_.out_offset(plane);
      if constexpr (kFast) {
        if (two_by_two_) return max_two_by_two(planes_.window, x, y);
        if constexpr (std::is_same_v<T, float>) {
          if (by_rows_) return run_rows(x, args.scratch, y);
        }
        if (scratch_) return run_plane(x, args.scratch, y);
      }
      for_each_maximum(planes_.window, x,
                       [=](auto output, auto best, auto) { y[output] = x[best]; });
    });
  }

 private:
  void run_rows(const float* x, std::byte* scratch, float* y) const {
    auto* rows =
        reinterpret_cast<float*>(scratch) + thread_index() * max_rows_floats(planes_.window);
    max_of_windows(planes_.window, x, rows, y);
  }

  void run_plane(const T* x, std::byte* scratch, T* y) const {
    const auto& layout = scratch_->layout();
    T *plane = scratch_->plane(scratch), *outputs = scratch_->outputs(scratch);
    layout.lay_out(x, std::identity(), plane);
    layout.first_elements(plane, outputs);
    largest_of_taps(plane, layout.taps(), layout.outputs(), outputs);
    layout.copy_outputs(outputs, y);
  }

  PoolPlanes planes_;
  bool two_by_two_;
  bool by_rows_;  ///< see windows/max_rows.h
  std::int64_t threads_;
  std::optional<PlaneScratch<T>> scratch_;
};

/// Images that are stored channels last: both operands. A maximum of rounded values is the rounded
/// maximum. T: bfloat16's bits, or int8.
template <class T>
class StoredMaxPool : public Kernel {
 public:
  explicit StoredMaxPool(const KernelQuery& query)
      : window_(query.as<MaxPool>().window(query.inputs[0].spec.shape)),
        images_(query.inputs[0].spec.shape[0]),
        two_by_two_(is_two_by_two(window_)),
        x_(query.inputs[0]),
        y_(query.outputs[0]) {}

  void run(const KernelArgs& args) override {
    const auto* x = args.in<T>(0);
    auto* y = args.out<T>(0);
    const auto row_work = window_.out[1] * window_.taps() * x_.channels();
    parallel_for(images_ * window_.out[0], grain_of(row_work),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (auto i = begin; i < end; ++i) run_row(i, x, y);
                 });
  }

 private:
  void run_row(std::int64_t index, const T* x, T* y) const {
    const auto image = index / window_.out[0], row = index % window_.out[0];
    if (two_by_two_) {
      max_row(x + x_.element(image, 2 * row, 0), x_.element(0, 1, 0) - x_.element(0, 0, 0),
              y + y_.element(image, row, 0));
    } else {
      for (std::int64_t column = 0; column < window_.out[1]; ++column)
        max_window(x, image, {row, column}, y + y_.element(image, row, column));
    }
    y_.clear_around(reinterpret_cast<std::byte*>(y), image, {row, row + 1});
  }

  static T larger(T a, T b) {
    if constexpr (std::is_same_v<T, std::int8_t>) return std::max(a, b);
    constexpr MaxOf<float> largest;
    return static_cast<T>(exact::bits_of(largest(bf16_to_float(a), bf16_to_float(b))) >> 16);
  }

  /// kCount channels of a 2 x 2 window. `row`: elements from the upper taps to the lower ones,
  /// `step`: from the left ones to the right ones.
  template <std::int64_t kCount>
  [[gnu::always_inline]] static void max_block(const T* x, std::int64_t row, std::int64_t step,
                                               T* to) {
    T maxima[kCount];
    for (std::int64_t c = 0; c < kCount; ++c) {
      const auto upper = larger(x[c], x[step + c]);
      maxima[c] = larger(larger(upper, x[row + c]), x[row + step + c]);
    }
    std::copy_n(maxima, kCount, to);
  }

  /// Windows of 2 x 2 side by side.
  void max_row(const T* top, std::int64_t row, T* to) const {
    simd([=, step = x_.pitch(), to_step = y_.pitch(), columns = window_.out[1],
          channels = x_.channels()] {
      for (std::int64_t column = 0; column < columns; ++column) {
        const auto* x = top + 2 * column * step;
        auto* y = to + column * to_step;
        std::int64_t c = 0;
        for (; c + 32 <= channels; c += 32) max_block<32>(x + c, row, step, y + c);
        for (; c + 8 <= channels; c += 8) max_block<8>(x + c, row, step, y + c);
        for (; c < channels; ++c) max_block<1>(x + c, row, step, y + c);
      }
    });
  }

  void max_window(const T* x, std::int64_t image, const std::int64_t (&at)[2], T* to) const {
    const T* first = nullptr;
    bool begun = false;
    for (std::int64_t tap = 0; tap < window_.taps(); ++tap) {
      const auto row = input_of(0, at[0], tap / window_.kernel[1]);
      const auto column = input_of(1, at[1], tap % window_.kernel[1]);
      if (row < 0 || row >= window_.in[0] || column < 0 || column >= window_.in[1]) continue;
      const auto* from = x + x_.element(image, row, column);
      if (first != nullptr) {
        const auto* before = begun ? to : first;
        simd([=, count = x_.channels()] {
#pragma GCC ivdep
          for (std::int64_t c = 0; c < count; ++c) to[c] = larger(before[c], from[c]);
        });
        begun = true;
      } else {
        first = from;
      }
    }
    if (!begun) std::copy_n(first, x_.channels(), to);
  }

  std::int64_t input_of(int axis, std::int64_t out, std::int64_t tap) const {
    return out * window_.stride[axis] - window_.pad_begin[axis] + tap * window_.dilation[axis];
  }

  Window window_;
  std::int64_t images_;
  bool two_by_two_;
  StoredImages x_, y_;
};

/// float32 under bf16 alone: values that all readers round may be stored rounded.
ChannelsLastOperands channels_last_max_pool(const KernelQuery& query) {
  const auto dtype = query.inputs[0].spec.dtype;
  const bool takes =
      dtype == DType::I8 || (dtype == DType::F32 && query.contract == Contract::Bf16);
  return {.inputs = {takes}, .output = takes, .all_or_none = true};
}

std::unique_ptr<Kernel> prepare_max_pool(const KernelQuery& query, Device& device) {
  if (query.inputs[0].channels_last) {
    if (query.inputs[0].spec.dtype == DType::I8)
      return std::make_unique<StoredMaxPool<std::int8_t>>(query);
    return std::make_unique<StoredMaxPool<std::uint16_t>>(query);
  }
  return visit_dtype(query.inputs[0].spec.dtype, [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<MaxPoolKernel<decltype(tag)>>(query, device);
  });
}

/// dy goes to the maximum of the four as +0 + dy, so that no -0 is written.
void max_gradient_two_by_two(const Window& w, const float* x, const float* dy, float* dx) {
  const auto in = w.in[1], rows = w.out[0], columns = w.out[1];
  simd([=] {
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto *top = x + 2 * row * in, *bottom = top + in, *dys = dy + row * columns;
      auto *dtop = dx + 2 * row * in, *dbottom = dtop + in;
#pragma GCC ivdep
      for (std::int64_t i = 0; i < columns; ++i) {
        const float a = top[2 * i], b = top[2 * i + 1], c = bottom[2 * i], d = bottom[2 * i + 1];
        const bool second = outranks(b, a);
        const float upper = exact::select(second, b, a);
        const bool third = outranks(c, upper);
        const bool fourth = outranks(d, exact::select(third, c, upper));
        const float g = exact::canonical(0.0F + dys[i]);
        dtop[2 * i] = exact::select(second | third | fourth, 0, g);
        dtop[2 * i + 1] = exact::select(second & !(third | fourth), g, 0);
        dbottom[2 * i] = exact::select(third & !fourth, g, 0);
        dbottom[2 * i + 1] = exact::select(fourth, g, 0);
      }
    }
  });
  clear_beside_two_by_two(w, dx);
}

class MaxPoolGradientKernel : public Kernel {
 public:
  MaxPoolGradientKernel(const KernelQuery& query, Device&)
      : planes_(query.as<MaxPoolGradient>().window(query.inputs[0].spec.shape), query.inputs[0],
                query.inputs[1]),
        dx_stride_(query.outputs[0].outer_stride),
        two_by_two_(is_two_by_two(planes_.window)) {}
  static Verdict accepts(const KernelQuery&) { return Verdict::yes(); }

  void run(const KernelArgs& args) override {
    PoolPlanes dx_planes = planes_;
    dx_planes.in_stride = dx_stride_;
    planes_.for_each_plane([&](std::int64_t plane) {
      spread(args.in<float>(0) + planes_.in_offset(plane),
             args.in<float>(1) + planes_.out_offset(plane),
             args.out<float>(0) + dx_planes.in_offset(plane));
    });
  }

 private:
  void spread(const float* x, const float* dy, float* dx) const {
    if (two_by_two_) return max_gradient_two_by_two(planes_.window, x, dy, dx);
    std::fill_n(dx, planes_.in_size(), 0.0F);
    for_each_maximum(planes_.window, x, [=](auto output, auto best, auto) {
      dx[best] = exact::canonical(dx[best] + dy[output]);
    });
  }

  PoolPlanes planes_;
  std::int64_t dx_stride_;
  bool two_by_two_;
};

/// Per output position of a plane, the divisor of its average.
std::vector<float> divisors(const Window& window, bool count_include_pad) {
  std::vector<float> result;
  for (std::int64_t row = 0; row < window.out[0]; ++row) {
    for (std::int64_t column = 0; column < window.out[1]; ++column) {
      const auto count = average_pool_divisor(window, count_include_pad, row, column);
      result.push_back(static_cast<float>(count));
    }
  }
  return result;
}

/// Outputs of a plane up to which its sums are chains side by side, without prepared planes.
constexpr std::int64_t kFewOutputs = 8;

/// Few windows, each wholly inside.
bool has_few_windows(const Window& w) {
  for (int axis = 0; axis < 2; ++axis) {
    const auto reach = (w.out[axis] - 1) * w.stride[axis] + w.extent(axis);
    if (w.pad_begin[axis] != 0 || reach > w.in[axis]) return false;
  }
  return w.out[0] * w.out[1] <= kFewOutputs;
}

/// y = the sums of few windows. Their chains stay in registers.
void add_few_windows(const Window& w, const float* x, float* y) {
  const auto count = w.out[0] * w.out[1];
  std::int64_t first[kFewOutputs] = {};  // element of each window
  for (std::int64_t p = 0; p < count; ++p) {
    first[p] = p / w.out[1] * w.stride[0] * w.in[1] + p % w.out[1] * w.stride[1];
  }
  float sums[kFewOutputs] = {};
  for (std::int64_t row = 0; row < w.kernel[0]; ++row) {
    const float* from = x + row * w.dilation[0] * w.in[1];
    for (std::int64_t column = 0; column < w.kernel[1]; ++column, from += w.dilation[1]) {
      for (std::int64_t p = 0; p < kFewOutputs; ++p) sums[p] += from[first[p]];
    }
  }
  std::copy_n(sums, count, y);
}

class AveragePoolKernel : public Kernel {
 public:
  AveragePoolKernel(const KernelQuery& query, Device& device)
      : planes_(query.as<AveragePool>().window(query.inputs[0].spec.shape), query.inputs[0],
                query.outputs[0]),
        divisors_(divisors(planes_.window, query.as<AveragePool>().count_include_pad)),
        few_(has_few_windows(planes_.window)) {
    if (!few_) scratch_ = plane_scratch<float>(planes_.window, device);
  }
  static Verdict accepts(const KernelQuery&) { return Verdict::yes(); }

  std::size_t scratch_bytes() const override { return scratch_ ? scratch_->bytes() : 0; }

  void run(const KernelArgs& args) override {
    const auto* divisor = divisors_.data();
    const auto count = planes_.out_size();
    const auto before = [&] {  // adding 0 changes no sum that began at 0
      if (scratch_) scratch_->layout().pad(0.0F, scratch_->plane(args.scratch));
    };
    planes_.for_each_plane(before, [&](std::int64_t plane) {
      auto* y = args.out<float>(0) + planes_.out_offset(plane);
      add(args.in<float>(0) + planes_.in_offset(plane), args.scratch, y);
      simd([=] {
        for (std::int64_t i = 0; i < count; ++i) y[i] = exact::canonical(y[i] / divisor[i]);
      });
    });
  }

 private:
  /// y = the sums of its windows.
  void add(const float* x, std::byte* scratch, float* y) const {
    if (few_) return add_few_windows(planes_.window, x, y);
    if (!scratch_) {
      std::fill_n(y, planes_.out_size(), 0.0F);
      return for_each_tap(planes_.window, [=](auto p, auto q, auto) { y[p] += x[q]; });
    }
    const auto& layout = scratch_->layout();
    auto *plane = scratch_->plane(scratch), *outputs = scratch_->outputs(scratch);
    layout.lay_out(x, std::identity(), plane);
    add_taps(plane, layout.taps(), layout.outputs(), outputs);
    layout.copy_outputs(outputs, y);
  }

  PoolPlanes planes_;
  std::vector<float> divisors_;
  bool few_;
  std::optional<PlaneScratch<float>> scratch_;
};

class AveragePoolGradientKernel : public Kernel {
 public:
  AveragePoolGradientKernel(const KernelQuery& query, Device&)
      : planes_(query.as<AveragePoolGradient>().window(), query.outputs[0], query.inputs[0]),
        divisors_(divisors(planes_.window, query.as<AveragePoolGradient>().count_include_pad)) {}
  static Verdict accepts(const KernelQuery&) { return Verdict::yes(); }

  void run(const KernelArgs& args) override {
    planes_.for_each_plane([&](std::int64_t plane) {
      const auto* dy = args.in<float>(0) + planes_.out_offset(plane);
      const auto* divisor = divisors_.data();
      auto* dx = args.out<float>(0) + planes_.in_offset(plane);
      std::fill_n(dx, planes_.in_size(), 0.0F);
      for_each_tap(planes_.window, [=](auto p, auto q, auto) { dx[q] += dy[p] / divisor[p]; });
      for (std::int64_t i = 0; i < planes_.in_size(); ++i) dx[i] = exact::canonical(dx[i]);
    });
  }

 private:
  PoolPlanes planes_;
  std::vector<float> divisors_;
};

}  // namespace

void add_pool_kernels(KernelList& list) {
  list.push_back({"MaxPool", "planes", &accepts_any, &prepare_max_pool});
  list.back().channels_last = &channels_last_max_pool;
  list.push_back(kernel_entry<MaxPoolGradientKernel>("MaxPoolGradient", "planes"));
  list.push_back(kernel_entry<AveragePoolKernel>("AveragePool", "planes"));
  list.push_back(kernel_entry<AveragePoolGradientKernel>("AveragePoolGradient", "planes"));
}

}  // namespace triptych::cpu
