// How operands cross between the host's float32 tensors and the machine's DRAM: rounded to bfloat16
// and laid out as the address generator and the weight loader read them; results back as float32.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace triptych::systolic {

/// The streamed operand, DRAM: bf16 [image][position][padded channel], the padding +0; where
/// channels come in slices, one such tensor for each.
struct ImagePacking {
  std::size_t input = 0;  ///< of the node
  std::int64_t offset = 0;
  std::int64_t image_stride = 0, position_stride = 1, channel_stride = 1;  ///< elements
  std::int64_t images = 1, positions = 1, channels = 1, padded = 1;
  std::int64_t slice = 0;  ///< channels of a slice; 0: all
  std::uint32_t address = 0;

  std::int64_t bytes() const { return images * positions * padded * 2; }
  void pack(const float* from, std::span<std::byte> dram) const;
};

/// The stationary operand, rows (tap, padded channel), in column tiles. Rows of the padding and of
/// taps with a negative offset are -0: with activations of +0 they add -0, which changes no sum.
struct MatrixPacking {
  std::size_t input = 1;
  std::int64_t offset = 0;
  std::int64_t channel_stride = 1, column_stride = 1;
  std::vector<std::int64_t> taps = {0};  ///< offsets
  std::int64_t channels = 1, padded = 1, columns = 1;
  std::int64_t tile_columns = 1;  ///< of the array
  std::uint32_t address = 0;

  std::int64_t rows() const { return static_cast<std::int64_t>(taps.size()) * padded; }
  std::int64_t bytes() const { return rows() * columns * 2; }
  void pack(const float* from, std::span<std::byte> dram) const;
};

/// Column q gets element offset + q / repeat, unchanged.
struct BiasPacking {
  std::size_t input = 2;
  std::int64_t offset = 0;
  std::int64_t columns = 1, repeat = 1;
  std::uint32_t address = 0;

  std::int64_t bytes() const { return columns * 4; }
  void pack(const float* from, std::span<std::byte> dram) const;
};

/// The result, DRAM: f32 [image][row][stored position][column], one such tensor for each column
/// tile.
struct ResultUnpacking {
  std::int64_t offset = 0;
  std::int64_t image_stride = 0, row_stride = 0, position_stride = 1;
  std::int64_t images = 1, rows = 1, positions = 1, stored_positions = 1;
  std::vector<std::int64_t> column_offsets;
  std::int64_t tile_columns = 1;  ///< of the array
  std::uint32_t address = 0;

  std::int64_t bytes() const {
    return images * rows * stored_positions * static_cast<std::int64_t>(column_offsets.size()) * 4;
  }
  void unpack(std::span<const std::byte> dram, float* to) const;
};

}  // namespace triptych::systolic
