// Sums of the tile unit as bfloat16, channels last.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "backends/cpu/tiles/tile_unit.h"

namespace triptych::cpu {

/// A row holds the sums of a position: `channels` of them, `sums_stride` elements from row to row.
struct SumRows {
  const float* sums = nullptr;
  std::int64_t sums_stride = 0;
  std::int64_t positions = 0, channels = 0;
  const float* bias = nullptr;  ///< one for each channel; nullptr: none
  bool relu = false;            ///< exact::relu
};

/// to[i * step + c] = the finished sum, rounded. Subnormals become 0, and a NaN stays one.
/// Hardware needs tile_unit_missing() to be empty.
void store_rows(const SumRows& rows, std::uint16_t* to, std::int64_t step, TileUnit::Kind kind);

/// The same of int32 sums, each of which a bias, a multiplier and a shift of its channel make int8
/// (core/ops/quantized_conv.h).
struct IntegerRows {
  const std::int32_t* sums = nullptr;
  std::int64_t sums_stride = 0;
  std::int64_t positions = 0, channels = 0;
  const std::int32_t *bias = nullptr, *multiplier = nullptr, *shift = nullptr;
  bool relu = false;
};

void store_rows(const IntegerRows& rows, std::int8_t* to, std::int64_t step, TileUnit::Kind kind);

}  // namespace triptych::cpu
