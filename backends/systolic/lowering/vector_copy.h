// Copies between strided views in DRAM, through the vector memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/systolic/lowering/vector_program.h"
#include "core/ops/strided_view.h"

namespace triptych::systolic {

/// Copies the elements, of four bytes each, of a view of one tensor to a view of another. The
/// tensors begin at these addresses. Takes one block.
void copy_view(VectorProgram& program, const StridedView& from, std::uint64_t from_address,
               const StridedView& to, std::uint64_t to_address);

}  // namespace triptych::systolic
