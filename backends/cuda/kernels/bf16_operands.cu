// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernels/bf16_operands.h"

#include "backends/cuda/kernels/channel_tiles.cuh"

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

template <int kEach>
__global__ void __launch_bounds__(256)
    round_images_kernel(ImageRounding of, ChannelTiles<kEach> tiles) {
  tiles.write(
      of.y,
      [&](auto image, auto channel, auto position) {
        const std::int64_t at = image * of.image_stride + channel * of.positions + position;
        return of.x.template load<kEach>(at);
      },
      [](auto, const Vector<float, kEach>& values) { return values; });
}

/// Sizes of the weights.
struct WeightPieces {
  WideDivisor taps, pieces, rows;  ///< pieces: of the channels of a row
};

/// One piece per thread, with neighbours at neighbouring taps: they read adjacent data. All reads
/// of a thread start before the first result.
__global__ void round_weights_kernel(WeightRounding of, WeightPieces sizes) {
  const std::int64_t pieces = sizes.pieces.value();
  const std::int64_t all = of.groups * of.rows * pieces * of.tap_count;
  for (std::int64_t i = global_thread(); i < all; i += all_threads()) {
    const std::int64_t piece_of_all = sizes.taps.divide(i), tap = i - piece_of_all * of.tap_count;
    const std::int64_t row_of_all = sizes.pieces.divide(piece_of_all);
    const std::int64_t first = (piece_of_all - row_of_all * pieces) * kPieceElements;
    const std::int64_t group = sizes.rows.divide(row_of_all), row = row_of_all - group * of.rows;
    const Tap place = of.taps[tap];
    const std::int64_t at = group * of.w_group + row * of.w_row + place.number;
    float weights[kPieceElements] = {};
#pragma unroll
    for (int e = 0; e < kPieceElements; ++e) {
      if (first + e < of.channels) weights[e] = of.w[at + (first + e) * of.w_channel];
    }
    Vector<BFloat16, kPieceElements> rounded;
#pragma unroll
    for (int e = 0; e < kPieceElements; ++e) rounded[e] = BFloat16(weights[e]);
    of.y.store<kPieceElements>((row_of_all * of.tap_count + tap) * pieces * kPieceElements + first,
                               rounded);
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
  const auto run = [&]<int kEach>(std::integral_constant<int, kEach>) {
    const ChannelTiles<kEach> tiles(rounding, rounding.pitch());
    launch(stream, "round_images", tiles.shape(), kInstance<round_images_kernel<kEach>>, rounding,
           tiles);
  };
  if (moves_fours({rounding.positions, rounding.image_stride}, rounding.x.address())) {
    run(std::integral_constant<int, 4>());
  } else {
    run(std::integral_constant<int, 1>());
  }
}

void round_weights(Stream* stream, const WeightRounding& rounding) {
  const auto pieces = padded(rounding.channels) / kPieceElements;
  launch(stream, "round_weights",
         one_dimension(rounding.groups * rounding.rows * pieces * rounding.tap_count),
         kInstance<round_weights_kernel>, rounding,
         WeightPieces{WideDivisor(rounding.tap_count), WideDivisor(pieces),
                      WideDivisor(rounding.rows)});
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
