// Alignments of the types that a source accesses, from the assembly that g++ writes with
// -fsanitize=alignment: each check has a record of its place and the alignment.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <istream>
#include <string>

namespace triptych::kernels {

/// A line "4 12 7 my.cu" for each record: bytes, line, column and the file's name without folders.
std::string alignments_in(std::istream& assembly);

}  // namespace triptych::kernels
