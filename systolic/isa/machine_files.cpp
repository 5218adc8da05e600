// SPDX-License-Identifier: Apache-2.0
#include "systolic/isa/machine_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <stdexcept>

namespace triptych::mmu {
namespace {

constexpr std::uintmax_t kMostTextBytes = std::uintmax_t{16} << 20;

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
  const auto text = read_text_file(path);
  const std::size_t plus = name.rfind('+');
  if (!text && plus != name.npos)
    return with_modules(find_machine(name.substr(0, plus)), name.substr(plus + 1));
  if (!text) {
    throw std::invalid_argument(fmt::format(
        "there is neither a machine nor a file \"{}\"; the machines are {}, or give a JSON file",
        name, fmt::join(machine_names(), ", ")));
  }
  try {
    MachineConfig machine = parse_machine(*text);
    if (!machine.rtl.empty()) machine.rtl = (path.parent_path() / machine.rtl).string();
    return machine;
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("{}: {}", path.string(), error.what()));
  }
}

std::optional<std::string> read_text_file(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status) || std::filesystem::is_directory(status))
    return std::nullopt;
  if (!std::filesystem::is_regular_file(status))
    throw std::invalid_argument(fmt::format("\"{}\": not a regular file", path.string()));
  const auto bytes = std::filesystem::file_size(path, error);
  if (!error && bytes > kMostTextBytes)
    throw std::invalid_argument(
        fmt::format("\"{}\": {} bytes, the limit is {}", path.string(), bytes, kMostTextBytes));
  std::ifstream file(path, std::ios::binary);
  std::string text(error ? 0 : bytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (error || !file)
    throw std::invalid_argument(fmt::format("\"{}\": cannot be read", path.string()));
  return text;
}

}  // namespace triptych::mmu
