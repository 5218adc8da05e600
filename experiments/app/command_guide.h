// The place of each command in the program's help, and its examples.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace triptych::app {

struct CommandGuide {
  std::string_view path;     ///< "bench conv"
  std::string_view heading;  ///< heading in the program's help. Empty for a subcommand
  std::vector<std::string_view> examples;
};

/// Null for a command that the table lacks.
const CommandGuide* find_guide(std::string_view path);

/// The headings in their order.
std::vector<std::string_view> guide_headings();

}  // namespace triptych::app
