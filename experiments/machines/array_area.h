// Area of a systolic array from synthesis, unit by unit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "systolic/isa/machine.h"

namespace triptych::machines {

struct Area {
  double gates = 0;  ///< of two inputs
  double flip_flops = 0;
  double ram_bits = 0;
};

struct UnitArea {
  std::string unit;  ///< "PE", "output column", "control"
  double number = 0;
  Area each;
};

/// The units of the machine. Logic is that of Yosys' synthesis with gates of two inputs
/// (tests/systolic/rtl/area.py), memories are exact. Control does not grow with the array.
std::vector<UnitArea> unit_areas(const mmu::MachineConfig& machine);
Area total_area(const mmu::MachineConfig& machine);

}  // namespace triptych::machines
