// The innermost loop of a gradient of weights that reads planes as they lie: a register tile of
// some channels of dy times some columns, each column a channel of x seen from one tap. Products
// are summed lane by lane along the lines. fold_lanes adds up the lanes in the end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace triptych::cpu {

inline constexpr int kWeightTileRows = 8;
inline constexpr int kWeightTileColumns = 3;

/// sums[r][j] += sum over images, lines and i < width of dy(r, image, line, i) x(j, image, line,
/// i).
struct WeightTile {
  const float* dy = nullptr;  ///< row r at dy + r * dy_row
  std::array<const float*, kWeightTileColumns> x = {};
  std::int64_t dy_row = 0, dy_image = 0, dy_line = 0;  ///< distances, floats
  std::int64_t x_image = 0, x_line = 0;
  std::int64_t images = 1, lines = 1, width = 0;
  float* sums = nullptr;  ///< a vector for each r and j, at sums + r * sum_row + j * lanes
  std::int64_t sum_row = 0;
};

/// The tiles of one instruction set.
struct WeightTiles {
  using Run = void (*)(const WeightTile&);

  int lanes = 0;     ///< floats of a vector
  int max_rows = 0;  ///< highest tile
  /// By number of rows and of columns.
  std::array<std::array<Run, kWeightTileColumns + 1>, kWeightTileRows + 1> run = {};
  /// to[i] = sum of the vector at from + i * lanes, for i < count, a multiple of lanes.
  void (*fold_lanes)(const float* from, std::int64_t count, float* to) = nullptr;
};

/// Those for this processor.
const WeightTiles& weight_tiles();

}  // namespace triptych::cpu
