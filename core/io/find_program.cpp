// SPDX-License-Identifier: Apache-2.0
#include "core/io/find_program.h"

#include <unistd.h>

#include <cstdlib>
#include <sstream>

namespace triptych {

namespace fs = std::filesystem;

std::optional<fs::path> find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const auto file = fs::path(folder) / name;
    std::error_code ignored;
    if (fs::is_regular_file(file, ignored) && access(file.c_str(), X_OK) == 0) return file;
  }
  return std::nullopt;
}

}  // namespace triptych
