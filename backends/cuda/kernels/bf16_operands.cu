// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernels/bf16_operands.h"

#include "backends/cuda/kernels/elementwise.cuh"
#include "core/base/checked_math.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

using RoundedFour = Vector<BFloat16, 4>;

/// Four elements per thread. kVector: rows of x are whole in them.
template <bool kVector>
__global__ void round_rows_kernel(Global<const float> x, Global<BFloat16> y, std::int64_t rows,
                                  std::int64_t columns) {
  const std::int64_t pitch = (columns + kPieceElements - 1) / kPieceElements * kPieceElements;
  const std::int64_t fours = rows * pitch / 4;
  for (std::int64_t i = global_thread(); i < fours; i += all_threads()) {
    const std::int64_t row = i / (pitch / 4), column = i % (pitch / 4) * 4;
    RoundedFour rounded;
    if constexpr (kVector) {
      if (column < columns) {
        const Vector<float, 4> four = x.template load<4>(row * columns + column);
#pragma unroll
        for (int e = 0; e < 4; ++e) rounded[e] = BFloat16(four[e]);
      }
    } else {
      for (int e = 0; e < 4 && column + e < columns; ++e) {
        rounded[e] = BFloat16(x[row * columns + column + e]);
      }
    }
    y.store<4>(i * 4, rounded);
  }
}

constexpr int kTilePositions = 64, kTileChannels = 32, kWarps = static_cast<int>(kBlock) / 32;

/// Odd rows, so that the eight channels of a piece lie in eight banks.
struct ImageTile {
  Shared<float, kTileChannels, kTilePositions + 1> values;
};

struct ImageTiles {
  std::int64_t across, down;  ///< tiles of positions, of channels
};

/// A block turns a tile of 32 channels by 64 positions: warps read along positions, and write four
/// pieces of eight channels of eight positions each.
__global__ void __launch_bounds__(256)
    round_images_kernel(ImageRounding of, ImageTiles tiles, std::int64_t padded_channels) {
  auto& tile = shared<ImageTile>().values;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t number = blockIdx.x;
  const std::int64_t position = number % tiles.across * kTilePositions;
  const std::int64_t channel = number / tiles.across % tiles.down * kTileChannels;
  const std::int64_t group = number / tiles.across / tiles.down % of.groups;
  const std::int64_t image = number / tiles.across / tiles.down / of.groups;
  const std::int64_t x_first = image * of.image_stride + group * of.channels * of.positions;
  for (int c = warp; c < kTileChannels; c += kWarps) {
    for (int p = lane; p < kTilePositions; p += 32) {
      const bool inside = channel + c < of.channels && position + p < of.positions;
      float value = 0;
      if (inside) value = of.x[x_first + (channel + c) * of.positions + position + p];
      tile(c, p) = value;
    }
  }
  __syncthreads();
  const int p = warp * 8 + lane % 8, c = lane / 8 * 8;
  if (position + p >= of.positions || channel + c >= padded_channels) return;
  Vector<BFloat16, 8> piece;
#pragma unroll
  for (int e = 0; e < 8; ++e) piece[e] = BFloat16(tile(c + e, p));
  const std::int64_t row = image * of.positions + position + p;
  of.y.store<8>((row * of.groups + group) * padded_channels + channel + c, piece);
}

/// One piece per thread, with neighbours at neighbouring taps: they read adjacent data.
__global__ void round_weights_kernel(WeightRounding of, std::int64_t pieces) {
  const std::int64_t all = of.groups * of.rows * pieces * of.tap_count;
  for (std::int64_t i = global_thread(); i < all; i += all_threads()) {
    const std::int64_t tap = i % of.tap_count;
    const std::int64_t piece = i / of.tap_count % pieces;
    const std::int64_t row = i / of.tap_count / pieces % of.rows;
    const std::int64_t group = i / of.tap_count / pieces / of.rows;
    const Tap place = of.taps[tap];
    Vector<BFloat16, 8> rounded;
    for (int e = 0; e < 8 && piece * 8 + e < of.channels; ++e) {
      rounded[e] = BFloat16(of.w[group * of.w_group + row * of.w_row +
                                 (piece * 8 + e) * of.w_channel + place.number]);
    }
    const std::int64_t rows_before = group * of.rows + row;
    of.y.store<8>(((rows_before * of.tap_count + tap) * pieces + piece) * 8, rounded);
  }
}

}  // namespace

void round_rows(Stream* stream, Global<const float> x, Global<BFloat16> y, std::int64_t rows,
                std::int64_t columns) {
  const auto shape = one_dimension(rows * padded(columns) / 4);
  if (columns % 4 == 0) {
    launch(stream, "round_rows", shape, kInstance<round_rows_kernel<true>>, x, y, rows, columns);
  } else {
    launch(stream, "round_rows", shape, kInstance<round_rows_kernel<false>>, x, y, rows, columns);
  }
}

void round_images(Stream* stream, const ImageRounding& rounding) {
  const auto padded_channels = padded(rounding.channels);
  const ImageTiles tiles = {ceil_div(rounding.positions, kTilePositions),
                            ceil_div(padded_channels, kTileChannels)};
  const auto blocks = rounding.images * rounding.groups * tiles.across * tiles.down;
  launch(stream, "round_images", {{static_cast<unsigned>(blocks)}, {kBlock}, sizeof(ImageTile)},
         kInstance<round_images_kernel>, rounding, tiles, padded_channels);
}

void round_weights(Stream* stream, const WeightRounding& rounding) {
  const auto pieces = padded(rounding.channels) / kPieceElements;
  launch(stream, "round_weights",
         one_dimension(rounding.groups * rounding.rows * pieces * rounding.tap_count),
         kInstance<round_weights_kernel>, rounding, pieces);
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
