// SPDX-License-Identifier: Apache-2.0
#include "systolic/isa/machine_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace triptych::mmu {
namespace {

[[noreturn]] void reject(const std::string& problem) {
  throw std::invalid_argument("[machine] " + problem);
}

/// Another machine, and another name.
MachineConfig with_modules(MachineConfig machine, std::string_view folder) {
  if (folder.empty()) reject("give the folder of your modules behind the '+'");
  if (!machine.rtl.empty())
    reject(fmt::format("'{}' has modules of its own already: '{}'", machine.name, machine.rtl));
  machine.rtl = folder;
  machine.name += '+';
  machine.name += folder;
  return machine;
}

}  // namespace

std::string absolute_path(const std::string& path) {
  return std::filesystem::absolute(path).string();
}

MachineConfig read_machine_file(std::string_view name) {
  const std::filesystem::path path(name);
  std::ifstream file(path, std::ios::binary);
  const std::size_t plus = name.rfind('+');
  if (!file && plus != name.npos)
    return with_modules(find_machine(name.substr(0, plus)), name.substr(plus + 1));
  if (!file || std::filesystem::is_directory(path))
    reject(fmt::format("no machine and no file '{}'; shipped are {}", name,
                       fmt::join(machine_names(), ", ")));
  std::ostringstream text;
  text << file.rdbuf();
  try {
    MachineConfig machine = parse_machine(text.str());
    if (!machine.rtl.empty()) machine.rtl = (path.parent_path() / machine.rtl).string();
    return machine;
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("{}: {}", path.string(), error.what()));
  }
}

}  // namespace triptych::mmu
