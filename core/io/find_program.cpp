// SPDX-License-Identifier: Apache-2.0
#include "core/io/find_program.h"

#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <vector>

namespace triptych {

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> absolute_path_elements(const char* path) {
  std::vector<fs::path> folders;
  std::istringstream elements(path == nullptr ? "" : path);
  for (std::string element; std::getline(elements, element, ':');) {
    if (fs::path(element).is_absolute()) folders.emplace_back(element);
  }
  return folders;
}

}  // namespace

std::optional<fs::path> find_program(const std::string& name) {
  for (const auto& folder : absolute_path_elements(std::getenv("PATH"))) {
    const auto file = folder / name;
    std::error_code ignored;
    if (fs::is_regular_file(file, ignored) && access(file.c_str(), X_OK) == 0) return file;
  }
  return std::nullopt;
}

void drop_relative_path_elements() {
  const char* path = std::getenv("PATH");
  if (path == nullptr) return;
  std::string kept;
  for (const auto& folder : absolute_path_elements(path)) {
    if (!kept.empty()) kept += ':';
    kept += folder.string();
  }
  if (kept.empty()) {
    unsetenv("PATH");  // an empty PATH is one empty element
  } else {
    setenv("PATH", kept.c_str(), 1);
  }
}

}  // namespace triptych
