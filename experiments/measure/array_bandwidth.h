// Bandwidths of a systolic machine's memories, by programs of copies and triads through the
// twin's clock.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "experiments/machines/machine_figures.h"
#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"

namespace triptych::measure {

/// A program that moves `chunks` chunks of positions, each as many as half of the memories hold.
struct StreamProgram {
  mmu::Program program;
  double chip_bytes = 0;  ///< that pass between the array and its buffer and accumulators
  double dram_bytes = 0;  ///< of operands and results
};

/// Copies within the chip: the buffer's positions stream past a unit matrix into the accumulators.
/// A triad adds them, times a factor, to the content of the accumulators.
StreamProgram on_chip_program(const mmu::MachineConfig& machine, bool triad, int chunks);

/// Copies from DRAM to DRAM: load, unit matrix, store in the format of the elements. A triad's
/// store adds a second operand that it reads.
StreamProgram dram_program(const mmu::MachineConfig& machine, bool triad, int chunks);

/// "unified buffer and accumulators" and "DRAM", simulated: bytes over cycles of the programs'
/// steady part. Throws std::invalid_argument for a machine out of range.
std::vector<machines::MemoryLevel> array_bandwidths(const mmu::MachineConfig& machine);

}  // namespace triptych::measure
