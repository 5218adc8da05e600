// Inline PTX of kernels in LLVM's assembly language: each `asm` becomes a call of the part that
// executes it (backends/cuda/plain/ptx.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace triptych::kernels {

/// The symbol that these calls need.
inline constexpr std::string_view kPtxCall = "triptych_ptx";

/// True when the assembly of the processor has inline PTX, between the compiler's marks.
bool has_inline_ptx(std::string_view assembly);

/// True when the compiler's messages have errors, and all of them are about the operands of inline
/// assembly.
bool refuses_only_operands(std::string_view messages);

/// LLVM's assembly language with a call in the place of each `asm` of PTX. Other inline assembly
/// stays. Throws InvalidArgument, with file and line, for PTX that is not emulated.
std::string with_ptx_calls(std::string_view code);

}  // namespace triptych::kernels
