// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/packing/packing.h"

#include <algorithm>

#include "core/base/float16.h"

namespace triptych::systolic {
namespace {

// Positions whose values stay in the cache while they change from planes to vectors.
constexpr std::int64_t kBlock = 64;
constexpr std::uint16_t kMinusZero = 0x8000;

/// Writes [position][channel], `pitch` elements from one position to the next.
struct Transposer {
  std::int64_t position_stride, channel_stride, pitch;

  void run(const float* from, std::uint16_t* to, std::int64_t positions,
           std::int64_t channels) const {
    for (std::int64_t block = 0; block < positions; block += kBlock) {
      const auto end = std::min(block + kBlock, positions);
      if (channel_stride == 1) {
        for (auto p = block; p < end; ++p) {
          const float* row = from + p * position_stride;
          for (std::int64_t c = 0; c < channels; ++c) to[p * pitch + c] = bf16_bits(row[c]);
        }
        continue;
      }
      for (std::int64_t c = 0; c < channels; ++c) {
        const float* plane = from + c * channel_stride;
        for (auto p = block; p < end; ++p) {
          to[p * pitch + c] = bf16_bits(plane[p * position_stride]);
        }
      }
    }
  }
};

template <class T>
T* at(std::span<std::byte> dram, std::uint32_t address) {
  return reinterpret_cast<T*>(dram.data() + address);
}

}  // namespace

void ImagePacking::pack(const float* from, std::span<std::byte> dram) const {
  auto* to = at<std::uint16_t>(dram, address);
  const auto step = slice > 0 ? slice : padded;
  for (std::int64_t first = 0; first < padded; first += step) {
    const auto width = std::min(step, padded - first);
    const auto real = std::clamp<std::int64_t>(channels - first, 0, width);
    if (real < width) std::fill_n(to, images * positions * width, std::uint16_t{0});
    const Transposer transposer = {position_stride, channel_stride, width};
    for (std::int64_t n = 0; n < images; ++n) {
      transposer.run(from + offset + n * image_stride + first * channel_stride, to, positions,
                     real);
      to += positions * width;
    }
  }
}

void MatrixPacking::pack(const float* from, std::span<std::byte> dram) const {
  auto* to = at<std::uint16_t>(dram, address);
  for (std::int64_t first = 0; first < columns; first += tile_columns) {
    const auto width = std::min(tile_columns, columns - first);
    const Transposer transposer = {channel_stride, column_stride, width};
    for (const auto tap : taps) {
      const auto real = tap < 0 ? 0 : channels;
      if (real > 0) {
        transposer.run(from + offset + tap + first * column_stride, to, real, width);
      }
      std::fill(to + real * width, to + padded * width, kMinusZero);
      to += padded * width;
    }
  }
}

void BiasPacking::pack(const float* from, std::span<std::byte> dram) const {
  auto* to = at<float>(dram, address);
  for (std::int64_t q = 0; q < columns; ++q) to[q] = from[offset + q / repeat];
}

void ResultUnpacking::unpack(std::span<const std::byte> dram, float* to) const {
  const auto* from = reinterpret_cast<const float*>(dram.data() + address);
  const auto columns = static_cast<std::int64_t>(column_offsets.size());
  for (std::int64_t first = 0; first < columns; first += tile_columns) {
    const auto width = std::min(tile_columns, columns - first);
    for (std::int64_t line = 0; line < images * rows; ++line) {
      float* target = to + offset + line / rows * image_stride + line % rows * row_stride;
      for (std::int64_t block = 0; block < positions; block += kBlock) {
        const auto end = std::min(block + kBlock, positions);
        for (std::int64_t q = 0; q < width; ++q) {
          float* plane = target + column_offsets[static_cast<std::size_t>(first + q)];
          for (auto p = block; p < end; ++p) plane[p * position_stride] = from[p * width + q];
        }
      }
      from += stored_positions * width;
    }
  }
}

}  // namespace triptych::systolic
