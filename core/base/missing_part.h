// Parts of the program that a build may leave out: CMake's options TRIPTYCH_PART_<NAME>.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace triptych {

/// Throws UnsupportedError: this build lacks the part, and these commands add it. `part` is written
/// as in the option's name: "labs" for TRIPTYCH_PART_LABS.
[[noreturn]] void throw_missing_part(std::string_view part);

}  // namespace triptych
