// Faults of the array's RTL that lab 4 asks tests to find: all of them are seeded in one copy of
// the modules, and a plusarg of the simulation, +fault=NUMBER, says which one is there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/choice.h"

namespace triptych::labs {

enum class Place : std::uint8_t { Arithmetic, Addresses, Tiles, Control };

struct SeededFault {
  std::string_view name;
  Place place = Place::Arithmetic;
  bool shown = false;        ///< in the handout
  std::string_view promise;  ///< of the handout's table that it breaks: "sums"
  std::string_view module;
  std::string_view right, wrong;  ///< expressions. The right one stands once in the module
  std::string_view words;         ///< description of the mistake
};

/// All faults. The number of one is its place in this list, from 1 on. 0: none.
std::span<const SeededFault> seeded_faults();

/// Names of the modules that have faults, each once.
std::vector<std::string> modules_with_faults();

/// The modules, by name, with all faults in them. Throws InvalidArgument when a fault's right
/// expression does not stand there exactly once.
std::map<std::string, std::string> seed_faults(std::map<std::string, std::string> modules);

}  // namespace triptych::labs

namespace triptych {

template <>
inline constexpr auto kNamesOf<labs::Place> =
    std::to_array<std::pair<labs::Place, std::string_view>>({
        {labs::Place::Arithmetic, "the arithmetic"},
        {labs::Place::Addresses, "the addresses"},
        {labs::Place::Tiles, "the tiles and the output unit"},
        {labs::Place::Control, "the control"},
    });

}  // namespace triptych
