// The lines of source behind instructions, from a section .debug_line: version 4 of DWARF, section
// 6.2, as g++ -gdwarf-4 writes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "backends/cuda/plain/object_file.h"

namespace triptych::cuda::plain {

/// Throws IoError for another version and for bytes that are no such section.
LineTable read_line_programs(std::span<const std::byte> section);

}  // namespace triptych::cuda::plain
