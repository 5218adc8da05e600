// target += source, element by element.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "core/tensor/dtype.h"

namespace triptych::parallel {

/// Each element as sum_of (sum_element.h) adds it. Both spans have the same size.
/// Throws InvalidArgument for Bool, which has no sum.
void add_to(std::span<std::byte> target, std::span<const std::byte> source, DType dtype);

/// Elements [first, first + count) of every buffer = their sum over all buffers, added in the order
/// of the list. Throws as add_to.
void sum_everywhere(std::span<std::byte* const> buffers, std::size_t first, std::size_t count,
                    DType dtype);

}  // namespace triptych::parallel
