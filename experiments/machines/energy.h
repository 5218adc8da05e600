// Energy by one table of published figures, the same for every machine: the cost of an operation
// and of an access to a memory in one process, times the number of them. It compares organisations,
// not chips: no machine that is compared is built in that process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace triptych::machines {

/// One line of the table.
struct EnergyEvent {
  std::string_view name;  ///< "float32 multiply"
  double joule = 0;       ///< each
  std::string_view source;
};

/// "Horowitz, ISSCC 2014, 45 nm".
std::string_view energy_table_name();
std::span<const EnergyEvent> energy_table();
/// The line of that name. Throws InvalidArgument with the names that exist.
const EnergyEvent& energy_of(std::string_view name);

/// Bytes that one access to a memory of the table moves.
inline constexpr double kEnergyAccessBytes = 8;

/// The line for accesses to a memory on the chip of that capacity in bytes: the table's nearest
/// size, by ratio.
const EnergyEvent& sram_of(double capacity);
/// An access to the memory outside the chip.
const EnergyEvent& dram();

/// A share of the energy of some work.
struct EnergyPart {
  std::string name;  ///< "L2 cache"
  double events = 0;
  const EnergyEvent* event = nullptr;

  double joule() const { return event == nullptr ? 0 : events * event->joule; }
};

/// The sum of the parts, in joule.
double total_joule(const std::vector<EnergyPart>& parts);

}  // namespace triptych::machines
