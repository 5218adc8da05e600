// Choice of the simulator of a machine, for those who only pass it on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace triptych::mmu {

/// Both: runs RTL and twin and throws Mismatch at the first difference in bits or cycles.
enum class Simulation : std::uint8_t { Rtl, Twin, Both };

inline constexpr auto kSimulationNames = std::to_array<std::pair<Simulation, std::string_view>>(
    {{Simulation::Twin, "twin"}, {Simulation::Rtl, "rtl"}, {Simulation::Both, "both"}});

}  // namespace triptych::mmu
