// Builds programs of the vector unit from functions of the exact mathematics
// (core/base/exact_math.h and IEEE 754). Each function is a sequence of operations with the bits of
// the CPU backend.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <vector>

#include "systolic/driver/driver.h"

namespace triptych::systolic {

/// Rows of the vector memory that hold a tile of values.
struct VectorBlock {
  std::uint32_t row = 0;
  std::int32_t step = 1;      ///< from one row to the next. 0: one row stands for all
  std::uint32_t repeats = 1;  ///< rows of other operands that each row stands for

  /// The block without its first `rows` rows.
  VectorBlock from(std::uint32_t rows) const { return {row + rows, step, repeats}; }
  VectorBlock with_step(std::uint32_t rows) const { return {row, static_cast<std::int32_t>(rows)}; }
  /// Each row for the next `rows` rows of other operands.
  VectorBlock each(std::uint32_t rows) const { return {row, step, rows}; }
  /// Row `number` for all rows.
  VectorBlock repeat(std::uint32_t number = 0) const { return {row + number, 0}; }
};

/// An operand of an operation: a block, a number in every lane of every row, or nothing.
class VectorOperand {
 public:
  VectorOperand() = default;
  VectorOperand(VectorBlock block)  // NOLINT: implicit
      : kind_(Kind::Block), value_(block.row), step_(block.step), repeats_(block.repeats) {}
  VectorOperand(float number);  // NOLINT: implicit
  static VectorOperand bits(std::uint32_t bits);

  bool is_block() const { return kind_ == Kind::Block; }
  bool is_number() const { return kind_ == Kind::Number; }
  /// The first row of a block, or the bits of a number.
  std::uint32_t value() const { return value_; }
  /// From one row to the next. A number is one row.
  std::int32_t step() const { return step_; }
  std::uint32_t repeats() const { return repeats_; }
  /// The operand of rows `first`, `first` + `stride`, ... of an operation.
  VectorOperand part(std::uint32_t first, std::uint32_t stride) const;

 private:
  enum class Kind : std::uint8_t { None, Block, Number };
  Kind kind_ = Kind::None;
  std::uint32_t value_ = 0;
  std::int32_t step_ = 0;
  std::uint32_t repeats_ = 1;
};

/// Divisors, prepared for any number of quotients.
struct VectorDivisor {
  VectorBlock minus_significand, reciprocal, exponent, normal;
};

class VectorProgram {
 public:
  /// Blocks have `rows` rows each.
  VectorProgram(const mmu::MachineConfig& machine, std::uint32_t rows);

  std::uint32_t lanes() const { return machine_.columns; }
  std::uint32_t block_rows() const { return block_rows_; }

  /// A block for the present number of rows. Throws std::invalid_argument when the vector memory is
  /// full.
  VectorBlock allocate() { return allocate(block_rows_); }
  VectorBlock allocate(std::uint32_t rows);
  void release(VectorBlock block) { free_[sizes_.at(block.row)].push_back(block.row); }

  /// From now on blocks have `rows` rows. Those that exist keep theirs.
  void resize_blocks(std::uint32_t rows) { block_rows_ = rows_ = rows; }
  /// From now on operations process fewer rows than blocks have.
  void use_rows(std::uint32_t rows) { rows_ = rows; }

  /// An instruction of any kind.
  void add(const mmu::Instruction& instruction) { program_.push_back(instruction); }
  /// One operation on every row of a block. The result may replace an operand. An operand whose
  /// rows repeat takes several instructions.
  void apply(mmu::VectorOperation operation, VectorBlock result, VectorOperand a,
             VectorOperand b = {}, VectorOperand c = {});
  /// Lane l of the result is lane (l + lanes) mod C of x.
  void rotate(VectorBlock x, std::uint32_t lanes, VectorBlock y);
  /// Every lane of the result is lane 0 of x.
  void broadcast(VectorBlock x, VectorBlock y);

  /// Values that lie one after another in DRAM, `lanes` per row, the last row with the rest.
  void load(std::uint64_t address, std::int64_t values, std::uint32_t lanes, VectorBlock to);
  void store(VectorBlock from, std::int64_t values, std::uint32_t lanes, std::uint64_t address);
  /// Rows of `lanes` values, `pitch` bytes apart.
  void load_rows(std::uint64_t address, std::int64_t pitch, std::uint32_t rows, std::uint32_t lanes,
                 VectorBlock to);
  void store_rows(VectorBlock from, std::uint32_t rows, std::uint32_t lanes, std::uint64_t address,
                  std::int64_t pitch);

  void fma(VectorBlock result, VectorOperand a, VectorOperand b, VectorOperand c) {
    apply(mmu::VectorOperation::Fma, result, a, b, c);
  }

  // The functions of one block. x and y are different blocks.
  void relu(VectorBlock x, VectorBlock y);
  void negate(VectorBlock x, VectorBlock y);
  void absolute(VectorBlock x, VectorBlock y);
  void exp(VectorBlock x, VectorBlock y);
  void log(VectorBlock x, VectorBlock y);
  /// 1 / x.
  void reciprocal(VectorBlock x, VectorBlock y);
  void square_root(VectorBlock x, VectorBlock y);
  /// 1 / (1 + e^-x).
  void sigmoid(VectorBlock x, VectorBlock y);
  /// log(1 + e^-|x|).
  void softplus_of_minus(VectorBlock x, VectorBlock y);
  void tanh(VectorBlock x, VectorBlock y);
  void erf(VectorBlock x, VectorBlock y);
  /// -1, 0, 1 or NaN.
  void sign(VectorBlock x, VectorBlock y);
  /// log(1 + e^x).
  void softplus(VectorBlock x, VectorBlock y);
  /// x / (1 + |x|).
  void softsign(VectorBlock x, VectorBlock y);
  /// e^x - 1 for x <= 0.
  void expm1_of_negative(VectorBlock x, VectorBlock y);
  /// x / 2 (1 + erf(x / sqrt 2)).
  void gelu(VectorBlock x, VectorBlock y);
  void gelu_tanh(VectorBlock x, VectorBlock y);

  /// y = the larger or the smaller of a and b, or the NaN among them. y may be a.
  void extreme(bool larger, VectorBlock a, VectorBlock b, VectorBlock y);

  VectorDivisor prepare(VectorBlock divisor);
  /// y = a / divisor. The blocks a and y differ.
  void divide(VectorBlock a, const VectorDivisor& divisor, VectorBlock y);
  void release(const VectorDivisor& divisor);
  /// y = a / number.
  void divide(VectorBlock a, float number, VectorBlock y);

  /// The program so far, ended by a halt.
  mmu::Program finish();

 private:
  /// y = condition ? number : y, for a condition whose lanes have all bits 1 or all bits 0.
  void replace(VectorBlock y, VectorBlock condition, VectorOperand number) {
    apply(mmu::VectorOperation::Select, y, number, y, condition);
  }
  /// y = ((c0 x + c1) x + ...) x + last.
  void polynomial(VectorBlock x, std::initializer_list<float> coefficients, VectorBlock y);
  /// y = |x| < border ? y : large with the sign of x. Changes `large`.
  void join(VectorBlock x, float border, VectorBlock large, VectorBlock y);
  /// Takes the NaNs of x over as the one NaN.
  void keep_nans(VectorBlock x, VectorBlock y, VectorBlock scratch);
  /// y = 1 / m for m in [1, 2). Changes the sign of m.
  void invert_significand(VectorBlock m, VectorBlock y, VectorBlock scratch);
  /// All bits 1 where x is neither zero nor infinite nor a NaN.
  void find_normal(VectorBlock x, VectorBlock normal, VectorBlock scratch);
  void apply_to(std::uint32_t rows, mmu::VectorOperation operation, VectorOperand result,
                VectorOperand a, VectorOperand b, VectorOperand c);
  void cross_lanes(mmu::VectorOperation operation, VectorBlock x, std::uint32_t lane,
                   VectorBlock y);
  /// The row that holds these bits in every lane.
  std::uint32_t constant_row(std::uint32_t bits);

  const mmu::MachineConfig& machine_;
  std::uint32_t block_rows_, rows_;
  std::uint32_t next_ = 0;  ///< rows from here on belong to no block
  std::map<std::uint32_t, std::vector<std::uint32_t>> free_;  ///< first rows, by rows
  std::map<std::uint32_t, std::uint32_t> sizes_;              ///< rows of a block, by its first
  std::map<std::uint32_t, std::uint32_t> constants_;  ///< rows by bits, from the memory's end down
  mmu::Program program_;
};

}  // namespace triptych::systolic
