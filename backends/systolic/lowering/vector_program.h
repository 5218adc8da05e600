// Builds programs of the vector unit from functions of the exact mathematics
// (core/base/exact_math.h and IEEE 754). Each function is a sequence of operations with the bits of
// the CPU backend.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "systolic/driver/driver.h"

namespace triptych::systolic {

/// Rows of the vector memory that hold a tile of values.
struct VectorBlock {
  std::uint32_t row = 0;
};

/// An operand of an operation: a block, a number in every lane of every row, or nothing.
class VectorOperand {
 public:
  VectorOperand() = default;
  VectorOperand(VectorBlock block) : kind_(Kind::Block), value_(block.row) {}  // NOLINT: implicit
  VectorOperand(float number);                                                 // NOLINT: implicit
  static VectorOperand bits(std::uint32_t bits);

  bool is_block() const { return kind_ == Kind::Block; }
  bool is_number() const { return kind_ == Kind::Number; }
  /// The first row of a block, or the bits of a number.
  std::uint32_t value() const { return value_; }

 private:
  enum class Kind : std::uint8_t { None, Block, Number };
  Kind kind_ = Kind::None;
  std::uint32_t value_ = 0;
};

class VectorProgram {
 public:
  /// Blocks have `rows` rows each.
  VectorProgram(const mmu::MachineConfig& machine, std::uint32_t rows);

  /// Throws std::invalid_argument when the vector memory is full.
  VectorBlock allocate();
  void release(VectorBlock block) { free_.push_back(block.row); }

  /// From now on blocks have fewer rows, at the same places.
  void shorten_blocks(std::uint32_t rows) { rows_ = rows; }

  /// An instruction of any kind, such as a load or a store of a block.
  void add(const mmu::Instruction& instruction) { program_.push_back(instruction); }
  /// One operation on every row of a block. The result may replace an operand.
  void apply(mmu::VectorOperation operation, VectorBlock result, VectorOperand a,
             VectorOperand b = {}, VectorOperand c = {});

  // The functions of one block. x and y are different blocks.
  void relu(VectorBlock x, VectorBlock y);
  void exp(VectorBlock x, VectorBlock y);
  void log(VectorBlock x, VectorBlock y);
  /// 1 / x.
  void reciprocal(VectorBlock x, VectorBlock y);
  void square_root(VectorBlock x, VectorBlock y);

  /// The program so far, ended by a halt.
  mmu::Program finish();

 private:
  void fma(VectorBlock result, VectorOperand a, VectorOperand b, VectorOperand c) {
    apply(mmu::VectorOperation::Fma, result, a, b, c);
  }
  /// y = condition ? number : y, for a condition whose lanes have all bits 1 or all bits 0.
  void replace(VectorBlock y, VectorBlock condition, VectorOperand number) {
    apply(mmu::VectorOperation::Select, y, number, y, condition);
  }
  /// Takes the NaNs of x over as the one NaN.
  void keep_nans(VectorBlock x, VectorBlock y, VectorBlock scratch);
  /// The row that holds these bits in every lane.
  std::uint32_t constant_row(std::uint32_t bits);

  const mmu::MachineConfig& machine_;
  std::uint32_t rows_;
  std::uint32_t next_ = 0;  ///< rows from here on belong to no block
  std::vector<std::uint32_t> free_;
  std::map<std::uint32_t, std::uint32_t> constants_;  ///< rows by bits, from the memory's end down
  mmu::Program program_;
};

}  // namespace triptych::systolic
