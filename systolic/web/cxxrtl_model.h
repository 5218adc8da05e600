// The RTL of a machine as Yosys' write_cxxrtl makes it: C++ without a run-time library, which a
// compiler for WebAssembly takes as well. Looks like Verilator's models to the harness, and writes
// down signals of the top by cycle.
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

/// A wire or register of mmu_top, at most 32 bits wide, by cycle.
struct RecordedSignal {
  std::string name;
  std::size_t bits = 0;
  std::vector<std::uint32_t> values;  ///< from cycle 0 up to the Halt's, when they have settled
};

/// A machine with programs that can be observed.
struct RecordedMachine {
  std::unique_ptr<Machine> machine;
  std::shared_ptr<const std::vector<RecordedSignal>> signals;  ///< of the last program
};

/// Throws std::runtime_error, naming those that there are, when no RTL of these parameters was
/// compiled in. Signals of at most `limit` cycles are recorded.
RecordedMachine open_recorded_rtl(const MachineConfig& machine, std::uint64_t limit);

}  // namespace triptych::mmu
