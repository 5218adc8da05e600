// Names of the entries of a folder, in place of std::filesystem::directory_iterator: libstdc++ 12
// constructs its entries in functions that must not throw, so that an allocation that fails there
// ends the program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace triptych {

/// Names of the entries of `folder` except "." and "..", in ascending order. With `error` set: the
/// readable part of a folder that cannot be listed. Throws std::bad_alloc alone.
std::vector<std::string> names_in(const std::filesystem::path& folder, std::error_code& error);

/// Makes the folder and those above it that are missing. Throws IoError.
void make_folder(const std::filesystem::path& folder);

}  // namespace triptych
