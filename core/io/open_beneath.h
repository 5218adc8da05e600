// Files of a directory that somebody else filled. The kernel resolves the name beneath the
// directory and refuses symbolic links. A regular file with a second name (hard link) is refused.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace triptych {

/// True when `name`, a path within `folder`, is a regular file. False when nothing is there.
/// Throws IoError when it is a link, lies behind one, has a second name or is of another type.
bool is_file_beneath(const std::filesystem::path& folder, const std::string& name);

/// The whole file. Throws IoError with the name alone, as is_file_beneath does, and when it is not
/// there or larger than `max_bytes`.
std::string read_beneath(const std::filesystem::path& folder, const std::string& name,
                         std::int64_t max_bytes);

}  // namespace triptych
