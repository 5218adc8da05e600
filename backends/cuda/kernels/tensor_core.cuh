// Tensor cores and asynchronous copies as small types: by PTX instructions on a GPU
// (device/tensor_core_ptx.cuh), by the lanes of the emulator without one
// (emulation/tensor_core.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/kernels/platform.h"
#include "core/base/float16.h"

// Elements that lane l of a warp holds, with g = l / 4 and t = l % 4 (PTX ISA, "Matrix Fragments
// for mma.m16n8k16 with floating point type"), elements given as (row, column):
//   a 16 x 16  pairs[0]: (g, 2t) (g, 2t+1)      pairs[1]: the same in row g+8
//              pairs[2]: (g, 2t+8) (g, 2t+9)    pairs[3]: the same in row g+8
//   b 16 x 8   pairs[0]: (2t, g) (2t+1, g)      pairs[1]: (2t+8, g) (2t+9, g)
//   c 16 x 8   sums[0], sums[1]: (g, 2t) (g, 2t+1)    sums[2], sums[3]: the same in row g+8
//
// Products of two bfloat16 are exact in float32. The order and the rounding with which a tensor
// core adds 16 of them to c are not documented: it truncates, and aligns several terms at once. The
// emulation adds them in ascending k, one fused multiply-add each. A kernel built on this therefore
// keeps the error bound of the contract bf16, and has the bits of none.

namespace triptych::cuda::TRIPTYCH_PLATFORM {

/// Two bfloat16, the one of the lower index in the lower half.
using Pair = std::uint32_t;

__device__ inline Pair rounded_pair(float first, float second) {
  return Pair{BFloat16(first).bits} | Pair{BFloat16(second).bits} << 16;
}

struct FragmentA {
  Pair pairs[4];
};
struct FragmentB {
  Pair pairs[2];
};
struct FragmentC {
  float sums[4] = {};
};

/// Eight bfloat16: a row of the 8 x 8 matrices that are loaded, and the unit of a copy.
using Piece = Vector<BFloat16, 8>;

/// kRows rows of 64 bfloat16 in shared memory. Piece p of row r lies at p ^ r % 8: neither the
/// eight pieces of a row nor a column of eight rows then share a bank. (The 128-byte swizzle of
/// Hopper's copy engine is the same, where the rows start at a multiple of 1024 bytes.)
template <int kRows>
struct Swizzled {
  static constexpr int kPieces = 8;
  Shared<Piece, kRows, kPieces> pieces;

  __device__ static int place(int row, int piece) { return piece ^ row % kPieces; }
};

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM

// In both, for all 32 lanes of a warp together:
//   void multiply(FragmentC& c, const FragmentA& a, const FragmentB& b);    c += a b
//   void load_matrices(Swizzled<kRows>& from, int row, int piece, Pair (&out)[4]);
//     Four matrices of 8 x 8: lane 8i + j names row j of matrix i. Of matrix i a lane gets (g, 2t)
//     and (g, 2t+1) as out[i]. _transposed: (2t, g) and (2t+1, g).
// And for one lane:
//   class CopyQueue { copy(...), commit(), wait<kPending>() };
//     copy: one piece from global to shared memory, or zeros. commit: closes a group of copies.
//     wait: until all groups but the last kPending have landed, for this lane. Other lanes see them
//     after a barrier. Until then its content is undefined.
#if defined(__CUDACC__)
#include "backends/cuda/device/tensor_core_ptx.cuh"
#else
#include "backends/cuda/emulation/tensor_core.h"
#endif
