// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/lowering/vector_program.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace triptych::systolic {

using mmu::VectorOperation;

VectorOperand::VectorOperand(float number)
    : kind_(Kind::Number), value_(std::bit_cast<std::uint32_t>(number)) {}

VectorOperand VectorOperand::bits(std::uint32_t bits) {
  return VectorOperand(std::bit_cast<float>(bits));
}

VectorOperand VectorOperand::part(std::uint32_t first, std::uint32_t stride) const {
  VectorOperand part = *this;
  part.repeats_ = 1;
  part.value_ += static_cast<std::uint32_t>(step_) * (first / repeats_);
  if (kind_ == Kind::Block) part.step_ *= static_cast<std::int32_t>(stride / repeats_);
  return part;
}

VectorProgram::VectorProgram(const mmu::MachineConfig& machine, std::uint32_t rows)
    : machine_(machine), block_rows_(rows), rows_(rows) {}

VectorBlock VectorProgram::allocate(std::uint32_t rows) {
  auto& free = free_[rows];
  if (!free.empty()) {
    const VectorBlock block{free.back()};
    free.pop_back();
    return block;
  }
  if (next_ + rows + constants_.size() > machine_.vector_rows)
    throw std::invalid_argument(
        fmt::format("[systolic] the vector memory of {} rows is full: use smaller blocks than {} "
                    "rows, or give the machine more vector_rows",
                    machine_.vector_rows, rows));
  const VectorBlock block{next_};
  sizes_[next_] = rows;
  next_ += rows;
  return block;
}

std::uint32_t VectorProgram::constant_row(std::uint32_t bits) {
  const auto row = static_cast<std::uint32_t>(machine_.vector_rows - constants_.size() - 1);
  const auto [found, added] = constants_.try_emplace(bits, row);
  if (!added) return found->second;
  if (row < next_)
    throw std::invalid_argument(
        fmt::format("[systolic] the vector memory of {} rows has no row left for a constant: use "
                    "smaller blocks than {} rows",
                    machine_.vector_rows, block_rows_));
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
  const std::uint32_t repeats = std::max({a.repeats(), b.repeats(), c.repeats()});
  if (repeats == 1) return apply_to(rows_, operation, result, a, b, c);
  // Rows of one repeated row after the other, or row i of all of them.
  const std::uint32_t groups = rows_ / repeats;
  const bool by_group = groups <= repeats;
  for (std::uint32_t i = 0; i < std::min(groups, repeats); ++i) {
    const auto part = [&](VectorOperand operand) {
      return by_group ? operand.part(i * repeats, 1) : operand.part(i, repeats);
    };
    apply_to(by_group ? repeats : groups, operation, part(result), part(a), part(b), part(c));
  }
}

void VectorProgram::apply_to(std::uint32_t rows, VectorOperation operation, VectorOperand result,
                             VectorOperand a, VectorOperand b, VectorOperand c) {
  mmu::VectorOp op;
  op.operation = static_cast<std::uint32_t>(operation);
  op.count = rows;
  op.destination = result.value();
  op.step = result.step();
  const auto place = [&](VectorOperand operand, std::uint32_t& first, std::int32_t& step) {
    first = operand.is_number() ? constant_row(operand.value()) : operand.value();
    step = operand.step();
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

void VectorProgram::cross_lanes(VectorOperation operation, VectorBlock x, std::uint32_t lane,
                                VectorBlock y) {
  mmu::VectorOp op;
  op.operation = static_cast<std::uint32_t>(operation);
  op.count = rows_;
  op.destination = y.row;
  op.step = y.step;
  op.a = x.row;
  op.a_step = x.step;
  op.scalar = lane;
  add(mmu::encode(op));
}

void VectorProgram::rotate(VectorBlock x, std::uint32_t lanes, VectorBlock y) {
  cross_lanes(VectorOperation::Rotate, x, lanes, y);
}
void VectorProgram::broadcast(VectorBlock x, VectorBlock y) {
  cross_lanes(VectorOperation::Broadcast, x, 0, y);
}

namespace {

template <class T>
mmu::Instruction transfer(VectorBlock block, std::uint32_t rows, std::uint32_t lanes,
                          std::uint64_t address, std::int64_t pitch) {
  T vectors;
  vectors.address = static_cast<std::uint32_t>(address);
  vectors.pitch = static_cast<std::uint32_t>(pitch);
  vectors.row = block.row;
  vectors.count = rows;
  vectors.columns = lanes;
  return mmu::encode(vectors);
}

/// Calls move(block, rows, lanes, address) for the full rows and for the last one.
template <class Move>
void for_each_piece(VectorBlock block, std::int64_t values, std::uint32_t lanes,
                    std::uint64_t address, const Move& move) {
  const auto rows = static_cast<std::uint32_t>(values / lanes);
  const auto rest = static_cast<std::uint32_t>(values % lanes);
  if (rows > 0) move(block, rows, lanes, address);
  if (rest > 0) move(block.from(rows), 1U, rest, address + std::uint64_t{4} * rows * lanes);
}

}  // namespace

void VectorProgram::load_rows(std::uint64_t address, std::int64_t pitch, std::uint32_t rows,
                              std::uint32_t lanes, VectorBlock to) {
  add(transfer<mmu::VectorLoad>(to, rows, lanes, address, pitch));
}

void VectorProgram::store_rows(VectorBlock from, std::uint32_t rows, std::uint32_t lanes,
                               std::uint64_t address, std::int64_t pitch) {
  add(transfer<mmu::VectorStore>(from, rows, lanes, address, pitch));
}

void VectorProgram::load(std::uint64_t address, std::int64_t values, std::uint32_t lanes,
                         VectorBlock to) {
  for_each_piece(to, values, lanes, address, [&](auto block, auto rows, auto columns, auto from) {
    load_rows(from, std::int64_t{4} * lanes, rows, columns, block);
  });
}

void VectorProgram::store(VectorBlock from, std::int64_t values, std::uint32_t lanes,
                          std::uint64_t address) {
  for_each_piece(from, values, lanes, address, [&](auto block, auto rows, auto columns, auto to) {
    store_rows(block, rows, columns, to, std::int64_t{4} * lanes);
  });
}

mmu::Program VectorProgram::finish() {
  mmu::Program program = std::move(program_);
  program.push_back(mmu::encode_halt());
  return program;
}

}  // namespace triptych::systolic
