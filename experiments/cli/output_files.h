// Files that a command will write when its work is done: what stands in their way is found before
// the work begins.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace triptych::cli {

/// Makes the folder of `path`. Throws IoError unless a file can be written there.
void require_writable(const std::filesystem::path& path);

/// A page and the numbers that it is made from.
struct PageFiles {
  std::filesystem::path page;
  std::filesystem::path numbers;  ///< the page's name, ending in .json
};

/// Throws InvalidArgument when `out` ends in .json, and IoError unless both can be written.
PageFiles page_files(const std::string& out);

}  // namespace triptych::cli
