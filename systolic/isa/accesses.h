// Which bytes of the DRAM an instruction reads or writes, and which buffer rows it writes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"
#include "systolic/isa/vector_operations.h"

namespace triptych::mmu {

/// The descriptors of the store unit that are in force.
struct StoreGeometry {
  SetOutput output;
  SetOperand operand;

  void set(const Instruction& instruction) {
    if (instruction.opcode() == Opcode::SetOutput) output = decode<SetOutput>(instruction);
    if (instruction.opcode() == Opcode::SetOperand) operand = decode<SetOperand>(instruction);
  }
};

/// Places that a store walks over, position after position: DRAM in bytes, or rows of the buffer or
/// of accumulators.
class OutputWalk {
 public:
  OutputWalk(const StoreGeometry& geometry, const Store& store)
      : OutputWalk(geometry.output, store, store.address, geometry.output.step_x,
                   geometry.output.wrap_y, geometry.output.wrap_n) {}
  static OutputWalk operand(const StoreGeometry& geometry, const Store& store) {
    return {geometry.output,         store,
            store.operand,           geometry.operand.step_x,
            geometry.operand.wrap_y, geometry.operand.wrap_n};
  }
  /// The first accumulator row of each position.
  static OutputWalk accumulators(const StoreGeometry& geometry, const Store& store) {
    const SetOutput& output = geometry.output;
    if (!store.pool) return {output, store, store.accumulator, 1, 1, 1};
    return {output,
            store,
            store.accumulator,
            2,
            static_cast<std::int32_t>(output.pool_wrap_y),
            static_cast<std::int32_t>(output.pool_wrap_n)};
  }

  std::uint32_t address() const { return address_; }
  void next() {
    if (columns_left_ > 1) {
      --columns_left_;
      address_ += static_cast<std::uint32_t>(step_x_);
      return;
    }
    columns_left_ = out_width_;
    if (rows_left_ > 1) {
      --rows_left_;
      address_ += static_cast<std::uint32_t>(wrap_y_);
    } else {
      rows_left_ = out_height_;
      address_ += static_cast<std::uint32_t>(wrap_n_);
    }
  }

 private:
  OutputWalk(const SetOutput& geometry, const Store& store, std::uint32_t first,
             std::int32_t step_x, std::int32_t wrap_y, std::int32_t wrap_n)
      : out_height_(geometry.out_height),
        out_width_(geometry.out_width),
        step_x_(step_x),
        wrap_y_(wrap_y),
        wrap_n_(wrap_n),
        address_(first),
        rows_left_(store.rows_left),
        columns_left_(store.columns_left) {}

  std::uint32_t out_height_, out_width_;
  std::int32_t step_x_, wrap_y_, wrap_n_;
  std::uint32_t address_, rows_left_, columns_left_;
};

/// Accumulator rows behind each position of a store.
inline std::uint32_t rows_of_position(const Store& store) { return store.pool ? 4 : 1; }

/// Those of the position that starts at `first`. Without a pool the first alone counts.
inline std::array<std::uint32_t, 4> position_rows(const SetOutput& geometry, std::uint32_t first,
                                                  const MachineConfig& machine) {
  const std::uint32_t mask = machine.accumulator_rows - 1;
  const std::uint32_t below = first + geometry.pool_pitch;
  return {first & mask, (first + 1) & mask, below & mask, (below + 1) & mask};
}

/// Positions and values that a matmul reads of the buffer.
struct MatmulReads {
  std::uint32_t positions = 0, values = 0;
};

/// `tile_rows`: the length of its chains.
inline MatmulReads reads_of(const Matmul& matmul, std::uint32_t tile_rows) {
  if (matmul.transpose == matmul.output_stationary) return {matmul.count, tile_rows};
  return {tile_rows, matmul.count};
}
/// Accumulator rows that a matmul writes, from Matmul::accumulator on.
inline std::uint32_t rows_written(const Matmul& matmul) {
  return matmul.output_stationary && !matmul.drain ? 0 : matmul.count;
}
/// True when its chains start from the accumulators.
inline bool reads_accumulators(const Matmul& matmul) {
  return matmul.accumulate && !matmul.output_stationary;
}

inline bool has_operand(const Store& store) { return store.residual || store.select; }

/// Bytes of its operand that a store reads for one position.
inline std::uint32_t operand_bytes(const Store& store, const MachineConfig& machine) {
  if (store.select) return (store.columns + 7) / 8;
  return store.columns * (store.narrow ? machine.element_bytes() : 4);
}

/// Bytes that a store writes for one position.
inline std::uint32_t position_bytes(const Store& store, const MachineConfig& machine) {
  if (store.mask) return (store.columns + 7) / 8;
  return store.columns * (store.narrow ? machine.element_bytes() : 4);
}

/// Cycles in which a vector operation reads the operands of a row: a and b, and c in one of its
/// own.
inline std::uint32_t cycles_of_row(const VectorOp& op) {
  return (vector_operation(op.operation).reads & kReadsC) != 0 ? 2 : 1;
}

/// From the start of a vector operation to its end. The last row is written three cycles after the
/// read of its operands.
inline std::uint64_t cycles_of(const VectorOp& op) {
  return std::uint64_t{op.count} * cycles_of_row(op) + 4;
}

/// Rows in DRAM, `pitch` bytes apart.
struct DramRows {
  std::uint32_t address, pitch, count, bytes;
};

/// Those of a LoadRegisters, a VectorLoad or a VectorStore.
inline DramRows rows_of(const Instruction& instruction) {
  if (instruction.opcode() == Opcode::LoadRegisters) {
    const auto load = decode<LoadRegisters>(instruction);
    return {load.address, load.pitch, 1 + load.more, 4 * load.columns};
  }
  if (instruction.opcode() == Opcode::VectorLoad) {
    const auto load = decode<VectorLoad>(instruction);
    return {load.address, load.pitch, load.count, load.columns * (load.narrow ? 2 : 4)};
  }
  const auto store = decode<VectorStore>(instruction);
  return {store.address, store.pitch, store.count, store.columns * (store.narrow ? 2 : 4)};
}

/// Calls visit(address, bytes, is_write) for each contiguous piece of DRAM until it returns false.
/// `geometry` is in force.
template <class Visit>
void visit_accesses(const Instruction& instruction, const StoreGeometry& geometry,
                    const MachineConfig& machine, Visit visit) {
  const auto lines = [&](std::uint32_t address, std::uint32_t pitch, std::uint32_t count,
                         std::uint64_t bytes) {
    for (; count > 0 && visit(address, bytes, false); --count) address += pitch;
  };
  const auto visit_rows = [&](DramRows rows, bool is_write) {
    for (; rows.count > 0 && visit(rows.address, rows.bytes, is_write); --rows.count)
      rows.address += rows.pitch;
  };
  switch (instruction.opcode()) {
    case Opcode::Load: {
      const auto load = decode<Load>(instruction);
      const std::uint64_t elements = std::uint64_t{load.units} * machine.group(load.log2_group);
      return lines(load.address, load.pitch, load.lines, elements * machine.element_bytes());
    }
    case Opcode::WeightLoad: {
      const auto load = decode<WeightLoad>(instruction);
      return lines(load.address, load.pitch, load.rows, load.columns * machine.element_bytes());
    }
    case Opcode::LoadRegisters:
    case Opcode::VectorLoad:
    case Opcode::VectorStore:
      return visit_rows(rows_of(instruction), instruction.opcode() == Opcode::VectorStore);
    case Opcode::Store: {
      const auto store = decode<Store>(instruction);
      const auto walk_over = [&](OutputWalk walk, std::uint64_t bytes, bool is_write) {
        for (std::uint32_t m = 0; m < store.count && visit(walk.address(), bytes, is_write); ++m)
          walk.next();
      };
      if (has_operand(store))
        walk_over(OutputWalk::operand(geometry, store), operand_bytes(store, machine), false);
      if (store.buffer) return;
      return walk_over(OutputWalk(geometry, store), position_bytes(store, machine), true);
    }
    default:
      return;
  }
}

/// Calls visit(row) for each buffer row that the instruction writes, in order. `geometry` is in
/// force.
template <class Visit>
void visit_buffer_writes(const Instruction& instruction, const StoreGeometry& geometry,
                         const MachineConfig& machine, Visit visit) {
  const std::uint32_t mask = machine.buffer_rows - 1;
  if (instruction.opcode() == Opcode::Load) {
    const auto load = decode<Load>(instruction);
    for (std::uint32_t line = 0; line < load.lines; ++line)
      for (std::uint32_t unit = 0; unit < load.units; ++unit)
        visit((load.buffer_row + line * load.buffer_pitch + unit) & mask);
  } else if (instruction.opcode() == Opcode::Store) {
    const auto store = decode<Store>(instruction);
    if (!store.buffer) return;
    OutputWalk walk(geometry, store);
    for (std::uint32_t m = 0; m < store.count; ++m, walk.next()) visit(walk.address() & mask);
  }
}

/// Calls visit(row, is_write) for each row of the vector memory that the instruction reads, and
/// then for each that it writes.
template <class Visit>
void visit_vector_rows(const Instruction& instruction, Visit visit) {
  const auto walk = [&](std::uint32_t first, std::int32_t step, std::uint32_t count,
                        bool is_write) {
    for (std::uint32_t i = 0; i < count; ++i)
      visit(first + i * static_cast<std::uint32_t>(step), is_write);
  };
  if (instruction.opcode() == Opcode::VectorLoad) {
    const auto load = decode<VectorLoad>(instruction);
    walk(load.row, 1, load.count, true);
  } else if (instruction.opcode() == Opcode::VectorStore) {
    const auto store = decode<VectorStore>(instruction);
    walk(store.row, 1, store.count, false);
  } else if (instruction.opcode() == Opcode::VectorOp) {
    const auto op = decode<VectorOp>(instruction);
    const unsigned reads = vector_operation(op.operation).reads;
    if ((reads & kReadsA) != 0 && !op.accumulators) walk(op.a, op.a_step, op.count, false);
    if ((reads & kReadsB) != 0 && !op.constant) walk(op.b, op.b_step, op.count, false);
    if ((reads & kReadsC) != 0) walk(op.c, op.c_step, op.count, false);
    walk(op.destination, op.step, op.count, true);
  }
}

/// Calls visit(row) for each row of the accumulators that the instruction reads as a vector.
template <class Visit>
void visit_vector_sums(const Instruction& instruction, Visit visit) {
  if (instruction.opcode() != Opcode::VectorOp) return;
  const auto op = decode<VectorOp>(instruction);
  if (!op.accumulators || (vector_operation(op.operation).reads & kReadsA) == 0) return;
  for (std::uint32_t i = 0; i < op.count; ++i)
    visit(op.a + i * static_cast<std::uint32_t>(op.a_step));
}

}  // namespace triptych::mmu
