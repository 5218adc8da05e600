// The innermost loop of every matrix product and convolution: a register tile of C that walks over
// ascending k. Each element of C is one chain of fused multiply-adds, however k is cut into calls.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace triptych::cpu {

/// c[r][n] += sum over k of a[k][r] b[k][n]. k = outer * k_inner + inner; `a` holds `rows` floats
/// for each k, one k after the other; row k of b lies at b + outer * b_outer + inner * b_inner.
struct MicroTile {
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;  ///< row r at c + r * c_stride
  std::int64_t c_stride = 0;
  std::int64_t k_outer = 1;
  std::int64_t k_inner = 0;
  std::int64_t b_outer = 0;
  std::int64_t b_inner = 0;
  bool accumulate = false;  ///< false: the chain starts at +0 here
};

inline constexpr int kMaxTileRows = 14;

/// The microkernels of one instruction set.
struct Microkernels {
  int max_rows = 0;  ///< highest tile
  int columns = 0;  ///< width of every tile: floats read of each row of b, written of each row of c
  bool fused = false;  ///< does it have fused multiply-add? Without, bf16-exact cannot be honoured.
  std::array<void (*)(const MicroTile&), kMaxTileRows + 1> run = {};  ///< by number of rows
};

/// Those for this processor.
const Microkernels& microkernels();

}  // namespace triptych::cpu
