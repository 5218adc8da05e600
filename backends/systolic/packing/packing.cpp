// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/packing/packing.h"

#include <algorithm>
#include <type_traits>

#include "core/base/float16.h"

namespace triptych::systolic {
namespace {

constexpr std::int64_t kBlock = 16;     // rows and columns that are transposed at a time
constexpr std::int64_t kResident = 64;  // rows that stay in the cache, with all of their taps

std::uint16_t encode(float value) { return bf16_bits(value); }
std::int8_t encode(std::int8_t value) { return value; }

/// The machine's type for a host's T.
template <class T>
using Encoded = decltype(encode(T()));
template <class T>
constexpr Encoded<T> kMinusZero = std::is_same_v<T, float> ? Encoded<T>(0x8000) : Encoded<T>(0);

/// Writes [row][column], `pitch` elements from one row to the next.
struct Transposer {
  std::int64_t row_stride, column_stride, pitch;

  template <class T>
  void run(const T* from, Encoded<T>* to, std::int64_t rows, std::int64_t columns) const {
    for (std::int64_t r = 0; r < rows; r += kBlock) {
      for (std::int64_t c = 0; c < columns; c += kBlock) {
        const T* source = from + r * row_stride + c * column_stride;
        Encoded<T>* target = to + r * pitch + c;
        const auto height = std::min(kBlock, rows - r);
        const auto width = std::min(kBlock, columns - c);
        // Loops of constant length become vector instructions.
        if (height == kBlock && width == kBlock) {
          move(source, target, kBlock, kBlock);
        } else {
          move(source, target, height, width);
        }
      }
    }
  }

 private:
  template <class T>
  [[gnu::always_inline]] void move(const T* from, Encoded<T>* to, std::int64_t rows,
                                   std::int64_t columns) const {
    const auto write = [&](const T* row, std::int64_t r) {
      for (std::int64_t c = 0; c < columns; ++c) to[r * pitch + c] = encode(row[c]);
    };
    if (column_stride == 1) {
      for (std::int64_t r = 0; r < rows; ++r) write(from + r * row_stride, r);
      return;
    }
    T block[kBlock][kBlock];
    for (std::int64_t c = 0; c < columns; ++c) {
      for (std::int64_t r = 0; r < rows; ++r) {
        block[r][c] = from[r * row_stride + c * column_stride];
      }
    }
    for (std::int64_t r = 0; r < rows; ++r) write(block[r], r);
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
  const auto for_each_panel = [&](auto visit) {  // of one tap in one column tile
    for (std::int64_t first = 0; first < columns; first += tile_columns) {
      const auto width = std::min(tile_columns, columns - first);
      for (std::int64_t t = 0; t < std::ssize(taps); ++t) {
        visit(first, width, taps[static_cast<std::size_t>(t)],
              to + first * rows() + t * padded * width);
      }
    }
  };
  for (std::int64_t c = 0; c < channels; c += kResident) {
    for_each_panel([&](auto first, auto width, auto tap, auto* panel) {
      if (tap < 0) return;
      const Transposer transposer = {channel_stride, column_stride, width};
      transposer.run(from + offset + tap + c * channel_stride + first * column_stride,
                     panel + c * width, std::min(kResident, channels - c), width);
    });
  }
  for_each_panel([&](auto, auto width, auto tap, auto* panel) {
    const auto real = tap < 0 ? 0 : channels;
    std::fill(panel + real * width, panel + padded * width, kMinusZero<T>);
  });
}

template <class T>
void RegisterPacking::pack(std::int64_t file, const T* from, std::span<std::byte> dram) const {
  auto* to = at<T>(dram, address) + file * columns;
  for (std::int64_t q = 0; q < columns; ++q) to[q] = from[offset + q / repeat];
}

template <class T>
void ResultUnpacking::unpack(std::span<const std::byte> dram, T* to) const {
  const auto* from = reinterpret_cast<const T*>(dram.data() + address);
  const auto columns = std::ssize(column_offsets);
  for (std::int64_t line = 0; line < images * rows; ++line) {
    T* target = to + offset + line / rows * image_stride + line % rows * row_stride;
    for (std::int64_t p = 0; p < positions; p += kResident) {
      for (std::int64_t first = 0; first < columns; first += tile_columns) {
        const auto width = std::min(tile_columns, columns - first);
        const auto above = first * images * rows + line * width;
        move(from + above * stored_positions + p * width, target + p * position_stride,
             {first, width, std::min(kResident, positions - p)});
      }
    }
  }
}

template <class T>
void ResultUnpacking::move(const T* from, T* to, const Piece& piece) const {
  const auto first = piece.first, width = piece.width, count = piece.count;
  const auto offsets =
      std::span(column_offsets)
          .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(width));
  const auto apart = [](std::int64_t left, std::int64_t right) { return right != left + 1; };
  if (position_stride != 1 && std::ranges::adjacent_find(offsets, apart) == offsets.end()) {
    for (std::int64_t p = 0; p < count; ++p)
      std::copy_n(from + p * width, width, to + p * position_stride + offsets[0]);
    return;
  }
  for (std::int64_t q = 0; q < width; ++q) {
    T* plane = to + offsets[static_cast<std::size_t>(q)];
    for (std::int64_t p = 0; p < count; ++p) plane[p * position_stride] = from[p * width + q];
  }
}

template void ImagePacking::pack(const float*, std::span<std::byte>) const;
template void ImagePacking::pack(const std::int8_t*, std::span<std::byte>) const;
template void MatrixPacking::pack(const float*, std::span<std::byte>) const;
template void MatrixPacking::pack(const std::int8_t*, std::span<std::byte>) const;
template void RegisterPacking::pack(std::int64_t, const float*, std::span<std::byte>) const;
template void RegisterPacking::pack(std::int64_t, const std::int32_t*, std::span<std::byte>) const;
template void ResultUnpacking::unpack(std::span<const std::byte>, float*) const;
template void ResultUnpacking::unpack(std::span<const std::byte>, std::int32_t*) const;
template void ResultUnpacking::unpack(std::span<const std::byte>, std::int8_t*) const;

}  // namespace triptych::systolic
