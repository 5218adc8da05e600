// SPDX-License-Identifier: Apache-2.0
#include "core/ops/batch_normalization.h"

#include "backends/cuda/kernels/channel_pieces.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

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

/// The mean of a channel of the batch, by every thread of its blocks.
__device__ float find_mean(const ChannelPlanes& planes, const Global<const float>& sums,
                           const ChannelValues& values) {
  auto& space = shared<FoldSpace<float>>();
  const std::int64_t channel = planes.channel();
  const float mean = one_nan(total_of(planes, sums, space) / planes.elements());
  if (planes.is_first()) {
    const float old_mean = values.old_mean[channel];
    values.new_mean[channel] = scalar::running_average(old_mean, mean, values.momentum);
    values.mean[channel] = mean;
  }
  return mean;
}

/// The mean, and sums of (x - mean)^2.
template <int kEach>
__global__ void channel_squares_kernel(ChannelPlanes planes, Images<const float> x,
                                       Global<const float> sums, ChannelResults squares,
                                       ChannelValues values) {
  const std::int64_t channel = planes.channel();
  const float mean = find_mean(planes, sums, values);
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

/// The inverse deviation of a channel of the batch, by every thread of its blocks.
__device__ float find_deviation(const ChannelPlanes& planes, const Global<const float>& squares,
                                const ChannelValues& values) {
  auto& space = shared<FoldSpace<float>>();
  const std::int64_t channel = planes.channel();
  const float variance = one_nan(total_of(planes, squares, space) / planes.elements());
  const float deviation = scalar::inverse_deviation(variance, values.epsilon);
  if (planes.is_first()) {
    const float old_variance = values.old_variance[channel];
    values.new_variance[channel] = scalar::running_average(old_variance, variance, values.momentum);
    values.deviation[channel] = deviation;
  }
  return deviation;
}

/// The formula of a channel.
struct ChannelNormalization {
  float mean, factor, bias;
  bool relu;

  __device__ ChannelNormalization(const ChannelValues& values, std::int64_t channel,
                                  float used_mean, float deviation)
      : mean(used_mean), bias(values.bias[channel]), relu(values.relu) {
    const float scale = values.scale[channel];
    factor = scale * deviation;
  }
  /// From the running statistics.
  __device__ static ChannelNormalization running(const ChannelValues& values,
                                                 std::int64_t channel) {
    const float variance = values.old_variance[channel];
    return {values, channel, values.old_mean[channel],
            scalar::inverse_deviation(variance, values.epsilon)};
  }

  template <int kEach>
  __device__ Vector<float, kEach> operator()(Vector<float, kEach> x) const {
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const float normalized = scalar::normalize(x[e], mean, factor, bias);
      x[e] = relu ? exact::relu(normalized) : normalized;
    }
    return x;
  }
};

/// y, from the batch's own statistics when training.
template <bool kTraining, int kEach>
__global__ void normalize_kernel(ChannelPlanes planes, Images<const float> x,
                                 Global<const float> squares, ChannelValues values,
                                 Images<float> y) {
  const std::int64_t channel = planes.channel();
  const auto normalization = [&] {
    if constexpr (kTraining) {
      const float deviation = find_deviation(planes, squares, values);
      return ChannelNormalization(values, channel, values.mean[channel], deviation);
    } else {
      return ChannelNormalization::running(values, channel);
    }
  }();
  planes.for_each_block<1>([&](auto, auto image, auto first, auto count) {
    const auto from = x.at(planes, image, first);
    const auto to = y.at(planes, image, first);
    for_each_element<kEach>(
        count, [&](std::int64_t i) { return from.template load<kEach>(i); },
        [&](std::int64_t i, const Vector<float, kEach>& in) {
          to.template store<kEach>(i, normalization(in));
        });
  });
}

/// The deviations alone, by one block of threads per channel.
__global__ void channel_deviations_kernel(ChannelPlanes planes, Global<const float> squares,
                                          ChannelValues values) {
  find_deviation(planes, squares, values);
}

/// y, channels last in bfloat16. A training's statistics are complete.
template <bool kTraining, int kEach>
__global__ void normalize_channels_last_kernel(ChannelTiles<kEach> tiles, ChannelPlanes planes,
                                               Images<const float> x, ChannelValues values,
                                               Global<BFloat16> y) {
  tiles.write(
      y,
      [&](auto image, auto channel, auto position) {
        const std::int64_t at = image * x.stride + channel * planes.plane + position;
        return x.data.template load<kEach>(at);
      },
      [&](auto channel, const Vector<float, kEach>& in) {
        if constexpr (kTraining) {
          return ChannelNormalization(values, channel, values.mean[channel],
                                      values.deviation[channel])(in);
        } else {
          return ChannelNormalization::running(values, channel)(in);
        }
      });
}

// The same for x that is stored channels last.

/// Statistics of some elements. `squares`: of the distances from their mean.
struct Moments {
  float count = 0, sum = 0, squares = 0;

  /// Those of other elements, too (Chan, Golub and LeVeque, "Updating formulae and a pairwise
  /// algorithm for computing sample variances").
  __device__ void join(const Moments& other) {
    if (other.count == 0) return;
    if (count != 0) {
      const float distance = other.sum / other.count - sum / count;
      squares += distance * distance * (count * other.count / (count + other.count));
    }
    squares += other.squares;
    sum += other.sum;
    count += other.count;
  }
  /// Those of all members of a warp. The result is that of member 0.
  __device__ void join_members() {
#pragma unroll
    for (unsigned half = PieceFolds::kMembers / 2; half > 0; half /= 2) {
      join({__shfl_down_sync(kWholeWarp, count, half), __shfl_down_sync(kWholeWarp, sum, half),
            __shfl_down_sync(kWholeWarp, squares, half)});
    }
  }
};

/// Statistics of the warps of a block, by channel.
struct MomentsSpace {
  static constexpr int kChannels = kLanes / PieceFolds::kMembers * kPieceElements;
  Shared<float, PieceFolds::kWarps, kChannels> counts, sums, squares;

  /// Place of channel c of the running thread's piece.
  __device__ static int place(int c) {
    return lane_of_warp() / PieceFolds::kMembers * kPieceElements + c;
  }
  __device__ void put(int c, const Moments& moments) {
    counts(warp_of_block(), place(c)) = moments.count;
    sums(warp_of_block(), place(c)) = moments.sum;
    squares(warp_of_block(), place(c)) = moments.squares;
  }
  /// Those of all warps.
  __device__ Moments joined(int c) {
    Moments all;
    for (int warp = 0; warp < PieceFolds::kWarps; ++warp) {
      const float count = counts(warp, place(c)), sum = sums(warp, place(c));
      const float square = squares(warp, place(c));
      all.join({count, sum, square});
    }
    return all;
  }
};

/// Statistics of the elements of eight channels that one thread reads. It adds their distances from
/// the first of them. The square of the distance of one of n elements from their mean is at most n
/// times the variance. So of 32 elements at most five of 24 bits cancel.
class PieceMoments {
 public:
  __device__ void add(const ChannelPiece& piece) {
#pragma unroll
    for (int c = 0; c < kPieceElements; ++c) {
      const auto element = static_cast<float>(piece[c]);
      if (count_ == 0) origin_[c] = element - element == 0 ? element : 0;  // finite
      const float distance = element - origin_[c];
      sums_[c] += distance;
      squares_[c] += distance * distance;
    }
    count_ += 1;
  }
  __device__ Moments of(int c) const {
    if (count_ == 0) return {};
    const float squares = squares_[c] - sums_[c] / count_ * sums_[c];
    return {count_, sums_[c] + count_ * origin_[c], squares < 0 ? 0 : squares};
  }

 private:
  float count_ = 0;
  float origin_[kPieceElements] = {}, sums_[kPieceElements] = {}, squares_[kPieceElements] = {};
};

/// Sums, and squares of the distances from the block's mean, of each block of the tree: all that
/// statistics need of x, in one pass.
__global__ void piece_moments_kernel(PieceFolds folds, LastImages<const BFloat16> x,
                                     ChannelResults sums, ChannelResults squares) {
  auto& space = shared<MomentsSpace>();
  folds.for_each_block([&](const PieceBlock& at) {
    PieceMoments moments;
    PieceFolds::for_each_position<8>(
        at, [&](std::int64_t position) { return x.piece(at.image, position, at.channel); },
        [&](const ChannelPiece& piece) { moments.add(piece); });
    __syncthreads();  // the statistics of the block before are read
#pragma unroll
    for (int c = 0; c < kPieceElements; ++c) {
      Moments of_warp = moments.of(c);
      of_warp.join_members();
      if (PieceFolds::member() == 0) space.put(c, of_warp);
    }
    __syncthreads();
    if (warp_of_block() != 0 || at.count == 0) return;
    const int c = PieceFolds::member();  // a thread per channel
    const Moments all = space.joined(c);
    const std::int64_t result = (at.channel + c) * sums.blocks + at.block;
    sums.data[result] = all.sum;
    squares.data[result] = all.squares;
  });
}

/// The statistics, by one block of threads per channel. `squares` become those of the distances
/// from the mean of the channel.
__global__ void complete_moments_kernel(ChannelPlanes planes, Global<const float> sums,
                                        Global<float> squares, Global<const float> complete,
                                        ChannelValues values) {
  const float mean = find_mean(planes, sums, values);
  for (std::int64_t block = threadIdx.x; block < planes.blocks; block += blockDim.x) {
    const std::int64_t at = planes.channel() * planes.blocks + block;
    const auto count = static_cast<float>(planes.elements_of(block));
    const float sum = sums[at], square = squares[at];
    const float distance = sum / count - mean;
    squares[at] = square + distance * distance * count;
  }
  __syncthreads();
  find_deviation(planes, complete, values);
}

/// y. A training's statistics are complete.
template <bool kTraining, class Target>
__global__ void normalize_pieces_kernel(ChannelTiles<kMapPositions> tiles,
                                        LastImages<const BFloat16> x, ChannelValues values,
                                        Target y) {
  map_pieces(
      tiles, x.positions, y,
      [&](auto image, auto position, auto channel) { return x.piece(image, position, channel); },
      [&](auto channel) {
        const auto normalization = [&] {
          if constexpr (kTraining) {
            return ChannelNormalization(values, channel, values.mean[channel],
                                        values.deviation[channel]);
          } else {
            return ChannelNormalization::running(values, channel);
          }
        }();
        return [normalization](const ChannelPiece& piece, int c) {
          return normalization(Vector<float, 1>{{static_cast<float>(piece[c])}})[0];
        };
      });
}

class BatchNormalizationKernel : public Kernel {
 public:
  BatchNormalizationKernel(const KernelQuery& query, Device&)
      : op_(query.as<BatchNormalization>()),
        planes_(query.inputs[0].spec.shape),
        x_(query.inputs[0]),
        y_(query.outputs[0]),
        stored_x_(stored_channels(query.inputs[0])),
        stored_y_(stored_channels(query.outputs[0])) {}
  static Verdict accepts(const KernelQuery& query) { return accepts_dense_vectors(query); }
  static ChannelsLastOperands channels_last(const KernelQuery& query) {
    return {.inputs = {may_be_rounded(query, query.inputs[0])},
            .output = may_be_rounded(query, query.outputs[0])};
  }
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
    if (stored_x_) return normalize_pieces<kTraining>(args, values);
    if (stored_y_) return normalize_channels_last<kTraining>(args, squares, values);
    const auto* x = args.in<float>(0);
    auto* y = args.out<float>(0);
    const bool fours = moves_fours({planes_.plane, x_.stride, y_.stride}, x, y);
    launch(args.stream, "batch_normalization", planes_.shape(),
           fours ? normalize_kernel<kTraining, 4> : normalize_kernel<kTraining, 1>, planes_,
           x_.over(x), squares, values, y_.over(y));
  }

  void complete_deviations(const KernelArgs& args, Global<const float> squares,
                           const ChannelValues& values) const {
    launch(args.stream, "batch_normalization_deviations", planes_.whole_channels().shape(),
           channel_deviations_kernel, planes_.whole_channels(), squares, values);
  }

  template <bool kTraining>
  void normalize_pieces(const KernelArgs& args, const ChannelValues& values) const {
    const auto tiles = stored_x_->tiles<kMapPositions>();
    const auto x = stored_x_->images_over(args.inputs[0]);
    const auto run = [&]<class Target>(const Target& y) {
      launch(args.stream, "batch_normalization_pieces", tiles.shape(),
             normalize_pieces_kernel<kTraining, Target>, tiles, x, values, y);
    };
    if (stored_y_) {
      run(LastPieces<BFloat16>{stored_y_->images_over(args.outputs[0])});
    } else {
      run(PlanePieces<float>{y_.over(args.out<float>(0)), planes_.plane});
    }
  }

  template <bool kTraining>
  void normalize_channels_last(const KernelArgs& args, Global<const float> squares,
                               const ChannelValues& values) const {
    if constexpr (kTraining) complete_deviations(args, squares, values);
    const auto run = [&]<int kEach>(std::integral_constant<int, kEach>) {
      const auto tiles = stored_y_->tiles<kEach>();
      launch(args.stream, "batch_normalization_channels_last", tiles.shape(),
             normalize_channels_last_kernel<kTraining, kEach>, tiles, planes_,
             x_.over(args.in<float>(0)), values, stored_y_->over(args.outputs[0]));
    };
    if (moves_fours({planes_.plane, x_.stride}, args.inputs[0])) {
      run(std::integral_constant<int, 4>());
    } else {
      run(std::integral_constant<int, 1>());
    }
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
    stored_x_ ? find_statistics_of_pieces(args, sums, squares, values)
    : moves_fours({planes_.plane, x_.stride}, args.inputs[0])
        ? find_statistics<4>(args, sums, squares, values)
        : find_statistics<1>(args, sums, squares, values);
    normalize<true>(args, Global<const float>(squares, results), values);
  }

  void find_statistics_of_pieces(const KernelArgs& args, float* sums, float* squares,
                                 const ChannelValues& values) const {
    const PieceFolds folds(planes_);
    const auto whole = planes_.whole_channels();
    const auto results = planes_.channels * planes_.blocks;
    launch(args.stream, "batch_normalization_moments", folds.shape(sizeof(MomentsSpace)),
           piece_moments_kernel, folds, stored_x_->images_over(args.inputs[0]),
           ChannelResults{{sums, results}, planes_.blocks},
           ChannelResults{{squares, results}, planes_.blocks});
    launch(args.stream, "batch_normalization_statistics", whole.shape(), complete_moments_kernel,
           whole, Global<const float>(sums, results), Global<float>(squares, results),
           Global<const float>(squares, results), values);
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
  std::optional<StoredChannels> stored_x_, stored_y_;
};

}  // namespace

void add_batch_normalization_kernels(KernelList& list) {
  list.push_back(channels_last_entry<BatchNormalizationKernel>("BatchNormalization", "channels"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
