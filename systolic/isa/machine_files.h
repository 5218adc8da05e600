// Files of machines. A browser, which has none, gets systolic/web/no_files.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "systolic/isa/machine.h"

namespace triptych::mmu {

/// As seen from any folder.
std::string absolute_path(const std::string& path);
/// find_machine() for machines that are neither shipped nor JSON.
MachineConfig read_machine_file(std::string_view path);
/// The text of a file, or nothing when `path` is missing or a folder. Throws std::invalid_argument
/// for a pipe or a device, for more than 16 MiB, and for a file that cannot be read.
std::optional<std::string> read_text_file(const std::filesystem::path& path);

}  // namespace triptych::mmu
