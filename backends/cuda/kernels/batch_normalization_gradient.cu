// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "backends/cuda/kernels/channel_pieces.cuh"
#include "core/ops/batch_normalization.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

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

  __device__ ChannelGradient(float channel_mean, float channel_deviation, float channel_factor,
                             float channel_bias, bool has_relu)
      : mean(channel_mean),
        deviation(channel_deviation),
        factor(channel_factor),
        bias(channel_bias),
        relu(has_relu) {}
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

/// The totals of a channel, by every thread of its blocks.
struct GradientTotals {
  float dscale, dbias;

  __device__ GradientTotals(const ChannelPlanes& planes, const Global<const float>& sums,
                            const Global<const float>& products, const GradientValues& values) {
    auto& space = shared<FoldSpace<float>>();
    dbias = total_of(planes, sums, space);
    dscale = total_of(planes, products, space);
    if (planes.is_first()) {
      values.dscale[planes.channel()] = dscale;
      values.dbias[planes.channel()] = dbias;
    }
  }
};

/// The formula of dx of a channel.
struct InputGradient {
  ChannelGradient channel;
  float mean_dy, mean_dy_xhat;

  __device__ InputGradient(const GradientValues& values, std::int64_t number, float dscale,
                           float dbias, float elements)
      : channel(values, number), mean_dy(dbias / elements), mean_dy_xhat(dscale / elements) {}

  template <int kEach>
  __device__ Vector<float, kEach> operator()(const InputPair<kEach>& in) const {
    Vector<float, kEach> dx;
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      dx[e] = scalar::normalize_gradient((in.x[e] - channel.mean) * channel.deviation,
                                         channel.arriving(in.x[e], in.dy[e]), mean_dy, mean_dy_xhat,
                                         channel.factor);
    }
    return dx;
  }
};

template <int kEach>
__global__ void normalize_gradient_kernel(ChannelPlanes planes, Images<const float> x,
                                          Images<const float> dy, Global<const float> sums,
                                          Global<const float> products, GradientValues values,
                                          Images<float> dx) {
  const GradientTotals totals(planes, sums, products, values);
  const InputGradient gradient(values, planes.channel(), totals.dscale, totals.dbias,
                               planes.elements());
  planes.for_each_block<1>([&](auto, auto image, auto first, auto count) {
    const auto xs = x.at(planes, image, first), dys = dy.at(planes, image, first);
    const auto dxs = dx.at(planes, image, first);
    for_each_element<kEach>(
        count,
        [&](std::int64_t i) {
          return InputPair<kEach>{xs.template load<kEach>(i), dys.template load<kEach>(i)};
        },
        [&](std::int64_t i, const InputPair<kEach>& in) {
          dxs.template store<kEach>(i, gradient(in));
        });
  });
}

/// The totals alone, by one block of threads per channel.
__global__ void gradient_totals_kernel(ChannelPlanes planes, Global<const float> sums,
                                       Global<const float> products, GradientValues values) {
  GradientTotals(planes, sums, products, values);
}

/// dx, channels last in bfloat16. The totals are complete.
template <int kEach>
__global__ void normalize_gradient_channels_last_kernel(ChannelTiles<kEach> tiles,
                                                        ChannelPlanes planes, Images<const float> x,
                                                        Images<const float> dy,
                                                        GradientValues values,
                                                        Global<BFloat16> dx) {
  tiles.write(
      dx,
      [&](auto image, auto channel, auto position) {
        const std::int64_t at = channel * planes.plane + position;
        return InputPair<kEach>{x.data.template load<kEach>(image * x.stride + at),
                                dy.data.template load<kEach>(image * dy.stride + at)};
      },
      [&](auto channel, const InputPair<kEach>& in) {
        const float dscale = values.dscale[channel], dbias = values.dbias[channel];
        return InputGradient(values, channel, dscale, dbias, planes.elements())(in);
      });
}

// The same where x or dy is stored channels last. X, Dy: LastPieces or PlanePieces.

template <class X, class Dy>
struct PieceSources {
  X x;
  Dy dy;

  struct Pieces {
    decltype(std::declval<X>().read(0, 0, 0)) x;
    decltype(std::declval<Dy>().read(0, 0, 0)) dy;

    __device__ InputPair<1> at(int c) const {
      return {{{static_cast<float>(x[c])}}, {{static_cast<float>(dy[c])}}};
    }
  };
  __device__ Pieces read(std::int64_t image, std::int64_t position, std::int64_t channel) const {
    return {x.read(image, position, channel), dy.read(image, position, channel)};
  }
};

/// Terms of PieceFolds: dy and dy xhat.
template <class Sources>
struct GradientTerms {
  static constexpr int kSums = 2;
  Sources from;
  GradientValues values;
  Global<float> results[kSums];
  /// Values of the eight channels.
  float mean[kPieceElements] = {}, deviation[kPieceElements] = {};
  float factor[kPieceElements] = {}, bias[kPieceElements] = {};

  __device__ void begin(std::int64_t channel) {
#pragma unroll
    for (int c = 0; c < kPieceElements; ++c) {
      const ChannelGradient k(values, channel + c);
      mean[c] = k.mean;
      deviation[c] = k.deviation;
      factor[c] = k.factor;
      bias[c] = k.bias;
    }
  }
  __device__ auto read(std::int64_t image, std::int64_t position, std::int64_t channel) const {
    return from.read(image, position, channel);
  }
  __device__ void add(const typename Sources::Pieces& pieces, int c, float (&sums)[kSums]) const {
    const ChannelGradient k(mean[c], deviation[c], factor[c], bias[c], values.relu);
    const auto in = pieces.at(c);
    const float gradient = k.arriving(in.x[0], in.dy[0]);
    sums[0] += gradient;
    sums[1] += gradient * ((in.x[0] - k.mean) * k.deviation);
  }
};

template <class Sources>
__global__ void gradient_pieces_kernel(PieceFolds folds, GradientTerms<Sources> terms) {
  folds.fold(terms);
}

/// dx. The totals are complete.
template <class Sources, class Target>
__global__ void normalize_gradient_pieces_kernel(ChannelTiles<kMapPositions> tiles,
                                                 ChannelPlanes planes, Sources from,
                                                 GradientValues values, Target dx) {
  map_pieces(
      tiles, planes.plane, dx,
      [&](auto image, auto position, auto channel) { return from.read(image, position, channel); },
      [&](auto channel) {
        const float dscale = values.dscale[channel], dbias = values.dbias[channel];
        const InputGradient gradient(values, channel, dscale, dbias, planes.elements());
        return [gradient](const typename Sources::Pieces& pieces, int c) {
          return gradient(pieces.at(c))[0];
        };
      });
}

class BatchNormalizationGradientKernel : public Kernel {
 public:
  BatchNormalizationGradientKernel(const KernelQuery& query, Device&)
      : planes_(query.inputs[0].spec.shape),
        x_(query.inputs[0]),
        dy_(query.inputs[1]),
        dx_(query.outputs[0]),
        stored_x_(stored_channels(query.inputs[0])),
        stored_dy_(stored_channels(query.inputs[1])),
        stored_dx_(stored_channels(query.outputs[0])),
        relu_(!query.as<BatchNormalizationGradient>().activation.empty()) {}
  static Verdict accepts(const KernelQuery& query) { return accepts_dense_vectors(query); }
  static ChannelsLastOperands channels_last(const KernelQuery& query) {
    const bool takes = may_be_rounded(query, query.inputs[0]);
    return {.inputs = {takes, takes}, .output = takes};
  }
  std::size_t scratch_bytes() const override { return 2 * planes_.result_bytes(); }

  void run(const KernelArgs& args) override {
    const auto channels = planes_.channels, results = channels * planes_.blocks;
    if (channels == 0) return;
    auto* sums = reinterpret_cast<float*>(args.scratch);
    auto* products = sums + results;
    const auto x = x_.over(args.in<float>(0)), dy = dy_.over(args.in<float>(1));
    GradientValues values = {.scale = {args.in<float>(2), channels},
                             .mean = {args.in<float>(3), channels},
                             .deviation = {args.in<float>(4), channels},
                             .dscale = {args.out<float>(1), channels},
                             .dbias = {args.out<float>(2), channels},
                             .relu = relu_};
    if (relu_) values.bias = {args.in<float>(5), channels};
    if (stored_x_ || stored_dy_) return run_pieces(args, sums, products, values);
    const auto plane = planes_.plane;
    const bool reads_fours =
        moves_fours({plane, x_.stride, dy_.stride}, args.inputs[0], args.inputs[1]);
    const auto folded = reads_fours ? planes_.by_teams<4>() : planes_;
    launch(args.stream, "batch_normalization_gradient_sums", folded.shape(),
           reads_fours ? gradient_sums_kernel<4> : gradient_sums_kernel<1>, folded, x, dy, values,
           ChannelResults{{sums, results}, planes_.blocks},
           ChannelResults{{products, results}, planes_.blocks});
    const Global<const float> all_sums(sums, results), all_products(products, results);
    if (stored_dx_) {
      complete_totals(args, all_sums, all_products, values);
      return reads_fours ? write_channels_last<4>(args, values)
                         : write_channels_last<1>(args, values);
    }
    const bool fours = reads_fours && moves_fours({dx_.stride}, args.outputs[0]);
    launch(args.stream, "batch_normalization_gradient", planes_.shape(),
           fours ? normalize_gradient_kernel<4> : normalize_gradient_kernel<1>, planes_, x, dy,
           all_sums, all_products, values, dx_.over(args.out<float>(0)));
  }

 private:
  void complete_totals(const KernelArgs& args, Global<const float> sums,
                       Global<const float> products, const GradientValues& values) const {
    launch(args.stream, "batch_normalization_gradient_totals", planes_.whole_channels().shape(),
           gradient_totals_kernel, planes_.whole_channels(), sums, products, values);
  }

  /// x or dy is stored channels last.
  void run_pieces(const KernelArgs& args, float* sums, float* products,
                  const GradientValues& values) const {
    const auto run = [&]<class X, class Dy>(const X& x, const Dy& dy) {
      run_sources(args, PieceSources<X, Dy>{x, dy}, sums, products, values);
    };
    const auto in_planes = [&](const ImageSpan& span, std::size_t input) {
      return PlanePieces<const float>{span.over(args.in<float>(input)), planes_.plane};
    };
    const auto last = [&](const StoredChannels& stored, std::size_t input) {
      return LastPieces<const BFloat16>{stored.images_over(args.inputs[input])};
    };
    if (!stored_x_) return run(in_planes(x_, 0), last(*stored_dy_, 1));
    if (!stored_dy_) return run(last(*stored_x_, 0), in_planes(dy_, 1));
    run(last(*stored_x_, 0), last(*stored_dy_, 1));
  }

  template <class Sources>
  void run_sources(const KernelArgs& args, const Sources& from, float* sums, float* products,
                   const GradientValues& values) const {
    const auto results = planes_.channels * planes_.blocks;
    const PieceFolds folds(planes_);
    launch(args.stream, "batch_normalization_gradient_sums_of_pieces",
           folds.shape(sizeof(PieceFolds::Space<2>)), gradient_pieces_kernel<Sources>, folds,
           GradientTerms<Sources>{from, values, {{sums, results}, {products, results}}});
    complete_totals(args, {sums, results}, {products, results}, values);
    const ChannelTiles<kMapPositions> tiles = piece_tiles();
    const auto write = [&]<class Target>(const Target& dx) {
      launch(args.stream, "batch_normalization_gradient_pieces", tiles.shape(),
             normalize_gradient_pieces_kernel<Sources, Target>, tiles, planes_, from, values, dx);
    };
    if (stored_dx_) {
      write(LastPieces<BFloat16>{stored_dx_->images_over(args.outputs[0])});
    } else {
      write(PlanePieces<float>{dx_.over(args.out<float>(0)), planes_.plane});
    }
  }

  ChannelTiles<kMapPositions> piece_tiles() const {
    return (stored_x_ ? stored_x_ : stored_dy_)->template tiles<kMapPositions>();
  }

  template <int kEach>
  void write_channels_last(const KernelArgs& args, const GradientValues& values) const {
    const auto tiles = stored_dx_->tiles<kEach>();
    launch(args.stream, "batch_normalization_gradient_channels_last", tiles.shape(),
           normalize_gradient_channels_last_kernel<kEach>, tiles, planes_,
           x_.over(args.in<float>(0)), dy_.over(args.in<float>(1)), values,
           stored_dx_->over(args.outputs[0]));
  }

  ChannelPlanes planes_;
  ImageSpan x_, dy_, dx_;
  std::optional<StoredChannels> stored_x_, stored_dy_, stored_dx_;
  bool relu_;
};

}  // namespace

void add_batch_normalization_gradient_kernels(KernelList& list) {
  list.push_back(channels_last_entry<BatchNormalizationGradientKernel>("BatchNormalizationGradient",
                                                                       "channels"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
