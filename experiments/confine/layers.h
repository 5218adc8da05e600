// The layers of the confinement: those that this system offers, and remedies for missing ones.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace triptych::confine {

struct Layer {
  std::string_view name;  ///< its subject: files, system calls, signals, user, processes
  std::string mechanism;  ///< enforces it: "Landlock 7". Empty: nothing does here
  std::string missing;    ///< where nothing does: the reason and the remedy
  bool required = true;   ///< by require_layers

  bool active() const { return !mechanism.empty(); }
};

/// The layers that each confined command has here. The layer "user" is root's alone.
const std::vector<Layer>& layers();
/// "files by Landlock 7, system calls by seccomp, ..."
std::string active_layers();
/// The missing layers with reason and remedy. Empty: none is missing.
std::string missing_layers();
/// Throws DeviceError that names the required layers that are missing.
void require_layers();

}  // namespace triptych::confine
