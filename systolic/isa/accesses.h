// Which bytes of the DRAM an instruction reads or writes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"

namespace triptych::mmu {

/// The walk over DRAM of a store: position after position, addresses in bytes.
class OutputWalk {
 public:
  OutputWalk(const SetOutput& geometry, const Store& store)
      : geometry_(geometry),
        address_(store.address),
        rows_left_(store.rows_left),
        columns_left_(store.columns_left) {}

  std::uint32_t address() const { return address_; }
  void next() {
    if (columns_left_ > 1) {
      --columns_left_;
      address_ += static_cast<std::uint32_t>(geometry_.step_x);
      return;
    }
    columns_left_ = geometry_.out_width;
    if (rows_left_ > 1) {
      --rows_left_;
      address_ += static_cast<std::uint32_t>(geometry_.wrap_y);
    } else {
      rows_left_ = geometry_.out_height;
      address_ += static_cast<std::uint32_t>(geometry_.wrap_n);
    }
  }

 private:
  SetOutput geometry_;
  std::uint32_t address_, rows_left_, columns_left_;
};

/// What a store writes for one position.
inline std::uint32_t position_bytes(const Store& store, const MachineConfig& machine) {
  return store.columns * (store.narrow ? machine.element_bytes() : 4);
}

/// Calls visit(address, bytes, is_write) for each contiguous piece until it returns false;
/// `output` is the SetOutput in force.
template <class Visit>
void visit_accesses(const Instruction& instruction, const SetOutput& output,
                    const MachineConfig& machine, Visit visit) {
  const auto lines = [&](std::uint32_t address, std::uint32_t pitch, std::uint32_t count,
                         std::uint64_t bytes) {
    for (; count > 0 && visit(address, bytes, false); --count) address += pitch;
  };
  switch (instruction.opcode()) {
    case Opcode::Load: {
      const auto load = decode<Load>(instruction);
      const std::uint64_t elements = std::uint64_t{load.units} << load.log2_group;
      return lines(load.address, load.pitch, load.lines, elements * machine.element_bytes());
    }
    case Opcode::WeightLoad: {
      const auto load = decode<WeightLoad>(instruction);
      return lines(load.address, load.pitch, load.rows, load.columns * machine.element_bytes());
    }
    case Opcode::LoadRegisters: {
      const auto load = decode<LoadRegisters>(instruction);
      return lines(load.address, 0, 1, std::uint64_t{4} * load.columns);
    }
    case Opcode::Store: {
      const auto store = decode<Store>(instruction);
      OutputWalk walk(output, store);
      const std::uint64_t bytes = position_bytes(store, machine);
      for (std::uint32_t m = 0; m < store.count && visit(walk.address(), bytes, true); ++m)
        walk.next();
      return;
    }
    default:
      return;
  }
}

}  // namespace triptych::mmu
