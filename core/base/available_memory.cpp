// SPDX-License-Identifier: Apache-2.0
#include "core/base/available_memory.h"

#include <fstream>
#include <limits>
#include <string>

namespace triptych {

std::size_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::size_t kibibytes = 0;
  for (std::string key; file >> key; file.ignore(256, '\n')) {
    if (key == "MemAvailable:" && file >> kibibytes) return kibibytes * 1024;
  }
  return std::numeric_limits<std::size_t>::max();
}

}  // namespace triptych
