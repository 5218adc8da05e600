// Calls at the beginning of each source line, in the assembly of kernels for the debugger.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace triptych::kernels {

/// Assembly of clang for x86-64 without optimisation, with debug information. Where straight code
/// comes to another line of its source, it calls triptych_line (callbacks.cpp). The first call of a
/// function follows the stores of its parameters.
std::string with_line_calls(std::string_view assembly);

}  // namespace triptych::kernels
