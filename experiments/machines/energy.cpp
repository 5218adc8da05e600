// SPDX-License-Identifier: Apache-2.0
#include "experiments/machines/energy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"

namespace triptych::machines {
namespace {

// M. Horowitz, "Computing's energy problem (and what we can do about it)", ISSCC 2014, pp. 10-14:
// rough energies of operations in 45 nm at 0.9 V.
constexpr std::string_view kOperations = "Horowitz, ISSCC 2014, figure 1.1.9: 45 nm, 0.9 V";
constexpr std::string_view kInstructions =
    "Horowitz, ISSCC 2014, figure 1.1.9: an add instruction, all told; 25 pJ of it the instruction "
    "cache, 6 pJ the register file, the rest control";
constexpr std::string_view kMemory =
    "Horowitz, ISSCC 2014, figure 1.1.9: 1.3 to 2.6 nJ, of which this is the middle";

constexpr std::array<EnergyEvent, 8> kTable = {{
    {"float32 multiply", 3.7e-12, kOperations},
    {"float16 multiply", 1.1e-12, kOperations},
    {"float32 add", 0.9e-12, kOperations},
    {"instruction", 70e-12, kInstructions},
    {"8 KiB SRAM, 8 bytes", 10e-12, kOperations},
    {"32 KiB SRAM, 8 bytes", 20e-12, kOperations},
    {"1 MiB SRAM, 8 bytes", 100e-12, kOperations},
    {"DRAM, 8 bytes", 1.95e-9, kMemory},
}};

}  // namespace

std::string_view energy_table_name() { return "Horowitz, ISSCC 2014, 45 nm"; }

std::span<const EnergyEvent> energy_table() { return kTable; }

const EnergyEvent& energy_of(std::string_view name) {
  const auto* found = std::ranges::find(kTable, name, &EnergyEvent::name);
  if (found != kTable.end()) return *found;
  std::vector<std::string_view> names;
  names.reserve(kTable.size());
  for (const auto& event : kTable) names.push_back(event.name);
  throw InvalidArgument(
      fmt::format("the energy table has no \"{}\"; it has: {}", name, fmt::join(names, ", ")));
}

const EnergyEvent& sram_of(double capacity) {
  constexpr std::array<std::pair<double, std::string_view>, 3> sizes = {
      {{8192, "8 KiB SRAM, 8 bytes"},
       {32768, "32 KiB SRAM, 8 bytes"},
       {1048576, "1 MiB SRAM, 8 bytes"}}};
  const auto distance = [capacity](const auto& size) {
    return std::fabs(std::log(std::max(capacity, 1.0) / size.first));
  };
  return energy_of(std::ranges::min(sizes, {}, distance).second);
}

const EnergyEvent& dram() { return energy_of("DRAM, 8 bytes"); }

double total_joule(const std::vector<EnergyPart>& parts) {
  double sum = 0;
  for (const auto& part : parts) sum += part.joule();
  return sum;
}

}  // namespace triptych::machines
