// The RTL of a machine as Yosys' write_cxxrtl makes it: C++ without a run-time library, which a
// compiler for WebAssembly takes as well. Looks like Verilator's models to the harness, and writes
// down what registers hold in every cycle.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "systolic/isa/machine.h"
#include "systolic/isa/simulator.h"

namespace triptych::mmu {

/// Registers of one PE: systolic/rtl/mmu_pe.sv. A weight is {enable, value}.
struct PeRegisters {
  std::uint32_t activation = 0, weight = 0, shadow = 0, moving = 0, sum = 0;
};

/// A wire or register of mmu_top, at most 32 bits wide, by cycle.
struct RecordedSignal {
  std::string name;
  std::size_t bits = 0;
  std::vector<std::uint32_t> values;
};

/// Cycles of one program, from cycle 0 up to the Halt's, each cycle after its signals have settled.
struct RtlRecord {
  std::uint64_t cycles = 0;
  std::vector<PeRegisters> pes;     ///< [cycle][row][column]
  std::vector<std::uint32_t> tops;  ///< [cycle][column]: starts of the chains at the columns' tops
  std::vector<RecordedSignal> signals;
};

/// A machine of which programs can be looked at.
struct RecordedMachine {
  std::unique_ptr<Machine> machine;
  std::shared_ptr<const RtlRecord> record;  ///< of the last program; at most `limit` cycles
};

/// Throws std::runtime_error, naming those that there are, when no RTL of these parameters was
/// compiled in.
RecordedMachine open_recorded_rtl(const MachineConfig& machine, std::uint64_t limit);

}  // namespace triptych::mmu
