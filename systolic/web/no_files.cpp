// A browser's machines: those that are shipped, and JSON.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>

#include "systolic/isa/machine_files.h"

namespace triptych::mmu {

std::string absolute_path(const std::string& path) { return path; }

MachineConfig read_machine_file(std::string_view path) {
  throw std::invalid_argument(
      fmt::format("[machine] no machine '{}', and there are no files here; shipped are {}", path,
                  fmt::join(machine_names(), ", ")));
}

}  // namespace triptych::mmu
