// SPDX-License-Identifier: Apache-2.0
#include "systolic/driver/written.h"

#include <algorithm>

#include "systolic/isa/accesses.h"

namespace triptych::mmu {

void Written::add(const Program& program) {
  tiles_.clear();
  StoreGeometry geometry;
  for (const Instruction& instruction : program) {
    geometry.set(instruction);
    visit_buffer_writes(instruction, geometry, machine_,
                        [&](std::uint32_t row) { buffer_rows_[row] = true; });
    if (instruction.opcode() == Opcode::WeightLoad)
      tiles_.push_back(decode<WeightLoad>(instruction).columns);
    if (instruction.opcode() == Opcode::Matmul) add(decode<Matmul>(instruction));
  }
}

void Written::add(const Matmul& matmul) {
  std::uint32_t written = columns_;
  if (!matmul.keep) {
    written = tiles_.front();
    tiles_.pop_front();
  }
  if (!matmul.output_stationary) columns_ = written;
  for (std::uint32_t position = 0; position < rows_written(matmul); ++position) {
    auto& columns =
        accumulator_columns_[(matmul.accumulator + position) % accumulator_columns_.size()];
    columns = std::max(columns, written);
  }
}

}  // namespace triptych::mmu
