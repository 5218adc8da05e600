// Modules of somebody's own in the place of ours: the files of a folder, by name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "systolic/isa/machine.h"

namespace triptych::mmu {

/// A file of the machine's RTL.
struct RtlSource {
  std::string name;     ///< "mmu_pe.sv"
  std::string content;  ///< as it is now
  std::string path;     ///< where its user finds it: in the folder, or under its path in our tree
  bool own = false;     ///< out of the machine's folder
};

/// All files of the RTL of a machine in Verilator's reading order. Those that lie in the folder
/// MachineConfig::rtl come from there. Throws std::invalid_argument for a path that is no folder or
/// has no module, and for a file with a name, or a module, that ours do not have.
std::vector<RtlSource> rtl_sources(const MachineConfig& machine);

/// The array that the machine's own modules are part of. nullopt: they are part of both, or there
/// are none. Throws as rtl_sources does, and std::invalid_argument when modules, or module and
/// MachineConfig::array, contradict each other, and for a changed module that no machine of this
/// pe_latency has.
std::optional<ArrayKind> array_of_own_modules(const MachineConfig& machine);

/// "mmu_pe.sv, mmu_array_grid.sv": the machine's own modules. Throws as rtl_sources does.
std::string own_module_names(const MachineConfig& machine);

/// Names and contents of the files that may be replaced.
std::vector<std::string_view> module_files();
std::string_view module_text(std::string_view file);

}  // namespace triptych::mmu
