// SPDX-License-Identifier: Apache-2.0
#include "core/ops/batch_normalization.h"

#include "backends/cuda/kernels/elementwise.cuh"
#include "backends/cuda/kernels/operand_span.h"
#include "backends/cuda/kernels/reduction.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

inline constexpr std::int64_t kWarps = kBlock / kLanes;

/// Tensors [N, C, ...] as planes. `parts` blocks of threads share a channel, so that few channels
/// fill a GPU, too.
struct ChannelPlanes {
  std::int64_t batch = 0, channels = 0, plane = 0;
  std::int64_t blocks = 0;  ///< of the tree per channel
  std::int64_t parts = 1;

  explicit ChannelPlanes(const Shape& x)
      : batch(x[0]), channels(x[1]), plane(x.elements_between(2, x.rank())) {
    blocks = batch * reduction_blocks(plane);
    parts = parts_for(kWarps);
  }
  /// For kernels whose warps work on kEach blocks of the tree at once.
  template <int kEach>
  ChannelPlanes by_teams() const {
    auto planes = *this;
    planes.parts = parts_for(kWarps * kEach);
    return planes;
  }
  LaunchShape shape() const {
    return {{static_cast<unsigned>(channels * parts)}, {kBlock}, sizeof(FoldSpace<float>)};
  }
  std::size_t result_bytes() const {
    return static_cast<std::size_t>(channels * blocks) * sizeof(float);
  }

  __device__ std::int64_t channel() const { return blockIdx.x / parts; }
  /// True when this thread writes the values of a channel.
  __device__ bool is_first() const { return blockIdx.x % parts == 0 && threadIdx.x == 0; }
  __device__ float elements() const { return static_cast<float>(batch * plane); }

  /// Calls visit(block, image, first, count) for the blocks of the tree that belong to this team.
  /// Teams without a block get one beyond the end, without elements.
  template <int kEach, class Visit>
  __device__ void for_each_block(const Visit& visit) const {
    const std::int64_t per_plane = reduction_blocks(plane);
    const std::int64_t warp = blockIdx.x % parts * kWarps + warp_of_block();
    for_each_of_team<kEach>(warp, parts * kWarps, blocks, [&](auto block, bool is_inside) {
      const std::int64_t first = block % per_plane * kReductionBlock;
      const std::int64_t rest = is_inside ? plane - first : 0;
      visit(block, block / per_plane, first, rest < kReductionBlock ? rest : kReductionBlock);
    });
  }

 private:
  /// So that `at_once` blocks of the tree keep a block of threads busy.
  std::int64_t parts_for(std::int64_t at_once) const {
    constexpr std::int64_t kEnough = 2048;
    const auto wanted = kEnough / std::max<std::int64_t>(channels, 1);
    return std::max<std::int64_t>(std::min(wanted, (blocks + at_once - 1) / at_once), 1);
  }
};

/// A tensor with images that may have gaps between them.
template <class T>
struct Images {
  Global<T> data;
  std::int64_t stride = 0;

  /// The elements of a plane from `first` on.
  __device__ Global<T> at(const ChannelPlanes& planes, std::int64_t image,
                          std::int64_t first) const {
    return data.from(image * stride + planes.channel() * planes.plane + first);
  }
};

/// How an operand's images lie.
struct ImageSpan {
  std::int64_t stride = 0, span = 0;

  explicit ImageSpan(const Operand& operand)
      : stride(operand.outer_stride), span(span_of(operand)) {}
  template <class T>
  Images<T> over(T* data) const {
    return {{data, span}, stride};
  }
};

/// Results of the tree per channel.
struct ChannelResults {
  Global<float> data;
  std::int64_t blocks = 0;

  /// `value` is that of the team's member 0.
  template <int kEach>
  __device__ void put(std::int64_t channel, std::int64_t block, float value) const {
    if (FoldTeam<kEach>::member() == 0 && block < blocks) data[channel * blocks + block] = value;
  }
};

/// The fold of a channel's results, by every thread of the block.
__device__ float total_of(const ChannelPlanes& planes, Global<const float> results,
                          FoldSpace<float>& space) {
  return fold_results<SumOf<float>>(results.from(planes.channel() * planes.blocks), planes.blocks,
                                    space);
}

Verdict accepts_dense_vectors(const KernelQuery& query) {
  for (const auto operands : {query.inputs, query.outputs}) {
    for (const auto& operand : operands) {
      if (operand.spec.shape.rank() < 2 && !operand.is_dense()) {
        return Verdict::no("needs dense vectors");
      }
    }
  }
  return Verdict::yes();
}

/// A value per channel: inputs, and outputs in training.
struct ChannelValues {
  Global<const float> scale, bias, old_mean, old_variance;
  Global<float> new_mean, new_variance, mean, deviation;
  float epsilon = 0, momentum = 0;
  bool relu = false;
};

template <int kEach>
__global__ void channel_sums_kernel(ChannelPlanes planes, Images<const float> x,
                                    ChannelResults sums) {
  planes.for_each_block<kEach>([&](auto block, auto image, auto first, auto count) {
    const auto here = x.at(planes, image, first);
    const auto read = [&](std::int64_t i) { return here.template load<kEach>(i); };
    const float sum = fold_block_by_team<SumOf<float>, kEach>(count, read);
    sums.put<kEach>(planes.channel(), block, sum);
  });
}

/// The mean, and sums of (x - mean)^2.
template <int kEach>
__global__ void channel_squares_kernel(ChannelPlanes planes, Images<const float> x,
                                       Global<const float> sums, ChannelResults squares,
                                       ChannelValues values) {
  auto& space = shared<FoldSpace<float>>();
  const std::int64_t channel = planes.channel();
  const float mean = one_nan(total_of(planes, sums, space) / planes.elements());
  if (planes.is_first()) {
    const float old_mean = values.old_mean[channel];
    values.new_mean[channel] = scalar::running_average(old_mean, mean, values.momentum);
    values.mean[channel] = mean;
  }
  planes.for_each_block<kEach>([&](auto block, auto image, auto first, auto count) {
    const auto here = x.at(planes, image, first);
    const auto square = [&](std::int64_t i) {
      auto value = here.template load<kEach>(i);
#pragma unroll
      for (int e = 0; e < kEach; ++e) value[e] = (value[e] - mean) * (value[e] - mean);
      return value;
    };
    const float sum = fold_block_by_team<SumOf<float>, kEach>(count, square);
    squares.put<kEach>(channel, block, sum);
  });
}

/// Calls read(i) for the elements i, i + 1, ... of a block of the tree, kEach at a time, and
/// write(i, its result). Two reads start before the first write, because nvcc must assume that the
/// write changes their operands.
template <int kEach, class Read, class Write>
__device__ void for_each_element(std::int64_t count, const Read& read, const Write& write) {
  const std::int64_t step = kEach * kLanes;
  std::int64_t i = kEach * lane_of_warp();
  for (; i + step < count; i += 2 * step) {
    const auto now = read(i), next = read(i + step);
    write(i, now);
    write(i + step, next);
  }
  if (i < count) write(i, read(i));
}

/// y, from the batch's own statistics when training.
template <bool kTraining, int kEach>
__global__ void normalize_kernel(ChannelPlanes planes, Images<const float> x,
                                 Global<const float> squares, ChannelValues values,
                                 Images<float> y) {
  const std::int64_t channel = planes.channel();
  float mean = 0, deviation = 0;
  if constexpr (kTraining) {
    auto& space = shared<FoldSpace<float>>();
    const float variance = one_nan(total_of(planes, squares, space) / planes.elements());
    mean = values.mean[channel];
    deviation = scalar::inverse_deviation(variance, values.epsilon);
    if (planes.is_first()) {
      const float old_variance = values.old_variance[channel];
      values.new_variance[channel] =
          scalar::running_average(old_variance, variance, values.momentum);
      values.deviation[channel] = deviation;
    }
  } else {
    mean = values.old_mean[channel];
    deviation = scalar::inverse_deviation(values.old_variance[channel], values.epsilon);
  }
  const float factor = values.scale[channel] * deviation, bias = values.bias[channel];
  planes.for_each_block<1>([&](auto, auto image, auto first, auto count) {
    const auto from = x.at(planes, image, first);
    const auto to = y.at(planes, image, first);
    for_each_element<kEach>(
        count, [&](std::int64_t i) { return from.template load<kEach>(i); },
        [&](std::int64_t i, const Vector<float, kEach>& in) {
          Vector<float, kEach> out;
#pragma unroll
          for (int e = 0; e < kEach; ++e) {
            const float normalized = scalar::normalize(in[e], mean, factor, bias);
            out[e] = values.relu ? exact::relu(normalized) : normalized;
          }
          to.template store<kEach>(i, out);
        });
  });
}

class BatchNormalizationKernel : public Kernel {
 public:
  BatchNormalizationKernel(const KernelQuery& query, Device&)
      : op_(query.as<BatchNormalization>()),
        planes_(query.inputs[0].spec.shape),
        x_(query.inputs[0]),
        y_(query.outputs[0]) {}
  static Verdict accepts(const KernelQuery& query) { return accepts_dense_vectors(query); }
  std::size_t scratch_bytes() const override {
    return op_.training_mode ? 2 * planes_.result_bytes() : 0;
  }

  void run(const KernelArgs& args) override {
    if (planes_.channels == 0) return;
    op_.training_mode ? train(args) : infer(args);
  }

 private:
  ChannelValues values_of(const KernelArgs& args) const {
    const auto channels = planes_.channels;
    return {.scale = {args.in<float>(1), channels},
            .bias = {args.in<float>(2), channels},
            .old_mean = {args.in<float>(3), channels},
            .old_variance = {args.in<float>(4), channels},
            .epsilon = op_.epsilon,
            .momentum = op_.momentum,
            .relu = !op_.activation.empty()};
  }

  void infer(const KernelArgs& args) const {
    normalize<false>(args, Global<const float>(), values_of(args));
  }

  template <bool kTraining>
  void normalize(const KernelArgs& args, Global<const float> squares,
                 const ChannelValues& values) const {
    const auto* x = args.in<float>(0);
    auto* y = args.out<float>(0);
    const bool fours = moves_fours({planes_.plane, x_.stride, y_.stride}, x, y);
    launch(args.stream, "batch_normalization", planes_.shape(),
           fours ? normalize_kernel<kTraining, 4> : normalize_kernel<kTraining, 1>, planes_,
           x_.over(x), squares, values, y_.over(y));
  }

  void train(const KernelArgs& args) const {
    const auto channels = planes_.channels, results = channels * planes_.blocks;
    auto values = values_of(args);
    values.new_mean = {args.out<float>(1), channels};
    values.new_variance = {args.out<float>(2), channels};
    values.mean = {args.out<float>(3), channels};
    values.deviation = {args.out<float>(4), channels};
    auto* sums = reinterpret_cast<float*>(args.scratch);
    auto* squares = sums + results;
    moves_fours({planes_.plane, x_.stride}, args.inputs[0])
        ? find_statistics<4>(args, sums, squares, values)
        : find_statistics<1>(args, sums, squares, values);
    normalize<true>(args, Global<const float>(squares, results), values);
  }

  template <int kEach>
  void find_statistics(const KernelArgs& args, float* sums, float* squares,
                       const ChannelValues& values) const {
    const auto planes = planes_.by_teams<kEach>();
    const auto results = planes.channels * planes.blocks;
    const auto x = x_.over(args.in<float>(0));
    launch(args.stream, "batch_normalization_sums", planes.shape(), channel_sums_kernel<kEach>,
           planes, x, ChannelResults{{sums, results}, planes.blocks});
    launch(args.stream, "batch_normalization_squares", planes.shape(),
           channel_squares_kernel<kEach>, planes, x, Global<const float>(sums, results),
           ChannelResults{{squares, results}, planes.blocks}, values);
  }

  BatchNormalization op_;
  ChannelPlanes planes_;
  ImageSpan x_, y_;
};

/// A value per channel. A bias where a Relu stands behind the normalisation.
struct GradientValues {
  Global<const float> scale, mean, deviation, bias;
  Global<float> dscale, dbias;
  bool relu = false;
};

/// The values of one channel.
struct ChannelGradient {
  float mean, deviation, factor, bias;
  bool relu;

  __device__ ChannelGradient(const GradientValues& values, std::int64_t channel)
      : mean(values.mean[channel]), deviation(values.deviation[channel]), relu(values.relu) {
    const float scale = values.scale[channel];
    factor = scale * deviation;
    bias = 0;
    if (relu) bias = values.bias[channel];
  }
  /// The gradient that arrives at the normalisation of x: dy where a Relu let y pass.
  __device__ float arriving(float x, float dy) const {
    if (!relu) return dy;
    return scalar::binary<BinaryKind::ReluGradient>(dy, scalar::normalize(x, mean, factor, bias));
  }
};

/// Neighbours of x and dy.
template <int kEach>
struct InputPair {
  Vector<float, kEach> x, dy;
};

/// Sums of dy and of dy xhat.
template <int kEach>
__global__ void gradient_sums_kernel(ChannelPlanes planes, Images<const float> x,
                                     Images<const float> dy, GradientValues values,
                                     ChannelResults sums, ChannelResults products) {
  const std::int64_t channel = planes.channel();
  const ChannelGradient k(values, channel);
  planes.for_each_block<kEach>([&](auto block, auto image, auto first, auto count) {
    const auto xs = x.at(planes, image, first), dys = dy.at(planes, image, first);
    Vector<float, kEach> sum = {}, product = {};  // of this thread's lanes of the tree
    const auto read = [&](std::int64_t i) {
      return InputPair<kEach>{xs.template load<kEach>(i), dys.template load<kEach>(i)};
    };
    constexpr int kAhead = kEach == 1 ? 8 : 4;
    for_each_of_lanes<kEach, kAhead>(count, read, [&](const InputPair<kEach>& in) {
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        const float gradient = k.arriving(in.x[e], in.dy[e]);
        sum[e] += gradient;
        product[e] += gradient * ((in.x[e] - k.mean) * k.deviation);
      }
    });
    const float sum_of_block = fold_lanes<SumOf<float>>(sum);
    sums.put<kEach>(channel, block, sum_of_block);
    const float product_of_block = fold_lanes<SumOf<float>>(product);
    products.put<kEach>(channel, block, product_of_block);
  });
}

template <int kEach>
__global__ void normalize_gradient_kernel(ChannelPlanes planes, Images<const float> x,
                                          Images<const float> dy, Global<const float> sums,
                                          Global<const float> products, GradientValues values,
                                          Images<float> dx) {
  auto& space = shared<FoldSpace<float>>();
  const std::int64_t channel = planes.channel();
  const float dbias = total_of(planes, sums, space);
  const float dscale = total_of(planes, products, space);
  if (planes.is_first()) {
    values.dscale[channel] = dscale;
    values.dbias[channel] = dbias;
  }
  const ChannelGradient k(values, channel);
  const float mean_dy = dbias / planes.elements(), mean_dy_xhat = dscale / planes.elements();
  planes.for_each_block<1>([&](auto, auto image, auto first, auto count) {
    const auto xs = x.at(planes, image, first), dys = dy.at(planes, image, first);
    const auto dxs = dx.at(planes, image, first);
    for_each_element<kEach>(
        count,
        [&](std::int64_t i) {
          return InputPair<kEach>{xs.template load<kEach>(i), dys.template load<kEach>(i)};
        },
        [&](std::int64_t i, const InputPair<kEach>& in) {
          Vector<float, kEach> out;
#pragma unroll
          for (int e = 0; e < kEach; ++e) {
            out[e] = scalar::normalize_gradient((in.x[e] - k.mean) * k.deviation,
                                                k.arriving(in.x[e], in.dy[e]), mean_dy,
                                                mean_dy_xhat, k.factor);
          }
          dxs.template store<kEach>(i, out);
        });
  });
}

class BatchNormalizationGradientKernel : public Kernel {
 public:
  BatchNormalizationGradientKernel(const KernelQuery& query, Device&)
      : planes_(query.inputs[0].spec.shape),
        x_(query.inputs[0]),
        dy_(query.inputs[1]),
        dx_(query.outputs[0]),
        relu_(!query.as<BatchNormalizationGradient>().activation.empty()) {}
  static Verdict accepts(const KernelQuery& query) { return accepts_dense_vectors(query); }
  std::size_t scratch_bytes() const override { return 2 * planes_.result_bytes(); }

  void run(const KernelArgs& args) override {
    const auto channels = planes_.channels, results = channels * planes_.blocks;
    if (channels == 0) return;
    auto* sums = reinterpret_cast<float*>(args.scratch);
    auto* products = sums + results;
    const auto x = x_.over(args.in<float>(0)), dy = dy_.over(args.in<float>(1));
    const auto dx = dx_.over(args.out<float>(0));
    GradientValues values = {.scale = {args.in<float>(2), channels},
                             .mean = {args.in<float>(3), channels},
                             .deviation = {args.in<float>(4), channels},
                             .dscale = {args.out<float>(1), channels},
                             .dbias = {args.out<float>(2), channels},
                             .relu = relu_};
    if (relu_) values.bias = {args.in<float>(5), channels};
    const auto plane = planes_.plane;
    const bool reads_fours =
        moves_fours({plane, x_.stride, dy_.stride}, args.inputs[0], args.inputs[1]);
    const auto folded = reads_fours ? planes_.by_teams<4>() : planes_;
    launch(args.stream, "batch_normalization_gradient_sums", folded.shape(),
           reads_fours ? gradient_sums_kernel<4> : gradient_sums_kernel<1>, folded, x, dy, values,
           ChannelResults{{sums, results}, planes_.blocks},
           ChannelResults{{products, results}, planes_.blocks});
    const bool fours = reads_fours && moves_fours({dx_.stride}, args.outputs[0]);
    launch(args.stream, "batch_normalization_gradient", planes_.shape(),
           fours ? normalize_gradient_kernel<4> : normalize_gradient_kernel<1>, planes_, x, dy,
           Global<const float>(sums, results), Global<const float>(products, results), values, dx);
  }

 private:
  ChannelPlanes planes_;
  ImageSpan x_, dy_, dx_;
  bool relu_;
};

}  // namespace

void add_batch_normalization_kernels(KernelList& list) {
  list.push_back(kernel_entry<BatchNormalizationKernel>("BatchNormalization", "channels"));
  list.push_back(
      kernel_entry<BatchNormalizationGradientKernel>("BatchNormalizationGradient", "channels"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
