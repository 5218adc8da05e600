// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace triptych {

/// The file that a program's name stands for on the PATH; nothing when none is there that may be
/// run.
std::optional<std::filesystem::path> find_program(const std::string& name);

}  // namespace triptych
