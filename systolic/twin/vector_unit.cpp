// SPDX-License-Identifier: Apache-2.0
#include "systolic/twin/vector_unit.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "systolic/isa/vector_operations.h"
#include "systolic/twin/numerics.h"

namespace triptych::mmu {
namespace {

using Lanes = const std::uint32_t*;

float number(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t bits_of(float number) { return std::bit_cast<std::uint32_t>(number); }
bool larger(std::uint32_t a, std::uint32_t b) { return flush(number(a)) > flush(number(b)); }
bool equal(std::uint32_t a, std::uint32_t b) { return flush(number(a)) == flush(number(b)); }
std::uint32_t all_or_none(bool condition) { return condition ? ~std::uint32_t{0} : 0; }

/// A lane of an operation that keeps to its lane.
std::uint32_t result_of(VectorOperation operation, std::uint32_t a, std::uint32_t b,
                        std::uint32_t c) {
  switch (operation) {
    case VectorOperation::Fill:
      return b;
    case VectorOperation::Add:
      return bits_of(soft_add(number(a), number(b)));
    case VectorOperation::Subtract:
      return bits_of(soft_add(number(a), number(b ^ 0x80000000)));
    case VectorOperation::Multiply:
      return bits_of(soft_multiply(number(a), number(b)));
    case VectorOperation::Fma:
      return bits_of(soft_fma(number(a), number(b), number(c)));
    case VectorOperation::Larger:
      return larger(a, b) ? a : b;
    case VectorOperation::Smaller:
      return larger(b, a) ? a : b;
    case VectorOperation::Greater:
      return all_or_none(larger(a, b));
    case VectorOperation::Equal:
      return all_or_none(equal(a, b));
    case VectorOperation::Select:
      return (a & c) | (b & ~c);
    case VectorOperation::And:
      return a & b;
    case VectorOperation::Or:
      return a | b;
    case VectorOperation::Xor:
      return a ^ b;
    case VectorOperation::AddInteger:
      return a + b;
    case VectorOperation::SubtractInteger:
      return a - b;
    case VectorOperation::ShiftLeft:
      return a << (b & 31);
    case VectorOperation::ShiftRight:
      return a >> (b & 31);
    case VectorOperation::ToFloat:
      return bits_of(static_cast<float>(static_cast<std::int32_t>(a)));
    default:
      return a;
  }
}

/// Lane of operand a that the result's lane gets.
std::uint32_t source_lane(const VectorOp& op, std::uint32_t lane, std::uint32_t columns) {
  switch (vector_operation(op.operation).operation) {
    case VectorOperation::Rotate:
      return (lane + op.scalar) % columns;
    case VectorOperation::Broadcast:
      return op.scalar;
    default:
      return lane;
  }
}

}  // namespace

VectorUnit::VectorUnit(const MachineConfig& config)
    : columns_(config.columns),
      rows_(std::size_t{config.vector_rows} * config.columns),
      constant_(config.columns) {}

void VectorUnit::load(const VectorLoad& load, const std::byte* dram) {
  for (std::uint32_t i = 0; i < load.count; ++i) {
    std::uint32_t* to = row(load.row + i);
    const std::byte* from = dram + static_cast<std::uint32_t>(load.address + i * load.pitch);
    std::fill_n(to, columns_, 0);
    if (!load.narrow) std::memcpy(to, from, std::size_t{4} * load.columns);
    for (std::uint32_t c = 0; load.narrow && c < load.columns; ++c) {
      std::uint16_t value;
      std::memcpy(&value, from + 2 * c, sizeof value);
      to[c] = std::uint32_t{value} << 16;
    }
  }
}

void VectorUnit::store(const VectorStore& store, std::byte* dram) const {
  for (std::uint32_t i = 0; i < store.count; ++i) {
    const std::uint32_t* from = row(store.row + i);
    std::byte* to = dram + static_cast<std::uint32_t>(store.address + i * store.pitch);
    if (!store.narrow) std::memcpy(to, from, std::size_t{4} * store.columns);
    for (std::uint32_t c = 0; store.narrow && c < store.columns; ++c) {
      const std::uint16_t value = to_bf16(number(from[c]));
      std::memcpy(to + 2 * c, &value, sizeof value);
    }
  }
}

void VectorUnit::run(const VectorOp& op, const Accumulators& accumulators) {
  const VectorOperation operation = vector_operation(op.operation).operation;
  std::ranges::fill(constant_, op.scalar);
  std::vector<std::uint32_t> sums(columns_), result(columns_);
  const unsigned reads = vector_operation(op.operation).reads;
  for (std::int64_t i = 0; i < op.count; ++i) {
    Lanes a = constant_.data(), b = constant_.data(), c = constant_.data();
    if (op.accumulators && (reads & kReadsA) != 0) {
      std::memcpy(sums.data(), accumulators.real_at(static_cast<std::size_t>(op.a + i * op.a_step)),
                  std::size_t{4} * columns_);
      a = sums.data();
    } else if ((reads & kReadsA) != 0) {
      a = row(op.a + i * op.a_step);
    }
    if ((reads & kReadsB) != 0 && !op.constant) b = row(op.b + i * op.b_step);
    if ((reads & kReadsC) != 0) c = row(op.c + i * op.c_step);
    for (std::uint32_t l = 0; l < columns_; ++l)
      result[l] = result_of(operation, a[source_lane(op, l, columns_)], b[l], c[l]);
    std::ranges::copy(result, row(op.destination + i * op.step));
  }
}

}  // namespace triptych::mmu
