// SPDX-License-Identifier: Apache-2.0
#include "core/ops/softmax.h"

#include "backends/cuda/kernels/softmax_lines.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

struct Probability {
  static constexpr const char* kLaunch = "softmax";
  static __device__ float apply(float x, float largest, float sum) {
    return scalar::probability(x, largest, sum);
  }
  static __device__ float prepare(float sum) { return sum; }
};

struct LogProbability {
  static constexpr const char* kLaunch = "log_softmax";
  static __device__ float apply(float x, float largest, float log_sum) {
    return scalar::log_probability(x, largest, log_sum);
  }
  static __device__ float prepare(float sum) { return exact::log(sum); }
};

template <class Owner, class Formula>
__global__ void softmax_kernel(Lines lines, Global<const float> x, Global<float> y) {
  for_each_line<Owner>(lines, [&](std::int64_t line) {
    const std::int64_t start = lines.start(line);
    const auto [largest, sum] = LineStatistics::of<Owner>(lines, x, start);
    const float total = Formula::prepare(sum), maximum = largest;
    for_each_element<Owner>(lines, [&](std::int64_t i) {
      const float value = x[start + i * lines.inner];
      y[start + i * lines.inner] = Formula::apply(value, maximum, total);
    });
  });
}

template <class OpType, class Formula>
class SoftmaxKernel : public Kernel {
 public:
  SoftmaxKernel(const KernelQuery& query, Device&) {
    const auto& shape = query.inputs[0].spec.shape;
    lines_ = {AxisLines::along(shape, normalize_axis(query.as<OpType>().axis, shape.rank()))};
  }
  static Verdict accepts(const KernelQuery& query) {
    return query.dense() ? Verdict::yes() : Verdict::no("needs dense operands");
  }

  void run(const KernelArgs& args) override {
    const auto elements = lines_.elements();
    if (elements == 0) return;
    with_owner(lines_, [&]<class Owner>(Owner) {
      launch(args.stream, Formula::kLaunch, line_shape<Owner>(lines_),
             softmax_kernel<Owner, Formula>, lines_, Global(args.in<float>(0), elements),
             Global(args.out<float>(0), elements));
    });
  }

 private:
  Lines lines_;
};

}  // namespace

void add_softmax_kernels(KernelList& list) {
  list.push_back(kernel_entry<SoftmaxKernel<Softmax, Probability>>("Softmax", "lines"));
  list.push_back(kernel_entry<SoftmaxKernel<LogSoftmax, LogProbability>>("LogSoftmax", "lines"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
