// SPDX-License-Identifier: Apache-2.0
#include "core/ops/pool.h"

#include "backends/cuda/kernels/device_table.h"
#include "backends/cuda/kernels/pool_channels_last.cuh"
#include "backends/cuda/kernels/pool_windows.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

/// A thread owns an element of y.
template <bool kTwoByTwo, class T>
__global__ void max_pool_kernel(Steps<kTwoByTwo> steps, PlaneArray<const T> x, PlaneArray<T> y,
                                std::int64_t planes) {
  for (auto i = global_thread(); i < planes * y.size; i += all_threads()) {
    const std::int64_t plane = i / y.size, output = i % y.size;
    const auto source = x.at(plane);
    const T element = source[steps.largest(source, output).input];
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
    steps.for_each_output(input, [&](std::int64_t output, std::int64_t) {
      if (steps.largest(source, output).input == input) sum += gradient[output];
    });
    dx.at(plane)[input] = exact::canonical(sum);
  }
}

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
    SpreadRows<kEach> rows;
#pragma unroll
    for (int w = 0; w < kEach; ++w) rows.put(w, Largest(above, below, w).number, gradient[w]);
    target.template store<2 * kEach>(upper, rows.above);
    target.template store<2 * kEach>(lower, rows.below);
  });
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
    steps.for_each_input(output, [&](std::int64_t input, std::int64_t) { sum += source[input]; });
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
    steps.for_each_output(input, [&](std::int64_t output, std::int64_t) {
      sum += gradient[output] / divisors[output];
    });
    dx.at(plane)[input] = exact::canonical(sum);
  }
}

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
  if (query.inputs[0].channels_last) return std::make_unique<MaxPoolChannelsLast<MaxPool>>(query);
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
  list.push_back(max_pool_entry(MaxPool::kName, &prepare_max_pool));
  list.push_back(kernel_entry<MaxPoolGradientKernel>("MaxPoolGradient", "planes"));
  list.push_back(kernel_entry<AveragePoolKernel>("AveragePool", "planes"));
  list.push_back(kernel_entry<AveragePoolGradientKernel>("AveragePoolGradient", "planes"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
