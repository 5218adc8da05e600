// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/lowering/vector_program.h"

#include <fmt/core.h>

#include <array>
#include <bit>
#include <limits>
#include <stdexcept>

namespace triptych::systolic {
namespace {

using mmu::VectorOperation;

constexpr std::uint32_t kSign = 0x80000000, kExponent = 0x7F800000, kOne = 0x3F800000;
constexpr std::uint32_t kNan = 0x7FC00000;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kMinNormal = 0x1p-126F;

}  // namespace

VectorOperand::VectorOperand(float number)
    : kind_(Kind::Number), value_(std::bit_cast<std::uint32_t>(number)) {}

VectorOperand VectorOperand::bits(std::uint32_t bits) {
  return VectorOperand(std::bit_cast<float>(bits));
}

VectorProgram::VectorProgram(const mmu::MachineConfig& machine, std::uint32_t rows)
    : machine_(machine), rows_(rows) {}

VectorBlock VectorProgram::allocate() {
  if (!free_.empty()) {
    const VectorBlock block{free_.back()};
    free_.pop_back();
    return block;
  }
  if (next_ + rows_ + constants_.size() > machine_.vector_rows)
    throw std::invalid_argument(
        fmt::format("[systolic] the vector memory of {} rows is full: use smaller blocks than {} "
                    "rows, or give the machine more vector_rows",
                    machine_.vector_rows, rows_));
  next_ += rows_;
  return {next_ - rows_};
}

std::uint32_t VectorProgram::constant_row(std::uint32_t bits) {
  const auto row = static_cast<std::uint32_t>(machine_.vector_rows - constants_.size() - 1);
  const auto [found, added] = constants_.try_emplace(bits, row);
  if (!added) return found->second;
  if (row < next_)
    throw std::invalid_argument(
        fmt::format("[systolic] the vector memory of {} rows has no row left for a constant: use "
                    "smaller blocks than {} rows",
                    machine_.vector_rows, rows_));
  mmu::VectorOp fill;
  fill.operation = static_cast<std::uint32_t>(VectorOperation::Fill);
  fill.destination = row;
  fill.constant = true;
  fill.scalar = bits;
  fill.count = 1;
  add(mmu::encode(fill));
  return row;
}

void VectorProgram::apply(VectorOperation operation, VectorBlock result, VectorOperand a,
                          VectorOperand b, VectorOperand c) {
  mmu::VectorOp op;
  op.operation = static_cast<std::uint32_t>(operation);
  op.count = rows_;
  op.destination = result.row;
  op.step = 1;
  const auto place = [&](VectorOperand operand, std::uint32_t& first, std::int32_t& step) {
    first = operand.is_number() ? constant_row(operand.value()) : operand.value();
    step = operand.is_block() ? 1 : 0;
  };
  place(a, op.a, op.a_step);
  if (b.is_number()) {
    op.constant = true;
    op.scalar = b.value();
  } else {
    place(b, op.b, op.b_step);
  }
  place(c, op.c, op.c_step);
  add(mmu::encode(op));
}

mmu::Program VectorProgram::finish() {
  mmu::Program program = std::move(program_);
  program.push_back(mmu::encode_halt());
  return program;
}

void VectorProgram::keep_nans(VectorBlock x, VectorBlock y, VectorBlock scratch) {
  apply(VectorOperation::Equal, scratch, x, x);
  apply(VectorOperation::Select, y, y, VectorOperand::bits(kNan), scratch);
}

void VectorProgram::relu(VectorBlock x, VectorBlock y) {
  apply(VectorOperation::Greater, y, kMinNormal, x);
  apply(VectorOperation::Select, y, 0.0F, x, y);
}

void VectorProgram::exp(VectorBlock x, VectorBlock y) {
  const VectorBlock shifted = allocate(), r = allocate();
  // x = n ln 2 + r, with n in the low bits of `shifted`.
  fma(shifted, x, 1.44269504F, 12582912.0F);
  apply(VectorOperation::Subtract, y, shifted, 12582912.0F);
  fma(r, y, -0.693147182F, x);
  fma(r, y, 1.90465421e-9F, r);
  fma(y, r, 0.0013926184F, 0.00836317893F);
  for (const float coefficient : {0.0416665561F, 0.166665763F, 0.5F, 1.0F, 1.0F})
    fma(y, y, r, coefficient);
  apply(VectorOperation::ShiftLeft, shifted, shifted, VectorOperand::bits(23));
  apply(VectorOperation::AddInteger, y, y, shifted);
  apply(VectorOperation::Greater, shifted, x, 88.72283F);
  replace(y, shifted, kInfinity);
  apply(VectorOperation::Greater, shifted, -87.33654F, x);
  replace(y, shifted, 0.0F);
  keep_nans(x, y, shifted);
  release(r);
  release(shifted);
}

void VectorProgram::log(VectorBlock x, VectorBlock y) {
  const VectorBlock exponent = allocate(), f = allocate();
  // x = 2^e (1 + f) with 1 + f in [2/3, 4/3).
  apply(VectorOperation::SubtractInteger, exponent, x, VectorOperand::bits(0x3F2AAAAB));
  apply(VectorOperation::And, exponent, exponent, VectorOperand::bits(0xFF800000));
  apply(VectorOperation::SubtractInteger, f, x, exponent);
  apply(VectorOperation::Subtract, f, f, 1.0F);
  apply(VectorOperation::ToFloat, exponent, exponent);
  apply(VectorOperation::Multiply, exponent, exponent, 0x1p-23F);
  fma(y, f, -0.124222003F, 0.13748309F);
  for (const float coefficient : {-0.122887217F, 0.140558124F, -0.166733161F, 0.200072333F,
                                  -0.249999449F, 0.333332717F, -0.5F})
    fma(y, y, f, coefficient);
  const VectorBlock square = allocate();
  apply(VectorOperation::Multiply, square, f, f);
  fma(y, y, square, f);
  fma(y, exponent, 0.693147182F, y);
  apply(VectorOperation::Greater, square, kMinNormal, x);
  replace(y, square, -kInfinity);
  apply(VectorOperation::Equal, square, x, kInfinity);
  replace(y, square, kInfinity);
  apply(VectorOperation::Greater, square, x, -kMinNormal);
  apply(VectorOperation::Select, y, y, VectorOperand::bits(kNan), square);
  release(square);
  release(f);
  release(exponent);
}

void VectorProgram::reciprocal(VectorBlock x, VectorBlock y) {
  const VectorBlock minus_m = allocate(), scratch = allocate();
  // y converges to 1 / m for the significand m in [1, 2). After four steps every y is rounded
  // correctly, except that of the largest m.
  apply(VectorOperation::And, minus_m, x, VectorOperand::bits(0x007FFFFF));
  apply(VectorOperation::Or, minus_m, minus_m, VectorOperand::bits(kOne));
  apply(VectorOperation::SubtractInteger, y, VectorOperand::bits(0x7EF311C7), minus_m);
  apply(VectorOperation::Xor, minus_m, minus_m, VectorOperand::bits(kSign));
  for (int step = 0; step < 4; ++step) {
    fma(scratch, minus_m, y, 1.0F);
    fma(y, scratch, y, y);
  }
  apply(VectorOperation::Equal, scratch, minus_m, VectorOperand::bits(0xBFFFFFFF));
  replace(y, scratch, VectorOperand::bits(0x3F000001));
  // The exponent, beyond which results are infinite or flushed, and the sign.
  apply(VectorOperation::And, scratch, x, VectorOperand::bits(kExponent));
  apply(VectorOperation::SubtractInteger, y, y, scratch);
  apply(VectorOperation::AddInteger, y, y, VectorOperand::bits(kOne));
  apply(VectorOperation::And, minus_m, x, VectorOperand::bits(~kSign));
  apply(VectorOperation::Greater, scratch, kMinNormal, minus_m);
  replace(y, scratch, kInfinity);
  apply(VectorOperation::Greater, scratch, minus_m, 0x1p126F);
  replace(y, scratch, 0.0F);
  apply(VectorOperation::And, scratch, x, VectorOperand::bits(kSign));
  apply(VectorOperation::Or, y, y, scratch);
  keep_nans(x, y, scratch);
  release(scratch);
  release(minus_m);
}

void VectorProgram::square_root(VectorBlock x, VectorBlock y) {
  const VectorBlock m = allocate(), root = allocate(), half = allocate(), scratch = allocate();
  // x = 4^k m with m in [1, 4). y converges to 1 / sqrt(m).
  apply(VectorOperation::SubtractInteger, m, x, VectorOperand::bits(kOne));
  apply(VectorOperation::And, m, m, VectorOperand::bits(0xFF000000));
  apply(VectorOperation::SubtractInteger, m, x, m);
  apply(VectorOperation::ShiftRight, y, m, VectorOperand::bits(1));
  apply(VectorOperation::SubtractInteger, y, VectorOperand::bits(0x5F375A86), y);
  apply(VectorOperation::Multiply, half, m, -0.5F);
  for (int step = 0; step < 3; ++step) {
    apply(VectorOperation::Multiply, scratch, y, y);
    fma(scratch, half, scratch, 0.5F);
    fma(y, y, scratch, y);
  }
  // A correction by the remainder m - root^2 rounds the root of every m correctly.
  apply(VectorOperation::Multiply, root, m, y);
  apply(VectorOperation::Multiply, half, y, 0.5F);
  apply(VectorOperation::Xor, scratch, root, VectorOperand::bits(kSign));
  fma(scratch, scratch, root, m);
  fma(root, scratch, half, root);
  // Half of the exponent that m lacks. The sum's sign bit has no meaning.
  apply(VectorOperation::SubtractInteger, y, x, m);
  apply(VectorOperation::ShiftRight, y, y, VectorOperand::bits(1));
  apply(VectorOperation::AddInteger, y, root, y);
  apply(VectorOperation::And, y, y, VectorOperand::bits(~kSign));
  apply(VectorOperation::Equal, scratch, x, kInfinity);
  replace(y, scratch, kInfinity);
  apply(VectorOperation::Greater, scratch, kMinNormal, x);
  replace(y, scratch, VectorOperand::bits(kNan));
  apply(VectorOperation::Equal, scratch, x, 0.0F);
  apply(VectorOperation::And, root, x, VectorOperand::bits(kSign));
  apply(VectorOperation::Select, y, root, y, scratch);
  keep_nans(x, y, scratch);
  for (const VectorBlock block : {m, root, half, scratch}) release(block);
}

}  // namespace triptych::systolic
