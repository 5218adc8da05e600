// A matrix product as a program: the smallest use of the machine that still tiles.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"

namespace triptych::mmu {

/// y (m x n, f32 or int32) = x (m x k) w (k x n). X's rows lie `x_pitch` elements apart, padded
/// with zeros to a multiple of the array's rows. Needs m accumulator rows and m * x_pitch / rows
/// buffer rows.
struct Product {
  std::uint32_t m = 1, k = 1, n = 1;
  std::uint32_t x = 0, w = 1 << 16, y = 1 << 17;  ///< DRAM addresses
  bool output_stationary = false;                 ///< the dataflow

  std::uint32_t x_pitch(const MachineConfig& machine) const {
    return (k + machine.rows - 1) / machine.rows * machine.rows;
  }

  Program program(const MachineConfig& machine) const { return Lines(*this, machine).all(); }

 private:
  /// Instructions of a program that grows.
  class Lines {
   public:
    Lines(const Product& product, const MachineConfig& machine)
        : p_(product),
          machine_(machine),
          tiles_(p_.x_pitch(machine) / machine.rows),
          group_(static_cast<std::uint32_t>(std::bit_width(machine.rows - 1))) {}

    Program all() {
      const std::uint32_t pitch = p_.x_pitch(machine_), element = machine_.element_bytes();
      add(encode(Load{p_.x, pitch * element, 0, tiles_, tiles_, p_.m, group_}, {0, 1U << 2}));
      add(encode(SetStream{1, p_.m, 1, 1, 0, 0, 1, p_.m, static_cast<std::int32_t>(tiles_), 0, 0}));
      add(encode(SetTaps{pitch, 1, group_, 0, 0, 0, 0, 0}));
      add(encode(SetOutput{1, p_.m, static_cast<std::int32_t>(4 * p_.n), 0, 0}));
      for (std::uint32_t column = 0; column < p_.n; column += machine_.columns) {
        const std::uint32_t step = p_.output_stationary ? machine_.rows : p_.m;
        for (std::uint32_t first = 0; first < p_.m; first += step)
          add_chains(column, first, std::min(step, p_.m - first));
        add_store(column);
      }
      add(encode_halt());
      return std::move(program_);
    }

   private:
    void add(const Instruction& instruction) { program_.push_back(instruction); }
    std::uint32_t columns_from(std::uint32_t column) const {
      return std::min(machine_.columns, p_.n - column);
    }

    /// `count` results of one column tile from row `first` on.
    void add_chains(std::uint32_t column, std::uint32_t first, std::uint32_t count) {
      const std::uint32_t element = machine_.element_bytes();
      for (std::uint32_t tile = 0; tile < tiles_; ++tile) {
        const std::uint32_t row = tile * machine_.rows;
        add(encode(WeightLoad{p_.w + (row * p_.n + column) * element, p_.n * element,
                              std::min(machine_.rows, p_.k - row), columns_from(column),
                              p_.output_stationary}));
        Matmul matmul;
        const bool last = tile + 1 == tiles_;
        matmul.output_stationary = matmul.transpose = p_.output_stationary;
        matmul.drain = last && p_.output_stationary;
        matmul.accumulate = tile > 0;
        matmul.address = static_cast<std::int32_t>(first * tiles_);
        matmul.x = static_cast<std::int32_t>(first);
        matmul.rows_left = 1;
        matmul.columns_left = p_.m - first;
        matmul.accumulator = first;
        matmul.count = count;
        matmul.channel = row;
        matmul.offset = static_cast<std::int32_t>(tile);
        const bool completes = last && first + count == p_.m;
        add(encode(matmul, {std::exchange(wait_, 0U), completes ? 1U << 3 : 0U}));
      }
    }

    void add_store(std::uint32_t column) {
      Store store;
      store.address = p_.y + 4 * column;
      store.count = store.columns_left = p_.m;
      store.rows_left = 1;
      store.columns = columns_from(column);
      const bool last = column + machine_.columns >= p_.n;
      add(encode(store, {1U << 2, last ? 0U : 1U << 2}));
      wait_ = 1U << 3;
    }

    const Product& p_;
    const MachineConfig& machine_;
    std::uint32_t tiles_, group_;
    std::uint32_t wait_ = 1;  ///< the givers that the next matmul waits for
    Program program_;
  };
};

}  // namespace triptych::mmu
