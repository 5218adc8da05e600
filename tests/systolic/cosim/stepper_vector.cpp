// SPDX-License-Identifier: Apache-2.0
#include "tests/systolic/cosim/stepper_vector.h"

#include <bit>
#include <cstring>
#include <optional>

#include "systolic/isa/vector_operations.h"
#include "systolic/twin/numerics.h"

namespace triptych::mmu {
namespace {

using Operation = VectorOperation;

std::uint32_t fma_of(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  return std::bit_cast<std::uint32_t>(
      soft_fma(std::bit_cast<float>(a), std::bit_cast<float>(b), std::bit_cast<float>(c)));
}

/// A number that compares as the binary32 number does. Nothing for a NaN.
std::optional<std::int32_t> rank_of(std::uint32_t bits) {
  const std::uint32_t size = bits & 0x7FFFFFFF;
  if (size > 0x7F800000) return std::nullopt;
  const auto rank = static_cast<std::int32_t>(size < 0x00800000 ? 0 : size);
  return bits == size ? rank : -rank;
}
bool is_greater(std::uint32_t a, std::uint32_t b) {
  const auto x = rank_of(a), y = rank_of(b);
  return x && y && *x > *y;
}
bool is_equal(std::uint32_t a, std::uint32_t b) {
  const auto x = rank_of(a), y = rank_of(b);
  return x && y && *x == *y;
}

/// The table of the manual.
std::uint32_t lane_of(Operation operation, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  constexpr std::uint32_t kOne = 0x3F800000, kMinusOne = 0xBF800000, kMinusZero = 0x80000000;
  switch (operation) {
    case Operation::Move:
    case Operation::Rotate:
    case Operation::Broadcast:
      return a;
    case Operation::Fill:
      return b;
    case Operation::Add:
      return fma_of(a, kOne, b);
    case Operation::Subtract:
      return fma_of(b, kMinusOne, a);
    case Operation::Multiply:
      return fma_of(a, b, kMinusZero);
    case Operation::Fma:
      return fma_of(a, b, c);
    case Operation::Larger:
      return is_greater(a, b) ? a : b;
    case Operation::Smaller:
      return is_greater(b, a) ? a : b;
    case Operation::Greater:
      return is_greater(a, b) ? 0xFFFFFFFF : 0;
    case Operation::Equal:
      return is_equal(a, b) ? 0xFFFFFFFF : 0;
    case Operation::Select:
      return b ^ ((a ^ b) & c);
    case Operation::And:
      return a & b;
    case Operation::Or:
      return a | b;
    case Operation::Xor:
      return a ^ b;
    case Operation::AddInteger:
      return a + b;
    case Operation::SubtractInteger:
      return a - b;
    case Operation::ShiftLeft:
      return a << b % 32;
    case Operation::ShiftRight:
      return a >> b % 32;
    case Operation::ToFloat:
      return std::bit_cast<std::uint32_t>(
          static_cast<float>(static_cast<double>(static_cast<std::int32_t>(a))));
  }
  return 0;
}

}  // namespace

StepperVector::StepperVector(const MachineConfig& config)
    : config_(config), rows_(config.vector_rows, Row(config.columns)), c_(config.columns) {}

bool StepperVector::has_c(const VectorOp& op) {
  return (vector_operation(op.operation).reads & kReadsC) != 0;
}

std::uint32_t StepperVector::place(const VectorLoad& load, std::uint32_t i) const {
  return load.address + i * load.pitch;
}

std::uint32_t StepperVector::bytes(const VectorLoad& load) const {
  return load.columns * (load.narrow ? 2 : 4);
}

void StepperVector::write(const VectorLoad& load, std::uint32_t i,
                          const std::vector<std::byte>& data) {
  Row values(config_.columns);
  const std::uint32_t size = load.narrow ? 2 : 4;
  for (std::uint32_t l = 0; l < load.columns; ++l) {
    std::memcpy(&values[l], data.data() + l * size, size);
    if (load.narrow) values[l] <<= 16;
  }
  write_row(load.row + i, values);
}

std::vector<std::byte> StepperVector::read(const VectorLoad& store, std::uint32_t i) {
  const Row values = read_row(store.row + i);
  std::vector<std::byte> data;
  for (std::uint32_t l = 0; l < store.columns; ++l) {
    const std::uint32_t value = store.narrow ? to_bf16(std::bit_cast<float>(values[l])) : values[l];
    for (std::uint32_t byte = 0; byte < (store.narrow ? 2U : 4U); ++byte)
      data.push_back(std::byte(value >> 8 * byte & 0xFF));
  }
  return data;
}

void StepperVector::read_c(const VectorOp& op, std::uint32_t i) {
  c_ = read_row(op.c + std::int64_t{i} * op.c_step);
}

std::vector<std::uint32_t> StepperVector::compute(const VectorOp& op, std::uint32_t i,
                                                  const StepperArray& array) {
  const VectorOperationInfo& info = vector_operation(op.operation);
  Row a(config_.columns), b(config_.columns, op.scalar), result(config_.columns);
  const std::int64_t row = op.a + std::int64_t{i} * op.a_step;
  if (op.accumulators)
    for (std::uint32_t l = 0; l < config_.columns; ++l)
      a[l] = array.accumulators[static_cast<std::size_t>(row) * config_.columns + l];
  else if ((info.reads & kReadsA) != 0)
    a = read_row(row);
  if ((info.reads & kReadsB) != 0 && !op.constant) b = read_row(op.b + std::int64_t{i} * op.b_step);
  for (std::uint32_t l = 0; l < config_.columns; ++l) {
    std::uint32_t from = l;
    if (info.operation == Operation::Rotate) from = (l + op.scalar) % config_.columns;
    if (info.operation == Operation::Broadcast) from = op.scalar;
    result[l] = lane_of(info.operation, a[from], b[l], c_[l]);
  }
  count(op);
  return result;
}

void StepperVector::write(const VectorOp& op, std::uint32_t i,
                          const std::vector<std::uint32_t>& result) {
  write_row(op.destination + std::int64_t{i} * op.step, result);
}

StepperVector::Row StepperVector::read_row(std::int64_t row) {
  counts.reads += config_.columns;
  return rows_[static_cast<std::size_t>(row)];
}

void StepperVector::write_row(std::int64_t row, const Row& values) {
  counts.writes += config_.columns;
  rows_[static_cast<std::size_t>(row)] = values;
}

void StepperVector::count(const VectorOp& op) {
  if (op.accumulators) accumulator_reads += config_.columns;
  switch (vector_operation(op.operation).operation) {
    case Operation::Move:
    case Operation::Fill:
    case Operation::Rotate:
    case Operation::Broadcast:
      return;
    case Operation::Add:
    case Operation::Subtract:
      counts.adds += config_.columns;
      return;
    case Operation::Multiply:
      counts.multiplies += config_.columns;
      return;
    case Operation::Fma:
      counts.fmas += config_.columns;
      return;
    default:
      counts.others += config_.columns;
  }
}

}  // namespace triptych::mmu
