// Tiles of bfloat16 pairs by the processor's own instruction (VDPBF16PS of AVX-512). Intel defines
// it as two fused multiply-adds, the upper halves first. Before its first use it is compared with
// the stand-in of microkernel.cpp, because bf16-exact promises the bits of the chain.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cpu/gemm/microkernel.h"
#include "core/runtime/kernel.h"

namespace triptych::cpu {

/// `kernels` with their stand-ins replaced where the processor computes the same bits.
Microkernels with_dot_unit(Microkernels kernels);

/// Whether two sets of tiles give the same bits for random words, among them zeros, subnormals,
/// infinities and NaN, on tiles of at most `max_rows` rows and `columns` columns.
bool same_dots(const DotKernels& a, const DotKernels& b, const Microkernels& sizes);

/// Whether a kernel of bfloat16 pairs pays for a product of so many rows of A, which share the
/// packing of B, and so many k.
Verdict worth_on_dots(std::int64_t rows, std::int64_t k);

}  // namespace triptych::cpu
