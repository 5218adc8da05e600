// The pieces of straight code of a kernel's assembly: the conditional jump at the end of each, and
// its arithmetic instructions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace triptych::kernels {

/// The assembly, which g++ or clang has written with -fsanitize-coverage=trace-pc, with the section
/// cuda::plain::kPieces behind it. A jump to a report of a failed check is no branch. Without that
/// section for processors other than x86-64.
std::string with_pieces(std::string_view assembly);

}  // namespace triptych::kernels
