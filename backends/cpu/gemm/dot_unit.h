// Tiles of words of two k by the processor's own instructions (AVX-512). VPDPWSSD adds two products
// of int16. VDPBF16PS adds two products of bfloat16. Intel defines it as two fused multiply-adds,
// the upper halves first. Before their first use both are compared with the tiles of
// microkernel.cpp, because bf16-exact promises the bits of the chain.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cpu/gemm/microkernel.h"
#include "core/runtime/kernel.h"

namespace triptych::cpu {

/// `kernels` with their stand-ins replaced where the processor computes the same bits.
Microkernels with_dot_unit(Microkernels kernels);

/// Whether two sets of tiles give the same bits for random words, among them zeros, subnormals,
/// infinities and NaN of bfloat16. T: PairWord or DotWord.
template <class T>
bool same_words(const WordKernels<T>& a, const WordKernels<T>& b, const Microkernels& sizes);

/// Whether a kernel of bfloat16 pairs pays for a product of so many rows of A, which share the
/// packing of B, and so many k.
Verdict worth_on_dots(std::int64_t rows, std::int64_t k);

}  // namespace triptych::cpu
