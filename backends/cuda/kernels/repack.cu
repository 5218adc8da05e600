// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernels/repack.h"

#include <algorithm>

#include "backends/cuda/kernels/bf16_operands.h"
#include "backends/cuda/kernels/divisor.h"
#include "backends/cuda/kernels/elementwise.cuh"
#include "core/base/checked_math.h"
#include "core/base/exact_math.h"
#include "core/base/float16.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

constexpr int kTile = 32;
constexpr int kWarps = static_cast<int>(kBlock) / kTile;

/// The column behind each row keeps a column of the tile in different banks.
struct RepackTile {
  Shared<float, kTile, kTile + 1> elements;
};

/// Matrices [rows, columns] that lie row by row in x, `x_image` elements apart, and become columns
/// of y.
struct Matrices {
  std::int64_t count = 1, rows = 1, columns = 1;
  std::int64_t x_image = 0, y_image = 0;

  TRIPTYCH_HOST_DEVICE std::int64_t across() const { return (columns + kTile - 1) / kTile; }
  TRIPTYCH_HOST_DEVICE std::int64_t down() const { return (rows + kTile - 1) / kTile; }
};

struct Pack {
  bool round;
  __device__ float operator()(std::int64_t, float value) const {
    return round ? round_to_bf16(value) : value;
  }
};

struct Finish {
  Global<const float> bias;
  bool has_bias, relu;
  __device__ float operator()(std::int64_t channel, float value) const {
    if (has_bias) value = exact::canonical(value + bias[channel]);
    return relu ? exact::relu(value) : value;
  }
};

Finish finish_of(const ChannelFinish& finish, std::int64_t channels) {
  return {Global<const float>(finish.bias, channels), finish.bias != nullptr, finish.relu};
}

/// y[image, column, row] = function(column, x[image, row, column]). A block moves a tile through
/// shared memory: its warps read along x's rows, then write along y's.
template <class In, class Out, class Function>
__global__ void repack_kernel(Global<const In> x, Global<Out> y, Matrices m, Function function) {
  auto& tile = shared<RepackTile>().elements;
  const int lane = static_cast<int>(threadIdx.x) % kTile;
  const int warp = static_cast<int>(threadIdx.x) / kTile;
  const std::int64_t tiles = m.count * m.down() * m.across();
  for (std::int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    const std::int64_t column = t % m.across() * kTile;
    const std::int64_t row = t / m.across() % m.down() * kTile;
    const std::int64_t image = t / m.across() / m.down();
    for (int r = warp; r < kTile; r += kWarps) {
      if (row + r < m.rows && column + lane < m.columns) {
        const In value = x[image * m.x_image + (row + r) * m.columns + column + lane];
        tile(r, lane) = static_cast<float>(value);
      }
    }
    __syncthreads();
    for (int c = warp; c < kTile; c += kWarps) {
      if (row + lane < m.rows && column + c < m.columns) {
        const float value = tile(lane, c);
        y[image * m.y_image + (column + c) * m.rows + row + lane] =
            Out(function(column + c, value));
      }
    }
    __syncthreads();
  }
}

/// One element per thread.
__global__ void finish_channels_kernel(Global<float> y, ImageBlock block, Finish finish) {
  const std::int64_t image_size = block.channels * block.plane;
  for (auto i = global_thread(); i < block.images * image_size; i += all_threads()) {
    const std::int64_t at = i / image_size * block.stride + i % image_size;
    const float value = y[at];
    y[at] = finish(i % image_size / block.plane, value);
  }
}

/// One element per thread.
__global__ void round_elements_kernel(Global<const float> x, Global<BFloat16> y,
                                      std::int64_t elements) {
  for (auto i = global_thread(); i < elements; i += all_threads()) {
    const float value = x[i];
    y[i] = BFloat16{value};
  }
}

/// A piece of eight channels of a position per thread.
__global__ void place_kernel(Global<const BFloat16> x, Global<BFloat16> y, PositionRows rows,
                             Divisor pieces, Finish finish) {
  const std::int64_t all = rows.count * pieces.value();
  for (auto i = global_thread(); i < all; i += all_threads()) {
    const std::int64_t row = pieces.divide(static_cast<std::uint32_t>(i));
    const std::int64_t channel = (i - row * pieces.value()) * kPieceElements;
    const auto values = x.load<kPieceElements>(i * kPieceElements);
    Vector<BFloat16, kPieceElements> finished;
#pragma unroll
    for (int e = 0; e < kPieceElements; ++e) {
      finished[e] = BFloat16(finish(channel + e, static_cast<float>(values[e])));
    }
    y.store<kPieceElements>(row * rows.pitch + channel, finished);
  }
}

/// Planes of few elements, as those of weights: a block turns some channels of an image, and then
/// writes their planes one after another.
constexpr int kFewElements = 31, kTurnedChannels = 128;

struct TurnedTile {
  Shared<float, kFewElements, kTurnedChannels + 1> elements;
};

struct FewPlanes {
  ImageBlock block;
  Divisor plane, across;  ///< across: tiles of an image
};

__global__ void unpack_few_kernel(Global<const BFloat16> x, Global<float> y, FewPlanes of,
                                  Finish finish) {
  auto& tile = shared<TurnedTile>().elements;
  const auto tiles = of.block.images * of.across.value();
  const auto plane = static_cast<int>(of.block.plane);
  for (std::int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    const std::int64_t image = of.across.divide(static_cast<std::uint32_t>(t));
    const std::int64_t channel = (t - image * of.across.value()) * kTurnedChannels;
    const std::int64_t left = of.block.channels - channel;
    const int channels = left < kTurnedChannels ? static_cast<int>(left) : kTurnedChannels;
    for (int i = static_cast<int>(threadIdx.x); i < plane * kTurnedChannels; i += kBlock) {
      const int row = i / kTurnedChannels, column = i % kTurnedChannels;
      if (column >= channels) continue;
      const BFloat16 value = x[(image * plane + row) * of.block.channels + channel + column];
      tile(row, column) = static_cast<float>(value);
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < plane * channels; i += kBlock) {
      const int column = static_cast<int>(of.plane.divide(static_cast<std::uint32_t>(i)));
      const float value = tile(i - column * plane, column);
      y[image * of.block.stride + channel * plane + i] = finish(channel + column, value);
    }
    __syncthreads();
  }
}

constexpr std::int64_t kMostBlocks = std::int64_t{1} << 20;

template <class In, class Out, class Function>
void launch_repack(Stream* stream, Global<const In> x, Global<Out> y, const Matrices& m,
                   const Function& function) {
  const auto tiles = m.count * m.down() * m.across();
  if (tiles == 0) return;
  const LaunchShape shape = {
      {static_cast<unsigned>(std::min(tiles, kMostBlocks))}, {kBlock}, sizeof(RepackTile)};
  launch(stream, "repack", shape, repack_kernel<In, Out, Function>, x, y, m, function);
}

Matrices packing(const ImageBlock& block) {
  return {block.images, block.channels, block.plane, block.stride, block.channels * block.plane};
}

Matrices unpacking(const ImageBlock& block) {
  return {block.images, block.plane, block.channels, block.channels * block.plane, block.stride};
}

void pack(Stream* stream, const float* x, float* y, const ImageBlock& block, bool round) {
  launch_repack(stream, Global<const float>(x, block.span()), Global(y, block.elements()),
                packing(block), Pack{round});
}

void unpack(Stream* stream, const float* x, float* y, const ImageBlock& block,
            const ChannelFinish& finish) {
  launch_repack(stream, Global<const float>(x, block.elements()), Global(y, block.span()),
                unpacking(block), finish_of(finish, block.channels));
}

/// Whole pieces of channels are moved in 16 bytes.
void pack_bf16(Stream* stream, const float* x, void* y, const ImageBlock& block) {
  if (block.elements() == 0) return;
  const Global<const float> from(x, block.span());
  const Global to(static_cast<BFloat16*>(y), block.elements());
  if (block.channels % kPieceElements != 0) {
    launch_repack(stream, from, to, packing(block), Pack{false});
    return;
  }
  round_images(stream, {.x = from,
                        .y = to,
                        .images = block.images,
                        .image_stride = block.stride,
                        .channels = block.channels,
                        .positions = block.plane});
}

void unpack_bf16(Stream* stream, const void* x, float* y, const ImageBlock& block,
                 const ChannelFinish& finish) {
  const Global from(static_cast<const BFloat16*>(x), block.elements());
  const Global to(y, block.span());
  if (block.plane > kFewElements) {
    launch_repack(stream, from, to, unpacking(block), finish_of(finish, block.channels));
    return;
  }
  const auto across = ceil_div(block.channels, kTurnedChannels);
  const auto tiles = block.images * across;
  if (block.elements() == 0) return;
  const LaunchShape shape = {
      {static_cast<unsigned>(std::min(tiles, kMostBlocks))}, {kBlock}, sizeof(TurnedTile)};
  launch(stream, "unpack_few", shape, unpack_few_kernel, from, to,
         FewPlanes{block, Divisor(block.plane), Divisor(across)},
         finish_of(finish, block.channels));
}

void place_bf16(Stream* stream, const void* x, void* y, const PositionRows& rows,
                const ChannelFinish& finish) {
  if (rows.count == 0) return;
  const auto elements = rows.count * rows.channels;
  const Divisor pieces(rows.channels / kPieceElements);
  launch(stream, "place_positions", one_dimension(elements / kPieceElements), place_kernel,
         Global(static_cast<const BFloat16*>(x), elements),
         Global(static_cast<BFloat16*>(y), (rows.count - 1) * rows.pitch + rows.channels), rows,
         pieces, finish_of(finish, rows.channels));
}

void finish(Stream* stream, float* y, const ImageBlock& block, const ChannelFinish& finish) {
  if (block.elements() == 0) return;
  launch(stream, "finish_channels", one_dimension(block.elements()), finish_channels_kernel,
         Global(y, block.span()), block, finish_of(finish, block.channels));
}

void round_all(Stream* stream, const float* x, void* y, std::int64_t elements) {
  if (elements == 0) return;
  launch(stream, "round_elements", one_dimension(elements), round_elements_kernel,
         Global<const float>(x, elements), Global(static_cast<BFloat16*>(y), elements), elements);
}

}  // namespace

const Repacking& repacking() {
  static constexpr Repacking functions = {&pack,        &unpack,     &finish,   &pack_bf16,
                                          &unpack_bf16, &place_bf16, &round_all};
  return functions;
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
