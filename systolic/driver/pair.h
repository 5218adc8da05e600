// Two machines that run the same programs and must not differ.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "systolic/isa/simulator.h"

namespace triptych::mmu {

/// Runs every program on both, the RTL first, and throws Mismatch unless the times of all
/// instructions, the counters and the data written to DRAM, accumulators and buffer agree. The
/// message gives the first difference with both values. By running parts of the program again it
/// finds the PE, the cycle and the matmul that began it. Takes two machines that have not run yet.
/// dram() is the first's.
std::unique_ptr<Machine> open_pair(std::unique_ptr<Machine> first, std::unique_ptr<Machine> second);

/// The first difference of two reports of one program, as "cycles: 12 and 13". Empty: none.
std::string difference(const RunReport& first, const RunReport& second, const Program& program);

}  // namespace triptych::mmu
