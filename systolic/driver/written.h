// The accumulators and buffer rows that the programs of a machine have written. The others have
// their random power-up content.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <vector>

#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"

namespace triptych::mmu {

class Written {
 public:
  explicit Written(const MachineConfig& machine)
      : machine_(machine),
        accumulator_columns_(machine.accumulator_rows),
        buffer_rows_(machine.buffer_rows) {}

  /// A legal program that has run to its end.
  void add(const Program& program);

  bool accumulator(std::size_t row, std::size_t column) const {
    return column < accumulator_columns_[row];
  }
  bool buffer_row(std::size_t row) const { return buffer_rows_[row]; }

 private:
  void add(const Matmul& matmul);

  const MachineConfig machine_;
  std::vector<std::uint32_t> accumulator_columns_;  ///< by row, written from column 0 on
  std::vector<bool> buffer_rows_;
  std::deque<std::uint32_t> tiles_;  ///< columns of those that wait
  std::uint32_t columns_ = 0;        ///< of the active tile
};

}  // namespace triptych::mmu
