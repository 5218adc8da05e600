// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace triptych {

/// The file that a program's name stands for on the PATH. Nothing when none is there that may be
/// run. Relative elements of the PATH are passed over: an empty one means the current directory,
/// which may belong to a stranger.
std::optional<std::filesystem::path> find_program(const std::string& name);

/// Removes relative and empty elements from the PATH of this process and of all that it starts. The
/// PATH is unset if nothing is left. To be called before there are threads.
void drop_relative_path_elements();

}  // namespace triptych
