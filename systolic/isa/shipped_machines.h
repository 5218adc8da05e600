// The machines of systolic/machines, as text in the library. Their list is in the CMakeLists.txt.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace triptych::mmu {

struct ShippedMachine {
  std::string_view name;
  std::string_view json;
};

std::span<const ShippedMachine> shipped_machines();

}  // namespace triptych::mmu
