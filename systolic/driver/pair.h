// Two machines that run the same programs and must not differ.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "systolic/isa/simulator.h"

namespace triptych::mmu {

/// Runs every program on both and throws std::runtime_error, naming the first difference, unless
/// DRAM, buffer, accumulators, counters and the times of all instructions agree. Takes two machines
/// that have not run yet; dram() is the first's.
std::unique_ptr<Machine> open_pair(std::unique_ptr<Machine> first, std::unique_ptr<Machine> second);

/// The first difference of two reports of one program, as "cycles: 12 and 13"; empty: none.
std::string difference(const RunReport& first, const RunReport& second, const Program& program);

}  // namespace triptych::mmu
