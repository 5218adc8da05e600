// SPDX-License-Identifier: Apache-2.0
#include "tests/systolic/cosim/random_vector.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "systolic/isa/vector_operations.h"
#include "tests/systolic/cosim/generator.h"

namespace triptych::mmu {
namespace {

/// VectorLoad and VectorStore have the same operands.
template <class T>
Instruction random_rows(std::uint32_t row, std::uint32_t count, const MachineConfig& machine,
                        Dice& dice) {
  T rows;
  rows.narrow = dice.one_in(3);
  rows.columns = dice.size(machine.columns);
  rows.pitch = dice.up_to(100);
  rows.row = row;
  rows.count = count;
  rows.address = dice.up_to(kCaseDramBytes - (count - 1) * rows.pitch - 4 * rows.columns);
  if (!dice.one_in(4)) {  // numbers of several loads share their memory
    rows.pitch &= ~3U;
    rows.address &= ~3U;
  }
  return encode(rows);
}

/// Draws the first of `count` rows that stay among `rows`.
std::uint32_t first_row(std::uint32_t count, std::int32_t step, std::uint32_t rows, Dice& dice) {
  const std::uint32_t span = static_cast<std::uint32_t>(std::abs(step)) * (count - 1);
  return dice.up_to(rows - 1 - span) + (step < 0 ? span : 0);
}

/// Those that round or compare more often than others.
std::uint32_t random_operation(Dice& dice) {
  if (dice.one_in(2)) return dice.up_to(kVectorOperations.size() - 1);
  using enum VectorOperation;
  return static_cast<std::uint32_t>(
      dice.among({Add, Subtract, Multiply, Fma, Fma, Fma, Equal, Equal, Greater, Greater}));
}

std::uint32_t special_number(Dice& dice) {
  constexpr std::uint32_t kOne = 0x3F800000, kNan = 0x7FC00001, kSubnormal = 0x00400000;
  constexpr std::uint32_t kInfinity = 0x7F800000, kLargest = 0x7F7FFFFF;
  const std::uint32_t sign = dice.up_to(1) << 31;
  return sign | dice.among({0U, kSubnormal, kOne, kLargest, kInfinity, kInfinity, kNan});
}

/// Small integers, special numbers, numbers near 1, or any bits.
std::uint32_t random_scalar(Dice& dice) {
  const std::uint32_t special = special_number(dice);
  return dice.among(
      {special, 0x3F000000U + dice.up_to(0xFFFFFF), dice.up_to(40), dice.up_to(0xFFFFFFFE)});
}

/// Special numbers, and odd numbers of 13 significant bits: near 1, far below, seldom far above.
/// Half of the products of those near 1 lie between two numbers, and a small addend decides how
/// they round.
std::uint32_t random_operand(Dice& dice) {
  if (dice.one_in(3)) return special_number(dice);
  int exponent = dice.one_in(2) ? 127 : dice.between(40, 80);
  if (dice.one_in(10)) exponent = dice.between(231, 254);
  const std::uint32_t fraction = dice.up_to(0x7FF) << 12 | 1U << 11;
  return dice.up_to(1) << 31 | static_cast<std::uint32_t>(exponent) << 23 | fraction;
}

/// Results go to one half of the memory. Operands come from the other one, or from rows that the
/// same instruction writes at once or later.
Instruction random_vector_op(const MachineConfig& machine, Dice& dice) {
  const std::uint32_t half = machine.vector_rows / 2;
  const std::uint32_t low = dice.one_in(2) ? half : 0;
  VectorOp op;
  op.operation = random_operation(dice);
  op.count = dice.size(std::min({(half + 1) / 2, (machine.accumulator_rows + 1) / 2, 12U}));
  op.step = dice.one_in(2) ? 1 : dice.between(-2, 2);
  op.destination = low + first_row(op.count, op.step, half, dice);
  op.constant = dice.one_in(4);
  op.scalar = crosses_lanes(vector_operation(op.operation).operation)
                  ? dice.up_to(machine.columns - 1)
                  : random_scalar(dice);
  const auto walk = [&](std::uint32_t& first, std::int32_t& step) {
    if (op.step != 0 && dice.one_in(4)) {
      step = op.step;
      first = op.destination;
      if (op.count < 3 || step < 0) return;
      op.count -= 2;
      first += static_cast<std::uint32_t>(step) * dice.up_to(2);
      return;
    }
    step = dice.one_in(2) ? 1 : dice.between(-2, 2);
    first = half - low + first_row(op.count, step, half, dice);
  };
  walk(op.a, op.a_step);
  walk(op.b, op.b_step);
  walk(op.c, op.c_step);
  if (dice.one_in(8)) {
    op.b = op.a;
    op.b_step = op.a_step;
  }
  op.accumulators = dice.one_in(4);
  if (op.accumulators) {
    op.a_step = dice.between(-2, 2);
    op.a = first_row(op.count, op.a_step, machine.accumulator_rows, dice);
  }
  return encode(op);
}

}  // namespace

Instruction random_vector(const MachineConfig& machine, Dice& dice) {
  const std::uint32_t count = dice.size(std::min(machine.vector_rows, dice.one_in(8) ? 80U : 9U));
  const std::uint32_t row = dice.up_to(machine.vector_rows - count);
  switch (dice.between(0, 6)) {
    case 0:
    case 1:
      return random_rows<VectorLoad>(row, count, machine, dice);
    case 2:
      return random_rows<VectorStore>(row, count, machine, dice);
    default:
      return random_vector_op(machine, dice);
  }
}

Instruction load_all_vectors(const MachineConfig& machine, Dice& dice) {
  return random_rows<VectorLoad>(0, machine.vector_rows, machine, dice);
}

Instruction store_all_vectors(const MachineConfig& machine, Dice& dice) {
  return random_rows<VectorStore>(0, machine.vector_rows, machine, dice);
}

void write_operands(const Program& program, std::mt19937& random, std::vector<std::byte>& memory) {
  Dice dice(random);
  const bool often = !dice.one_in(4);
  for (const Instruction& instruction : program) {
    if (instruction.opcode() != Opcode::VectorLoad) continue;
    const auto load = decode<VectorLoad>(instruction);
    for (std::uint32_t row = 0; row < load.count && !load.narrow; ++row) {
      std::byte* numbers = memory.data() + load.address + row * load.pitch;
      for (std::uint32_t column = 0; column < load.columns; ++column, numbers += 4) {
        if (!often && !dice.one_in(16)) continue;
        const std::uint32_t number = random_operand(dice);
        std::memcpy(numbers, &number, sizeof number);
      }
    }
  }
}

}  // namespace triptych::mmu
