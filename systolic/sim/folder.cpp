// SPDX-License-Identifier: Apache-2.0
#include "systolic/sim/folder.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace triptych::mmu {

std::vector<std::string> names_in(const std::filesystem::path& folder, std::error_code& error) {
  const auto close = [](DIR* open) { ::closedir(open); };
  const std::unique_ptr<DIR, decltype(close)> open(::opendir(folder.c_str()));
  error.assign(open ? 0 : errno, std::generic_category());
  std::vector<std::string> names;
  while (open) {
    errno = 0;
    const dirent* entry = ::readdir(open.get());
    if (entry == nullptr) {
      error.assign(errno, std::generic_category());
      break;
    }
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace triptych::mmu
