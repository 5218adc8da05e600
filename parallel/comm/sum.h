// target += source, element by element.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "core/tensor/dtype.h"

namespace triptych::parallel {

/// Integers wrap; bf16 and f16 are added as f32 and rounded. Both spans have the same size.
/// Throws InvalidArgument for Bool, which has no sum.
void add_to(std::span<std::byte> target, std::span<const std::byte> source, DType dtype);

}  // namespace triptych::parallel
