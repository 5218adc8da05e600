// Inline PTX in the assembly of kernels: each instruction becomes a call of the part that executes
// it (backends/cuda/plain/ptx.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace triptych::kernels {

/// The symbol that these calls need.
inline constexpr std::string_view kPtxCall = "triptych_ptx";

/// The assembly with a call for each inline instruction of PTX. Other inline assembly stays. Throws
/// InvalidArgument, with file and line, for PTX that is not emulated.
std::string with_ptx_calls(std::string_view assembly);

}  // namespace triptych::kernels
