// SPDX-License-Identifier: Apache-2.0
#include "core/ops/batch_normalization.h"

#include <limits>

#include "backends/cpu/grain.h"
#include "backends/cpu/kernels/elementwise.h"
#include "backends/cpu/kernels/kernels.h"
#include "core/base/reduction.h"
#include "core/ops/scalar_math.h"

namespace triptych::cpu {
namespace {

/// Tensors [N, C, ...] as planes. The channels are shared among the threads, and the blocks of a
/// channel too when there are fewer channels than threads.
struct ChannelPlanes {
  std::int64_t batch, channels, plane;

  explicit ChannelPlanes(const Shape& x)
      : batch(x[0]), channels(x[1]), plane(x.elements_between(2, x.rank())) {}

  std::int64_t blocks() const { return batch * reduction_blocks(plane); }
  float elements() const { return static_cast<float>(batch * plane); }
  std::size_t sum_bytes() const {
    return static_cast<std::size_t>(channels * blocks()) * sizeof(float);
  }

  template <class Body>
  void for_each_channel(const Body& body) const {
    const auto grain = grain_of(batch * plane);
    parallel_for(channels, grain, [&](std::int64_t begin, std::int64_t end) {
      for (auto c = begin; c < end; ++c) body(c);
    });
  }

  /// Calls body(block, image, first, count) for the blocks of the tree over one channel.
  template <class Body>
  void for_each_block(const Body& body) const {
    const auto per_plane = reduction_blocks(plane);
    const auto grain = channels >= max_threads() ? std::numeric_limits<std::int64_t>::max()
                                                 : grain_of(std::min(plane, kReductionBlock));
    parallel_for(batch * per_plane, grain, [&](std::int64_t begin, std::int64_t end) {
      for (auto block = begin; block < end; ++block) {
        const auto first = block % per_plane * kReductionBlock;
        body(block, block / per_plane, first, std::min(kReductionBlock, plane - first));
      }
    });
  }
};

/// One channel of a tensor with images that may have gaps between them.
template <class T>
struct Channel {
  T* data;
  std::int64_t image_stride;

  Channel(T* tensor, const ChannelPlanes& planes, std::int64_t outer_stride, std::int64_t channel)
      : data(tensor + channel * planes.plane), image_stride(outer_stride) {}
  T* at(std::int64_t image, std::int64_t first) const {
    return data + image * image_stride + first;
  }
};

Verdict accepts_strided_images(const KernelQuery& query) {
  for (const auto operands : {query.inputs, query.outputs}) {
    for (const auto& operand : operands) {
      if (operand.spec.shape.rank() < 2 && !operand.is_dense()) {
        return Verdict::no("needs dense vectors");
      }
    }
  }
  return Verdict::yes();
}

class BatchNormalizationKernel : public Kernel {
 public:
  BatchNormalizationKernel(const KernelQuery& query, Device&)
      : op_(query.as<BatchNormalization>()),
        planes_(query.inputs[0].spec.shape),
        x_stride_(query.inputs[0].outer_stride),
        y_stride_(query.outputs[0].outer_stride),
        relu_(!op_.activation.empty()) {}
  static Verdict accepts(const KernelQuery& query) { return accepts_strided_images(query); }
  std::size_t scratch_bytes() const override { return op_.training_mode ? planes_.sum_bytes() : 0; }

  void run(const KernelArgs& args) override {
    planes_.for_each_channel([&](std::int64_t c) {
      const Channel x(args.in<float>(0), planes_, x_stride_, c);
      const Channel y(args.out<float>(0), planes_, y_stride_, c);
      float mean = args.in<float>(3)[c];
      float deviation = 0;
      if (op_.training_mode) {
        auto* sums = reinterpret_cast<float*>(args.scratch) + c * planes_.blocks();
        mean = one_nan(sum(x, sums, 0, [](float value) { return value; }) / planes_.elements());
        const auto square = [](float value) { return value * value; };
        const float variance = one_nan(sum(x, sums, mean, square) / planes_.elements());
        deviation = scalar::inverse_deviation(variance, op_.epsilon);
        args.out<float>(1)[c] = scalar::running_average(args.in<float>(3)[c], mean, op_.momentum);
        args.out<float>(2)[c] =
            scalar::running_average(args.in<float>(4)[c], variance, op_.momentum);
        args.out<float>(3)[c] = mean;
        args.out<float>(4)[c] = deviation;
      } else {
        deviation = scalar::inverse_deviation(args.in<float>(4)[c], op_.epsilon);
      }
      const float factor = args.in<float>(1)[c] * deviation, bias = args.in<float>(2)[c];
      relu_ ? write<true>(x, y, mean, factor, bias) : write<false>(x, y, mean, factor, bias);
    });
  }

 private:
  /// Sum of term(x - shift) over the channel.
  template <class Term>
  float sum(const Channel<const float>& x, float* sums, float shift, const Term& term) const {
    planes_.for_each_block([&](auto block, auto image, auto first, auto count) {
      const auto* values = x.at(image, first);
      auto* target = sums + block;
      simd([=] {
        const auto value = [=](auto i) { return term(values[i] - shift); };
        *target = fold_block(count, value, SumOf<float>());
      });
    });
    return fold_tree(sums, planes_.blocks(), SumOf<float>());
  }

  template <bool kRelu>
  void write(const Channel<const float>& x, const Channel<float>& y, float mean, float factor,
             float bias) const {
    planes_.for_each_block([&](auto, auto image, auto first, auto count) {
      const auto* from = x.at(image, first);
      auto* to = y.at(image, first);
      simd([=] {
#pragma GCC ivdep
        for (std::int64_t i = 0; i < count; ++i) {
          const float value = scalar::normalize(from[i], mean, factor, bias);
          to[i] = kRelu ? scalar::unary<UnaryKind::Relu>(value, {}) : value;
        }
      });
    });
  }

  BatchNormalization op_;
  ChannelPlanes planes_;
  std::int64_t x_stride_, y_stride_;
  bool relu_;
};

class BatchNormalizationGradientKernel : public Kernel {
 public:
  BatchNormalizationGradientKernel(const KernelQuery& query, Device&)
      : planes_(query.inputs[0].spec.shape),
        x_stride_(query.inputs[0].outer_stride),
        dy_stride_(query.inputs[1].outer_stride),
        dx_stride_(query.outputs[0].outer_stride),
        relu_(query.inputs.size() > 5) {}
  static Verdict accepts(const KernelQuery& query) { return accepts_strided_images(query); }
  std::size_t scratch_bytes() const override { return 2 * planes_.sum_bytes(); }

  void run(const KernelArgs& args) override { relu_ ? run_as<true>(args) : run_as<false>(args); }

 private:
  /// Factor and offset of one channel.
  struct Values {
    float mean, deviation, factor, bias;
  };
  /// Gradient that arrives at the normalisation: dy, or of a Relu behind it, dy where that let
  /// pass.
  template <bool kRelu>
  static auto arriving(const float* xs, const float* dys, Values k) {
    return [=](std::int64_t i) {
      const float y = kRelu ? scalar::normalize(xs[i], k.mean, k.factor, k.bias) : 0;
      return kRelu ? scalar::binary<BinaryKind::ReluGradient>(dys[i], y) : dys[i];
    };
  }

  template <bool kRelu>
  void run_as(const KernelArgs& args) const {
    planes_.for_each_channel([&](std::int64_t c) {
      const Channel x(args.in<float>(0), planes_, x_stride_, c);
      const Channel dy(args.in<float>(1), planes_, dy_stride_, c);
      const Channel dx(args.out<float>(0), planes_, dx_stride_, c);
      const float deviation = args.in<float>(4)[c];
      const Values k = {.mean = args.in<float>(3)[c],
                        .deviation = deviation,
                        .factor = args.in<float>(2)[c] * deviation,
                        .bias = kRelu ? args.in<float>(5)[c] : 0};
      auto* sums = reinterpret_cast<float*>(args.scratch) + 2 * c * planes_.blocks();
      auto* products = sums + planes_.blocks();
      fold<kRelu>(x, dy, k, sums, products);
      const float dbias = fold_tree(sums, planes_.blocks(), SumOf<float>());
      const float dscale = fold_tree(products, planes_.blocks(), SumOf<float>());
      args.out<float>(1)[c] = dscale;
      args.out<float>(2)[c] = dbias;
      write<kRelu>(x, dy, dx, k, dbias / planes_.elements(), dscale / planes_.elements());
    });
  }

  /// Block sums of dy and of dy xhat.
  template <bool kRelu>
  void fold(const Channel<const float>& x, const Channel<const float>& dy, Values k, float* sums,
            float* products) const {
    planes_.for_each_block([&](auto block, auto image, auto first, auto count) {
      const auto* xs = x.at(image, first);
      const auto dys = arriving<kRelu>(xs, dy.at(image, first), k);
      auto *sum = sums + block, *product = products + block;
      simd([=] {
        *sum = fold_block(count, dys, SumOf<float>());
        const auto term = [=](auto i) { return dys(i) * ((xs[i] - k.mean) * k.deviation); };
        *product = fold_block(count, term, SumOf<float>());
      });
    });
  }

  template <bool kRelu>
  void write(const Channel<const float>& x, const Channel<const float>& dy,
             const Channel<float>& dx, Values k, float mean_dy, float mean_dy_xhat) const {
    planes_.for_each_block([&](auto, auto image, auto first, auto count) {
      const auto* xs = x.at(image, first);
      const auto dys = arriving<kRelu>(xs, dy.at(image, first), k);
      auto* dxs = dx.at(image, first);
      simd([=] {
#pragma GCC ivdep
        for (std::int64_t i = 0; i < count; ++i) {
          dxs[i] = scalar::normalize_gradient((xs[i] - k.mean) * k.deviation, dys(i), mean_dy,
                                              mean_dy_xhat, k.factor);
        }
      });
    });
  }

  ChannelPlanes planes_;
  std::int64_t x_stride_, dy_stride_, dx_stride_;
  bool relu_;
};

}  // namespace

void add_batch_normalization_kernels(KernelList& list) {
  list.push_back(kernel_entry<BatchNormalizationKernel>("BatchNormalization", "channels"));
  list.push_back(
      kernel_entry<BatchNormalizationGradientKernel>("BatchNormalizationGradient", "channels"));
}

}  // namespace triptych::cpu
