// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/packing/packing.h"

#include <algorithm>
#include <type_traits>

#include "core/base/float16.h"
#include "core/base/quantized_math.h"

namespace triptych::systolic {
namespace {

// Positions whose values stay in the cache while they change from planes to vectors.
constexpr std::int64_t kBlock = 64;

std::uint16_t encode(float value) { return bf16_bits(value); }
std::int8_t encode(std::int8_t value) { return value; }

/// What the machine holds of a host's T.
template <class T>
using Encoded = decltype(encode(T()));
template <class T>
constexpr Encoded<T> kMinusZero = std::is_same_v<T, float> ? Encoded<T>(0x8000) : Encoded<T>(0);

/// Writes [position][channel], `pitch` elements from one position to the next.
struct Transposer {
  std::int64_t position_stride, channel_stride, pitch;

  template <class T>
  void run(const T* from, Encoded<T>* to, std::int64_t positions, std::int64_t channels) const {
    for (std::int64_t block = 0; block < positions; block += kBlock) {
      const auto end = std::min(block + kBlock, positions);
      if (channel_stride == 1) {
        for (auto p = block; p < end; ++p) {
          const T* row = from + p * position_stride;
          for (std::int64_t c = 0; c < channels; ++c) to[p * pitch + c] = encode(row[c]);
        }
        continue;
      }
      for (std::int64_t c = 0; c < channels; ++c) {
        const T* plane = from + c * channel_stride;
        for (auto p = block; p < end; ++p) {
          to[p * pitch + c] = encode(plane[p * position_stride]);
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

/// Channels `first` to first + width - 1 of all positions.
template <class T, class To>
void ImagePacking::pack_slice(const T* from, To* to, std::int64_t first, std::int64_t width) const {
  const auto real = std::ssize(taps) * channels;
  if (real < first + width) std::fill_n(to, images * rows * positions * width, To{0});
  const Transposer transposer = {position_stride, channel_stride, width};
  for (std::int64_t line = 0; line < images * rows; ++line) {
    const T* source = from + offset + line / rows * image_stride + line % rows * row_stride;
    std::int64_t tap_begin = 0;
    for (const auto tap : taps) {
      const auto begin = std::max(first, tap_begin);
      const auto end = std::min(first + width, tap_begin + channels);
      if (begin < end) {
        transposer.run(source + tap + (begin - tap_begin) * channel_stride, to + begin - first,
                       positions, end - begin);
      }
      tap_begin += channels;
    }
    to += positions * width;
  }
}

template <class T>
void ImagePacking::pack(const T* from, std::span<std::byte> dram) const {
  auto* to = at<Encoded<T>>(dram, address);
  const auto step = slice > 0 ? slice : padded;
  for (std::int64_t first = 0; first < padded; first += step) {
    const auto width = std::min(step, padded - first);
    pack_slice(from, to, first, width);
    to += images * rows * positions * width;
  }
}

template <class T>
void MatrixPacking::pack(const T* from, std::span<std::byte> dram) const {
  auto* to = at<Encoded<T>>(dram, address);
  for (std::int64_t first = 0; first < columns; first += tile_columns) {
    const auto width = std::min(tile_columns, columns - first);
    const Transposer transposer = {channel_stride, column_stride, width};
    for (const auto tap : taps) {
      const auto real = tap < 0 ? 0 : channels;
      if (real > 0) {
        transposer.run(from + offset + tap + first * column_stride, to, real, width);
      }
      std::fill(to + real * width, to + padded * width, kMinusZero<T>);
      to += padded * width;
    }
  }
}

template <class T>
void BiasPacking::pack(const T* from, std::span<std::byte> dram) const {
  auto* to = at<T>(dram, address);
  for (std::int64_t q = 0; q < columns; ++q) to[q] = from[offset + q / repeat];
}

template <class From, class To, class Finish>
void ResultUnpacking::walk(std::span<const std::byte> dram, To* to, const Finish& finish) const {
  const auto* from = reinterpret_cast<const From*>(dram.data() + address);
  const auto columns = static_cast<std::int64_t>(column_offsets.size());
  for (std::int64_t first = 0; first < columns; first += tile_columns) {
    const auto width = std::min(tile_columns, columns - first);
    for (std::int64_t line = 0; line < images * rows; ++line) {
      To* target = to + offset + line / rows * image_stride + line % rows * row_stride;
      for (std::int64_t block = 0; block < positions; block += kBlock) {
        const auto end = std::min(block + kBlock, positions);
        for (std::int64_t q = 0; q < width; ++q) {
          To* plane = target + column_offsets[static_cast<std::size_t>(first + q)];
          const auto of_channel = finish(channel + (first + q) / repeat);
          for (auto p = block; p < end; ++p) {
            plane[p * position_stride] = of_channel(from[p * width + q]);
          }
        }
      }
      from += stored_positions * width;
    }
  }
}

template <class T>
void ResultUnpacking::unpack(std::span<const std::byte> dram, T* to) const {
  walk<T>(dram, to, [](std::int64_t) { return [](T value) { return value; }; });
}

void ResultUnpacking::unpack(std::span<const std::byte> dram, std::int8_t* to,
                             const Requantizer& by) const {
  walk<std::int32_t>(dram, to, [&](std::int64_t c) {
    return [multiplier = by.multiplier[c], shift = by.shift[c],
            low = by.relu ? std::int64_t{0} : std::int64_t{-128}](std::int32_t sum) {
      return saturate_to_i8(std::max(requantize(sum, multiplier, shift), low));
    };
  });
}

template void ImagePacking::pack(const float*, std::span<std::byte>) const;
template void ImagePacking::pack(const std::int8_t*, std::span<std::byte>) const;
template void MatrixPacking::pack(const float*, std::span<std::byte>) const;
template void MatrixPacking::pack(const std::int8_t*, std::span<std::byte>) const;
template void BiasPacking::pack(const float*, std::span<std::byte>) const;
template void BiasPacking::pack(const std::int32_t*, std::span<std::byte>) const;
template void ResultUnpacking::unpack(std::span<const std::byte>, float*) const;
template void ResultUnpacking::unpack(std::span<const std::byte>, std::int32_t*) const;

}  // namespace triptych::systolic
