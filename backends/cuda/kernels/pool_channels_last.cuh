// Max pooling of images that are stored channels last in bfloat16, by the same rule as of planes. A
// maximum of rounded elements is the rounded maximum. Elements that round to the same number tie,
// and the index is that of the first.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <type_traits>

#include "backends/cuda/kernels/channel_tiles.cuh"
#include "backends/cuda/kernels/pool_windows.cuh"
#include "core/ops/pool.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

using TapIndex = std::uint8_t;  ///< MaxPoolWithIndex's second output

/// The largest elements of a window in eight channels.
struct LargestPiece {
  float values[kPieceElements] = {};
  TapIndex taps[kPieceElements] = {};

  template <bool kTwoByTwo>
  __device__ LargestPiece(const Steps<kTwoByTwo>& steps, const LastImages<const BFloat16>& x,
                          std::int64_t image, std::int64_t channel, std::int64_t output) {
    bool begins = true;
    steps.for_each_input(output, [&](std::int64_t input, std::int64_t tap) {
      const auto piece = x.piece(image, input, channel);
#pragma unroll
      for (int c = 0; c < kPieceElements; ++c) {
        const auto value = static_cast<float>(piece[c]);
        const bool larger = begins || outranks(value, values[c]);
        values[c] = chosen(larger, value, values[c]);
        if (larger) taps[c] = static_cast<TapIndex>(tap);
      }
      begins = false;
    });
  }
};

/// A thread pools eight channels of kEach windows side by side. It moves 16 bytes of x per element
/// of a window and of y per window, and with kIndex kEach bytes of the index per channel.
template <bool kTwoByTwo, int kEach, bool kIndex>
__global__ void max_pool_channels_last_kernel(Steps<kTwoByTwo> steps, ChannelTiles<kEach> tiles,
                                              LastImages<const BFloat16> x, LastImages<BFloat16> y,
                                              PlaneArray<TapIndex> index) {
  tiles.for_tile([&](std::int64_t image, std::int64_t, std::int64_t piece, std::int64_t position) {
    const std::int64_t channel = piece * kPieceElements;
    Vector<TapIndex, kEach> taps[kPieceElements];
#pragma unroll
    for (int p = 0; p < kEach; ++p) {
      const LargestPiece largest(steps, x, image, channel, position + p);
      Vector<BFloat16, kPieceElements> rounded;
#pragma unroll
      for (int c = 0; c < kPieceElements; ++c) {
        rounded[c] = BFloat16(largest.values[c]);
        taps[c][p] = largest.taps[c];
      }
      y.put(image, position + p, channel, rounded);
    }
    if constexpr (kIndex) {
#pragma unroll
      for (int c = 0; c < kPieceElements; ++c) {
        const std::int64_t at = image * index.image_stride + (channel + c) * index.size + position;
        if constexpr (kEach > 1) {
          index.data.template store<kEach>(at, taps[c]);
        } else {
          index.data[at] = taps[c][0];
        }
      }
    }
  });
}

/// True when accesses of kEach indices, and of one tile of kEach outputs, are whole.
template <int kEach>
bool moves_taps(std::int64_t outputs, const Planes& index, const std::byte* memory) {
  return outputs % kEach == 0 && index.image_stride % kEach == 0 && is_aligned<kEach>(memory);
}

/// PoolOp: MaxPool, or MaxPoolWithIndex. Its index stays in planes.
template <class PoolOp>
class MaxPoolChannelsLast : public PoolKernel {
  static constexpr bool kIndex = std::is_same_v<PoolOp, MaxPoolWithIndex>;

 public:
  explicit MaxPoolChannelsLast(const KernelQuery& query)
      : PoolKernel(query.as<PoolOp>().window(query.inputs[0].spec.shape)),
        x_(query.inputs[0]),
        y_(query.outputs[0]) {
    if constexpr (kIndex) index_.emplace(query.outputs[1]);
  }

  void run(const KernelArgs& args) override {
    PlaneArray<TapIndex> index;
    bool fours = out_size() % 4 == 0;
    if constexpr (kIndex) {
      index = PlaneArray(*index_, out_size(), args.out<TapIndex>(1));
      fours = moves_taps<4>(out_size(), *index_, args.outputs[1]);
    }
    fours ? launch_tiles<4>(args, index) : launch_tiles<1>(args, index);
  }

 private:
  template <int kEach>
  void launch_tiles(const KernelArgs& args, const PlaneArray<TapIndex>& index) const {
    const auto x = x_.images_over(args.inputs[0]);
    const auto y = y_.images_over(args.outputs[0]);
    const auto tiles = y_.template tiles<kEach>();
    with_steps([&]<bool kTwoByTwo>(const Steps<kTwoByTwo>& steps) {
      launch(args.stream, "max_pool_channels_last", tiles.shape(),
             max_pool_channels_last_kernel<kTwoByTwo, kEach, kIndex>, steps, tiles, x, y, index);
    });
  }

  StoredChannels x_, y_;
  std::optional<Planes> index_;
};

/// x and y, or neither.
inline ChannelsLastOperands channels_last_max_pool(const KernelQuery& query) {
  const bool takes = may_be_rounded(query, query.outputs[0]);
  return {.inputs = {takes}, .output = takes, .all_or_none = true};
}

inline KernelEntry max_pool_entry(std::string_view op,
                                  std::unique_ptr<Kernel> (*prepare)(const KernelQuery&, Device&)) {
  KernelEntry entry = {op, "planes", &PoolKernel::accepts, prepare};
  entry.channels_last = &channels_last_max_pool;
  return entry;
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
