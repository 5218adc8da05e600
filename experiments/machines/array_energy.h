// Energy of a systolic array's work: the actions that its counters count, times their prices.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "experiments/machines/energy.h"
#include "systolic/isa/simulator.h"

namespace triptych::machines {

/// The parts of the energy of a run with these counts:
/// - a multiplication and an addition for each multiply-add, padded channels included,
/// - the registers of the array: for each issue slot every PE passes an activation to the right and
///   a sum down, `pe_latency` registers of 32 bits. A weight passes (R + 1) / 2 registers on its
///   way down on average, then the shadow and the active register of its PE. Machines with the
///   output-stationary dataflow get R + 2 registers, an upper bound,
/// - the bits of weight FIFO, accumulators, unified buffer and DRAM,
/// - the clock of all flip-flops in every cycle, and leakage, by the area of array_area.h.
std::vector<EnergyPart> array_energy(const mmu::Counters& counts, const mmu::MachineConfig& machine,
                                     const EnergyTable& table);

}  // namespace triptych::machines
