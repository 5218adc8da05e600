// SPDX-License-Identifier: Apache-2.0
#include "systolic/driver/driver.h"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "systolic/driver/pair.h"
#include "systolic/isa/check.h"
#include "systolic/isa/sharing.h"
#include "systolic/sim/rtl_machine.h"
#include "systolic/twin/arrays.h"
#include "systolic/twin/twin.h"

namespace triptych::mmu {

void verify(const Program& program, const MachineConfig& machine) {
  check_program(program, machine);
}

Counters counters_of(const Program& program, const MachineConfig& machine) {
  return estimate(program, machine).counters;
}

namespace {

/// From the begin of one part to that of the next: whole rows of all banks, and some banks.
struct Parts {
  std::uint64_t bytes = 0, banks = 0;
};
Parts parts_of(const MachineConfig& machine) {
  const DramConfig& dram = machine.dram;
  const std::uint64_t rows = std::uint64_t{dram.row_bytes} * dram.banks;
  return {machine.dram_bytes / machine.arrays / rows * rows,
          std::uint64_t{dram.row_bytes} * std::max(1U, dram.banks / machine.arrays)};
}

}  // namespace

std::uint64_t dram_part_bytes(const MachineConfig& machine) {
  const Parts parts = parts_of(machine);
  const std::uint64_t lost = (machine.arrays - 1) * parts.banks;
  return parts.bytes - std::min(parts.bytes, lost);
}

Counters counters_among(const Program& program, const MachineConfig& machine, std::uint32_t running,
                        std::uint32_t array) {
  MachineConfig alone = machine;
  alone.dram_bytes = dram_part_bytes(machine);
  check_program(program, alone);
  const Parts parts = parts_of(machine);
  std::vector<Program> programs;
  for (std::uint32_t a = 0; a < machine.arrays; ++a)
    programs.push_back(a < running ? move_in_dram(program, a * (parts.bytes + parts.banks))
                                   : Program{encode_halt()});
  return estimate_arrays(programs, machine).at(array).counters;
}

std::unique_ptr<Machine> open_machine(const MachineConfig& machine, Simulation simulation) {
  validate(machine);
  if (simulation == Simulation::Twin) {
    if (!machine.rtl.empty())
      throw std::runtime_error(fmt::format(
          "[mmu] the twin knows nothing of the modules in {}: use the option simulate rtl, or both "
          "to compare them with it",
          machine.rtl));
    return open_twin(machine);
  }
  if (simulation == Simulation::Rtl) return open_rtl_machine(machine);
  return open_pair(open_rtl_machine(machine), open_twin(machine));
}

std::vector<std::string> rtl_machines() { return rtl_machine_names(); }

}  // namespace triptych::mmu
