// The tables of the part "counted" in a build without it.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernels/kernels.h"
#include "core/base/missing_part.h"

namespace triptych::cuda::counted {

KernelTable kernel_table(int) { throw_missing_part("counted"); }

KernelTable lesson_table() { throw_missing_part("counted"); }

}  // namespace triptych::cuda::counted
