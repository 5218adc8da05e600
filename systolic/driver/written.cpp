// SPDX-License-Identifier: Apache-2.0
#include "systolic/driver/written.h"

#include <algorithm>

namespace triptych::mmu {

void Written::add(const Program& program) {
  tiles_.clear();
  for (const Instruction& instruction : program) {
    if (instruction.opcode() == Opcode::WeightLoad)
      tiles_.push_back(decode<WeightLoad>(instruction).columns);
    if (instruction.opcode() == Opcode::Load) add(decode<Load>(instruction));
    if (instruction.opcode() == Opcode::Matmul) add(decode<Matmul>(instruction));
  }
}

void Written::add(const Load& load) {
  for (std::uint32_t line = 0; line < load.lines; ++line)
    for (std::uint32_t unit = 0; unit < load.units; ++unit)
      buffer_rows_[(load.buffer_row + line * load.buffer_pitch + unit) % buffer_rows_.size()] =
          true;
}

void Written::add(const Matmul& matmul) {
  if (!matmul.keep) {
    columns_ = tiles_.front();
    tiles_.pop_front();
  }
  for (std::uint32_t position = 0; position < matmul.count; ++position) {
    auto& columns =
        accumulator_columns_[(matmul.accumulator + position) % accumulator_columns_.size()];
    columns = std::max(columns, columns_);
  }
}

}  // namespace triptych::mmu
