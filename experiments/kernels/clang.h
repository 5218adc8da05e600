// The versions of clang that compile whole programs, and kernels for the debugger.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace triptych::kernels {

/// `clang++` on the PATH, or the newest of the versions with a number. Throws DeviceError when
/// there is none, with a message about `what`.
std::string find_clang(const std::string& what);

/// The newest tested version with a number (`clang++-19`), if it is newer than the compiler of this
/// name.
std::optional<std::string> newer_clang(const std::string& than);

}  // namespace triptych::kernels
