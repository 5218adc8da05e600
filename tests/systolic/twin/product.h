// A matrix product as a program: the smallest use of the machine that still tiles.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"

namespace triptych::mmu {

/// y (m x n, f32 or int32) = x (m x k) w (k x n). X's rows lie `x_pitch` elements apart, padded
/// with zeros to a multiple of the array's rows. Needs m accumulator rows and m * x_pitch / rows
/// buffer rows.
struct Product {
  std::uint32_t m = 1, k = 1, n = 1;
  std::uint32_t x = 0, w = 1 << 16, y = 1 << 17;  ///< DRAM addresses

  std::uint32_t x_pitch(const MachineConfig& machine) const {
    return (k + machine.rows - 1) / machine.rows * machine.rows;
  }

  Program program(const MachineConfig& machine) const {
    constexpr Tokens kToCompute{0, 1U << 2};
    const std::uint32_t element = machine.element_bytes();
    const std::uint32_t tiles = x_pitch(machine) / machine.rows;
    const auto group = static_cast<std::uint32_t>(std::countr_zero(machine.rows));
    Program program{
        encode(Load{x, x_pitch(machine) * element, 0, tiles, tiles, m, group}, kToCompute),
        encode(SetStream{1, m, 1, 1, 0, 0, 1, m, static_cast<std::int32_t>(tiles), 0, 0}),
        encode(SetTaps{x_pitch(machine), 1, group, 0, 0, 0, 0, 0}),
        encode(SetOutput{1, m, static_cast<std::int32_t>(4 * n), 0, 0})};
    unsigned wait = 1;  // the load's token, once
    for (std::uint32_t column = 0; column < n; column += machine.columns) {
      const std::uint32_t columns = std::min(machine.columns, n - column);
      for (std::uint32_t tile = 0; tile < tiles; ++tile) {
        const std::uint32_t row = tile * machine.rows;
        program.push_back(encode(WeightLoad{w + (row * n + column) * element, n * element,
                                            std::min(machine.rows, k - row), columns}));
        Matmul matmul;
        matmul.accumulate = tile > 0;
        matmul.rows_left = 1;
        matmul.columns_left = matmul.count = m;
        matmul.channel = row;
        matmul.offset = static_cast<std::int32_t>(tile);
        program.push_back(encode(matmul, {wait, tile + 1 == tiles ? 1U << 3 : 0U}));
        wait = tile + 1 == tiles ? 1U << 3 : 0;
      }
      Store store;
      store.address = y + 4 * column;
      store.count = store.columns_left = m;
      store.rows_left = 1;
      store.columns = columns;
      const bool last = column + machine.columns >= n;
      program.push_back(encode(store, {1U << 2, last ? 0U : 1U << 2}));
    }
    program.push_back(encode_halt());
    return program;
  }
};

}  // namespace triptych::mmu
