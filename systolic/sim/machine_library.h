// The RTL of a machine as a shared object: its name, its integrity check and how to open it. They
// lie in $XDG_CACHE_HOME/triptych/machines (~/.cache where that is not set). A name ends in a hash
// over all that the object came from: another RTL, harness, compiler or processor looks for another
// name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "systolic/isa/machine.h"
#include "systolic/sim/rtl_model.h"

namespace triptych::mmu {

/// The parameters of mmu_top that make this machine, with their values.
using RtlParameters = std::vector<std::pair<std::string, std::uint32_t>>;
RtlParameters rtl_parameters(const MachineConfig& machine, ArrayKind array);

/// How the compiler is to work on a model: for speed, or soon (-O1).
enum class Effort { Full, Quick };

/// Where the machine's shared object lies once it is built. Throws as rtl_sources does.
std::filesystem::path library_file(const MachineConfig& machine, ArrayKind array, Effort effort);
/// True for another build of the machine's own modules, before they were changed: of no use.
bool is_outdated(const std::filesystem::path& file, const std::filesystem::path& library);

/// Where Verilator's run time lies, compiled once for all machines.
std::filesystem::path runtime_file();

/// Appends the checksum by which is_sealed recognises a complete file. Throws std::system_error.
void seal_library(const std::filesystem::path& file, const std::string& name);
/// True when the file is there, whole, and the one that its name promises.
bool is_sealed(const std::filesystem::path& file);

/// The model in a shared object, which then stays open. Throws std::runtime_error when the file is
/// damaged.
std::unique_ptr<RtlModel> open_library(const std::filesystem::path& file);

}  // namespace triptych::mmu
