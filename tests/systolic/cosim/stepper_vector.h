// The vector unit of the stepper: its memory, and the rows of the instruction that runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"
#include "systolic/isa/simulator.h"
#include "tests/systolic/cosim/stepper_array.h"

namespace triptych::mmu {

class StepperVector {
 public:
  explicit StepperVector(const MachineConfig& config);

  // Row i of an instruction.
  std::uint32_t place(const VectorLoad& load, std::uint32_t i) const;
  std::uint32_t bytes(const VectorLoad& load) const;
  void write(const VectorLoad& load, std::uint32_t i, const std::vector<std::byte>& data);
  std::vector<std::byte> read(const VectorLoad& store, std::uint32_t i);

  /// Operand c waits for the others here.
  void read_c(const VectorOp& op, std::uint32_t i);
  /// The result, by the accumulators of this cycle. It is written later.
  std::vector<std::uint32_t> compute(const VectorOp& op, std::uint32_t i,
                                     const StepperArray& array);
  void write(const VectorOp& op, std::uint32_t i, const std::vector<std::uint32_t>& result);

  static bool has_c(const VectorOp& op);

  VectorCounts counts;  ///< of the program that runs, as the next one
  std::uint64_t accumulator_reads = 0;

 private:
  using Row = std::vector<std::uint32_t>;
  Row read_row(std::int64_t row);
  void write_row(std::int64_t row, const Row& values);
  void count(const VectorOp& op);

  const MachineConfig& config_;
  std::vector<Row> rows_;
  Row c_;
};

}  // namespace triptych::mmu
