// How operands cross between the host's tensors and the machine's DRAM: float32 rounded to
// bfloat16, or int8 as it is, laid out as the address generator and the weight loader read them.
// Results back as they are: float32, int32 or int8.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace triptych::systolic {

/// The streamed operand, DRAM: [image][row][position][tap, channel], padded with +0. Where channels
/// come in slices, one such tensor for each.
struct ImagePacking {
  std::size_t input = 0;  ///< of the node
  std::int64_t offset = 0;
  std::int64_t image_stride = 0, row_stride = 0, position_stride = 1;  ///< elements
  std::int64_t channel_stride = 1;
  std::int64_t images = 1, rows = 1, positions = 1;
  std::vector<std::int64_t> taps = {0};  ///< offsets of the values in a position
  std::int64_t channels = 1;             ///< of a tap
  std::int64_t padded = 1;               ///< channels of all taps, and padding
  std::int64_t slice = 0;                ///< channels of a slice. 0: all
  std::int64_t element_bytes = 2;        ///< of the machine
  std::uint32_t address = 0;

  std::int64_t bytes() const { return images * rows * positions * padded * element_bytes; }
  template <class T>  // float or std::int8_t
  void pack(const T* from, std::span<std::byte> dram) const;

 private:
  template <class T, class To>
  void pack_slice(const T* from, To* to, std::int64_t first, std::int64_t width) const;
};

/// The stationary operand, rows (tap, padded channel), in column tiles. Rows of the padding and of
/// taps with a negative offset are -0 (int8: 0): with activations of +0 they add -0, which changes
/// no sum.
struct MatrixPacking {
  std::size_t input = 1;
  std::int64_t offset = 0;
  std::int64_t channel_stride = 1, column_stride = 1;
  std::vector<std::int64_t> taps = {0};  ///< offsets
  std::int64_t channels = 1, padded = 1, columns = 1;
  std::int64_t tile_columns = 1;   ///< of the array
  std::int64_t element_bytes = 2;  ///< of the machine
  std::uint32_t address = 0;

  std::int64_t rows() const { return static_cast<std::int64_t>(taps.size()) * padded; }
  std::int64_t bytes() const { return rows() * columns * element_bytes; }
  template <class T>  // float or std::int8_t
  void pack(const T* from, std::span<std::byte> dram) const;
};

/// Words that load the registers of the output unit's columns, one file after the other:
/// column q gets element offset + q / repeat, unchanged.
struct RegisterPacking {
  std::size_t input = 2;  ///< of the first file. The next inputs are the next files
  std::int64_t files = 1;
  std::int64_t offset = 0;
  std::int64_t columns = 1, repeat = 1;
  std::uint32_t address = 0;

  std::int64_t pitch() const { return columns * 4; }
  std::int64_t bytes() const { return files * pitch(); }
  template <class T>  // float or std::int32_t
  void pack(std::int64_t file, const T* from, std::span<std::byte> dram) const;
};

/// The result, DRAM: f32, int32 or int8 [image][row][stored position][column], one such tensor for
/// each column tile.
struct ResultUnpacking {
  std::int64_t offset = 0;
  std::int64_t image_stride = 0, row_stride = 0, position_stride = 1;
  std::int64_t images = 1, rows = 1, positions = 1, stored_positions = 1;
  std::vector<std::int64_t> column_offsets;
  std::int64_t tile_columns = 1;  ///< of the array
  std::int64_t value_bytes = 4;
  std::uint32_t address = 0;

  std::int64_t bytes() const {
    return images * rows * stored_positions * static_cast<std::int64_t>(column_offsets.size()) *
           value_bytes;
  }
  template <class T>  // float, std::int32_t or std::int8_t
  void unpack(std::span<const std::byte> dram, T* to) const;

 private:
  /// Some positions of a column tile.
  struct Piece {
    std::int64_t first, width, count;
  };
  template <class T>
  void move(const T* from, T* to, const Piece& piece) const;
};

}  // namespace triptych::systolic
