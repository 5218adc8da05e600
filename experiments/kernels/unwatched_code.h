// A second version of kernels, without instrumentation and optimised, for blocks that only run
// (`--sample`). It is made from LLVM's assembly language, and uses the variables of the watched
// version.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace triptych::kernels {

/// LLVM's assembly of a file with other names of its functions (cuda::plain::kUnwatched), with
/// declarations in the place of its variables, and with a call of `triptych_poll` in front of each
/// volatile or atomic read. Functions whose address is used are those of the watched version.
/// `unit` distinguishes the files of a program. Empty: the file has code that allows no second
/// version.
std::string unwatched_code(std::string_view assembly, std::size_t unit);

/// The watched version's assembly for the processor, with names for its local symbols that
/// the other version of the same unit uses.
std::string with_local_names(std::string_view assembly, std::size_t unit);

}  // namespace triptych::kernels
