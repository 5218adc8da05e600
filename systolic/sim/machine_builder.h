// Verilates a machine that is not built in: mmu_top with its parameters, as a shared object.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include "systolic/isa/machine.h"
#include "systolic/sim/machine_library.h"

namespace triptych::mmu {

struct BuiltLibrary {
  std::filesystem::path file;
  bool made = false;  ///< false: it was there
};

/// Told of each temporary file or folder of a build, so that a program that a signal ends can
/// remove it.
struct TemporaryObserver {
  std::function<void(const std::filesystem::path&)> made = [](const std::filesystem::path&) {};
  std::function<void(const std::filesystem::path&)> gone = [](const std::filesystem::path&) {};
};
/// For all builds of the process.
void observe_temporaries(TemporaryObserver observer);

struct BuildOptions {
  std::filesystem::path folder;  ///< an empty one for intermediate files. Its owner removes it
  bool force = false;            ///< even when it is there and whole
  Effort effort = Effort::Full;  ///< Quick is content with one of full speed that is there
};

/// Makes the shared object that open_rtl_machine finds, unless it is there and whole. `step`
/// receives the name of the next step: "verilate", "compile", "link". Other processes see the old
/// file or the whole new one. Throws std::system_error when the folder of built machines or
/// `options.folder` cannot be written, std::runtime_error when a tool is missing or fails. Then the
/// message names its log, which stays in the folder of the shared object. Throws
/// std::invalid_argument for modules of the machine's own that are wrong (rtl_sources,
/// array_of_own_modules) or that Verilator refuses, with its first complaint.
BuiltLibrary build_machine(const MachineConfig& machine, ArrayKind array,
                           const BuildOptions& options,
                           const std::function<void(std::string_view)>& step);

}  // namespace triptych::mmu
