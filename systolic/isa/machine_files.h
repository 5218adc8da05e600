// Files of machines; a browser, which has none, gets systolic/web/no_files.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "systolic/isa/machine.h"

namespace triptych::mmu {

/// As seen from any folder.
std::string absolute_path(const std::string& path);
/// find_machine() of what is neither shipped nor JSON.
MachineConfig read_machine_file(std::string_view path);

}  // namespace triptych::mmu
