// The files of experiments/machines/devices and energy, built into the program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace triptych::machines {

struct BuiltInFile {
  std::string_view name, json;
};

/// Devices, in alphabetical order.
std::span<const BuiltInFile> published_files();
/// Energy tables, the default first.
std::span<const BuiltInFile> energy_files();

}  // namespace triptych::machines
