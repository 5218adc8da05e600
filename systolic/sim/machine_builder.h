// Verilates a machine that is not built in: mmu_top with its parameters, as a shared object.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include "systolic/isa/machine.h"

namespace triptych::mmu {

struct BuiltLibrary {
  std::filesystem::path file;
  bool made = false;  ///< false: it was there
};

/// Makes the shared object that open_rtl_machine finds, unless it is there and whole (`force`: even
/// then). `step` is told what begins: "verilate", "compile", "link". Other processes see the old
/// file or the whole new one. Throws std::system_error when the folder of built machines or the
/// temporary one cannot be written, std::runtime_error when a tool is missing or fails; then the
/// message names its log, which stays next to where the shared object would be.
BuiltLibrary build_machine(const MachineConfig& machine, ArrayKind array, bool force,
                           const std::function<void(std::string_view)>& step);

}  // namespace triptych::mmu
