// SPDX-License-Identifier: Apache-2.0
#include "core/ops/pool.h"

#include "backends/cuda/kernels/device_table.h"
#include "backends/cuda/kernels/divisor.h"
#include "backends/cuda/kernels/elementwise.cuh"
#include "backends/cuda/kernels/operand_span.h"
#include "core/base/reduction.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

/// Adjacent 2 x 2 windows, each wholly inside: the pooling of a U-Net.
bool is_two_by_two(const Window& w) {
  for (int axis = 0; axis < 2; ++axis) {
    if (w.kernel[axis] != 2 || w.stride[axis] != 2 || w.dilation[axis] != 1) return false;
    if (w.pad_begin[axis] != 0 || 2 * w.out[axis] > w.in[axis]) return false;
  }
  return true;
}

/// A window with steps known to the compiler when they are two by two.
template <bool kTwoByTwo>
struct Steps {
  Window w;

  __device__ std::int64_t kernel(int axis) const { return kTwoByTwo ? 2 : w.kernel[axis]; }
  __device__ std::int64_t stride(int axis) const { return kTwoByTwo ? 2 : w.stride[axis]; }
  __device__ std::int64_t dilation(int axis) const { return kTwoByTwo ? 1 : w.dilation[axis]; }
  __device__ std::int64_t pad(int axis) const { return kTwoByTwo ? 0 : w.pad_begin[axis]; }
  __device__ std::int64_t in_size() const { return w.in[0] * w.in[1]; }
  __device__ std::int64_t out_size() const { return w.out[0] * w.out[1]; }

  /// Calls visit(input) for the elements of the window at `output`, row by row.
  template <class Visit>
  __device__ void for_each_input(std::int64_t output, const Visit& visit) const {
    const std::int64_t y0 = output / w.out[1] * stride(0) - pad(0);
    const std::int64_t x0 = output % w.out[1] * stride(1) - pad(1);
    for (std::int64_t ky = 0; ky < kernel(0); ++ky) {
      const std::int64_t y = y0 + ky * dilation(0);
      if (!kTwoByTwo && (y < 0 || y >= w.in[0])) continue;
      for (std::int64_t kx = 0; kx < kernel(1); ++kx) {
        const std::int64_t x = x0 + kx * dilation(1);
        if (!kTwoByTwo && (x < 0 || x >= w.in[1])) continue;
        visit(y * w.in[1] + x);
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
  /// Calls visit(output) for the windows that `input` is in, in ascending order.
  template <class Visit>
  __device__ void for_each_output(std::int64_t input, const Visit& visit) const {
    const std::int64_t y = input / w.in[1], x = input % w.in[1];
    for (std::int64_t ky = kernel(0) - 1; ky >= 0; --ky) {
      const std::int64_t row = output_at(0, y, ky);
      if (row < 0) continue;
      for (std::int64_t kx = kernel(1) - 1; kx >= 0; --kx) {
        const std::int64_t column = output_at(1, x, kx);
        if (column >= 0) visit(row * w.out[1] + column);
      }
    }
  }

  /// The maximum of the window at `output` of the plane x, by MaxPoolGradient's rule.
  template <class T>
  __device__ std::int64_t largest(const Global<const T>& x, std::int64_t output) const {
    using C = scalar::ComputeType<T>;
    std::int64_t best = -1;
    C most{};
    for_each_input(output, [&](std::int64_t input) {
      const T element = x[input];
      const auto value = static_cast<C>(element);
      if (best < 0 || outranks(value, most)) {
        most = value;
        best = input;
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

  PlaneArray(const Planes& planes, std::int64_t plane_size, T* memory)
      : data(memory, planes.span),
        channels(planes.channels),
        image_stride(planes.image_stride),
        size(plane_size) {}
  __device__ Global<T> at(std::int64_t plane) const {
    return data.from(plane / channels * image_stride + plane % channels * size);
  }
};

/// A thread owns an element of y.
template <bool kTwoByTwo, class T>
__global__ void max_pool_kernel(Steps<kTwoByTwo> steps, PlaneArray<const T> x, PlaneArray<T> y,
                                std::int64_t planes) {
  for (auto i = global_thread(); i < planes * y.size; i += all_threads()) {
    const std::int64_t plane = i / y.size, output = i % y.size;
    const auto source = x.at(plane);
    const T element = source[steps.largest(source, output)];
    y.at(plane)[output] = element;
  }
}

/// A thread owns an element of dx: it asks the windows around it where their maximum is.
template <bool kTwoByTwo>
__global__ void max_pool_gradient_kernel(Steps<kTwoByTwo> steps, PlaneArray<const float> x,
                                         PlaneArray<const float> dy, PlaneArray<float> dx,
                                         std::int64_t planes) {
  for (auto i = global_thread(); i < planes * dx.size; i += all_threads()) {
    const std::int64_t plane = i / dx.size, input = i % dx.size;
    const auto source = x.at(plane);
    const auto gradient = dy.at(plane);
    float sum = 0;
    steps.for_each_output(input, [&](std::int64_t output) {
      if (steps.largest(source, output) == input) sum += gradient[output];
    });
    dx.at(plane)[input] = exact::canonical(sum);
  }
}

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

template <int kEach>
__global__ void max_pool_groups_kernel(WindowGroups<kEach> groups, PlaneArray<const float> x,
                                       PlaneArray<float> y) {
  groups.for_each([&](auto image, auto upper, auto lower, auto output) {
    const auto source = x.data.from(image * x.image_stride);
    const auto above = source.template load<2 * kEach>(upper);
    const auto below = source.template load<2 * kEach>(lower);
    Vector<float, kEach> largest;
#pragma unroll
    for (int w = 0; w < kEach; ++w) largest[w] = Largest(above, below, w).value;
    y.data.from(image * y.image_stride).template store<kEach>(output, largest);
  });
}

template <int kEach>
__global__ void max_pool_gradient_groups_kernel(WindowGroups<kEach> groups,
                                                PlaneArray<const float> x,
                                                PlaneArray<const float> dy, PlaneArray<float> dx) {
  groups.for_each([&](auto image, auto upper, auto lower, auto output) {
    const auto source = x.data.from(image * x.image_stride);
    const auto target = dx.data.from(image * dx.image_stride);
    const auto above = source.template load<2 * kEach>(upper);
    const auto below = source.template load<2 * kEach>(lower);
    const auto gradient = dy.data.from(image * dy.image_stride).template load<kEach>(output);
    Vector<float, 2 * kEach> first, second;
#pragma unroll
    for (int w = 0; w < kEach; ++w) {
      const int best = Largest(above, below, w).number;
      const float sum = exact::canonical(0.0F + gradient[w]);
      first[2 * w] = best == 0 ? sum : 0;
      first[2 * w + 1] = best == 1 ? sum : 0;
      second[2 * w] = best == 2 ? sum : 0;
      second[2 * w + 1] = best == 3 ? sum : 0;
    }
    target.template store<2 * kEach>(upper, first);
    target.template store<2 * kEach>(lower, second);
  });
}

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

/// A thread owns an element of y.
template <bool kTwoByTwo>
__global__ void average_pool_kernel(Steps<kTwoByTwo> steps, PlaneArray<const float> x,
                                    Global<const float> divisors, PlaneArray<float> y,
                                    std::int64_t planes) {
  for (auto i = global_thread(); i < planes * y.size; i += all_threads()) {
    const std::int64_t plane = i / y.size, output = i % y.size;
    const auto source = x.at(plane);
    float sum = 0;
    steps.for_each_input(output, [&](std::int64_t input) { sum += source[input]; });
    y.at(plane)[output] = exact::canonical(sum / divisors[output]);
  }
}

/// A thread owns an element of dx.
template <bool kTwoByTwo>
__global__ void average_pool_gradient_kernel(Steps<kTwoByTwo> steps, PlaneArray<const float> dy,
                                             Global<const float> divisors, PlaneArray<float> dx,
                                             std::int64_t planes) {
  for (auto i = global_thread(); i < planes * dx.size; i += all_threads()) {
    const std::int64_t plane = i / dx.size, input = i % dx.size;
    const auto gradient = dy.at(plane);
    float sum = 0;
    steps.for_each_output(input,
                          [&](std::int64_t output) { sum += gradient[output] / divisors[output]; });
    dx.at(plane)[input] = exact::canonical(sum);
  }
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

template <class T>
class MaxPoolKernel : public PoolKernel {
 public:
  explicit MaxPoolKernel(const KernelQuery& query)
      : PoolKernel(query.as<MaxPool>().window(query.inputs[0].spec.shape)),
        x_(query.inputs[0]),
        y_(query.outputs[0]) {}

  void run(const KernelArgs& args) override {
    if constexpr (std::is_same_v<T, float>) {
      if (run_groups<2>(args) || run_groups<1>(args)) return;
    }
    with_steps([&]<bool kTwoByTwo>(const Steps<kTwoByTwo>& steps) {
      launch(args.stream, "max_pool", one_dimension(y_.count * out_size()),
             max_pool_kernel<kTwoByTwo, T>, steps, PlaneArray(x_, in_size(), args.in<T>(0)),
             PlaneArray(y_, out_size(), args.out<T>(0)), y_.count);
    });
  }

 private:
  /// False when it does not fit.
  template <int kEach>
  bool run_groups(const KernelArgs& args) const {
    if (!takes_groups<kEach>(window(), {{x_, args.inputs[0]}}, {y_, args.outputs[0]})) return false;
    const WindowGroups<kEach> groups(window(), y_);
    launch(args.stream, "max_pool_groups", one_dimension(groups.count),
           max_pool_groups_kernel<kEach>, groups, PlaneArray(x_, in_size(), args.in<float>(0)),
           PlaneArray(y_, out_size(), args.out<float>(0)));
    return true;
  }

  Planes x_, y_;
};

std::unique_ptr<Kernel> prepare_max_pool(const KernelQuery& query, Device&) {
  return visit_dtype(query.inputs[0].spec.dtype, [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<MaxPoolKernel<decltype(tag)>>(query);
  });
}

class MaxPoolGradientKernel : public PoolKernel {
 public:
  MaxPoolGradientKernel(const KernelQuery& query, Device&)
      : PoolKernel(query.as<MaxPoolGradient>().window(query.inputs[0].spec.shape)),
        x_(query.inputs[0]),
        dy_(query.inputs[1]),
        dx_(query.outputs[0]) {}

  void run(const KernelArgs& args) override {
    if (run_groups<2>(args) || run_groups<1>(args)) return;
    const PlaneArray x(x_, in_size(), args.in<float>(0));
    const PlaneArray dy(dy_, out_size(), args.in<float>(1));
    const PlaneArray dx(dx_, in_size(), args.out<float>(0));
    with_steps([&]<bool kTwoByTwo>(const Steps<kTwoByTwo>& steps) {
      launch(args.stream, "max_pool_gradient", one_dimension(dx_.count * in_size()),
             max_pool_gradient_kernel<kTwoByTwo>, steps, x, dy, dx, dx_.count);
    });
  }

 private:
  /// False when it does not fit.
  template <int kEach>
  bool run_groups(const KernelArgs& args) const {
    if (!takes_groups<kEach>(window(), {{x_, args.inputs[0]}, {dx_, args.outputs[0]}},
                             {dy_, args.inputs[1]})) {
      return false;
    }
    const WindowGroups<kEach> groups(window(), dx_);
    launch(args.stream, "max_pool_gradient_groups", one_dimension(groups.count),
           max_pool_gradient_groups_kernel<kEach>, groups,
           PlaneArray(x_, in_size(), args.in<float>(0)),
           PlaneArray(dy_, out_size(), args.in<float>(1)),
           PlaneArray(dx_, in_size(), args.out<float>(0)));
    return true;
  }

  Planes x_, dy_, dx_;
};

/// Divisors of the averages of each output position of a plane, in device memory.
class Divisors {
 public:
  Divisors(const Window& window, bool count_include_pad, Device& device) {
    std::vector<float> values;
    for (std::int64_t row = 0; row < window.out[0]; ++row) {
      for (std::int64_t column = 0; column < window.out[1]; ++column) {
        const auto count = average_pool_divisor(window, count_include_pad, row, column);
        values.push_back(static_cast<float>(count));
      }
    }
    count_ = static_cast<std::int64_t>(values.size());
    table_ = copy_to_device(device, values);
  }
  std::size_t bytes() const { return table_->size(); }
  Global<const float> global() const {
    return {reinterpret_cast<const float*>(table_->data()), count_};
  }

 private:
  std::int64_t count_ = 0;
  std::unique_ptr<DeviceBuffer> table_;
};

class AveragePoolKernel : public PoolKernel {
 public:
  AveragePoolKernel(const KernelQuery& query, Device& device)
      : AveragePoolKernel(query, query.as<AveragePool>().window(query.inputs[0].spec.shape),
                          device) {}

  std::size_t resident_bytes() const override { return divisors_.bytes(); }

  void run(const KernelArgs& args) override {
    with_steps([&]<bool kTwoByTwo>(const Steps<kTwoByTwo>& steps) {
      launch(args.stream, "average_pool", one_dimension(y_.count * out_size()),
             average_pool_kernel<kTwoByTwo>, steps, PlaneArray(x_, in_size(), args.in<float>(0)),
             divisors_.global(), PlaneArray(y_, out_size(), args.out<float>(0)), y_.count);
    });
  }

 private:
  AveragePoolKernel(const KernelQuery& query, const Window& window, Device& device)
      : PoolKernel(window),
        x_(query.inputs[0]),
        y_(query.outputs[0]),
        divisors_(window, query.as<AveragePool>().count_include_pad, device) {}

  Planes x_, y_;
  Divisors divisors_;
};

class AveragePoolGradientKernel : public PoolKernel {
 public:
  AveragePoolGradientKernel(const KernelQuery& query, Device& device)
      : PoolKernel(query.as<AveragePoolGradient>().window()),
        dy_(query.inputs[0]),
        dx_(query.outputs[0]),
        divisors_(query.as<AveragePoolGradient>().window(),
                  query.as<AveragePoolGradient>().count_include_pad, device) {}

  std::size_t resident_bytes() const override { return divisors_.bytes(); }

  void run(const KernelArgs& args) override {
    with_steps([&]<bool kTwoByTwo>(const Steps<kTwoByTwo>& steps) {
      launch(args.stream, "average_pool_gradient", one_dimension(dx_.count * in_size()),
             average_pool_gradient_kernel<kTwoByTwo>, steps,
             PlaneArray(dy_, out_size(), args.in<float>(0)), divisors_.global(),
             PlaneArray(dx_, in_size(), args.out<float>(0)), dx_.count);
    });
  }

 private:
  Planes dy_, dx_;
  Divisors divisors_;
};

}  // namespace

void add_pool_kernels(KernelList& list) {
  list.push_back({"MaxPool", "planes", &PoolKernel::accepts, &prepare_max_pool});
  list.push_back(kernel_entry<MaxPoolGradientKernel>("MaxPoolGradient", "planes"));
  list.push_back(kernel_entry<AveragePoolKernel>("AveragePool", "planes"));
  list.push_back(kernel_entry<AveragePoolGradientKernel>("AveragePoolGradient", "planes"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
