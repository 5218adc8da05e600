// kernels/tensor_core.cuh in PTX, for compute capability 8.0 and up. Older GPUs have no bfloat16
// there: the kernels that include this refuse them, and trap if one starts anyway.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/kernels/tensor_core.cuh"

namespace triptych::cuda::gpu {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define TRIPTYCH_HAS_BF16_MMA 1
#else
#define TRIPTYCH_HAS_BF16_MMA 0
#endif

/// An address of shared memory as PTX names it.
__device__ inline unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ inline void multiply(FragmentC& c, const FragmentA& a, const FragmentB& b) {
#if TRIPTYCH_HAS_BF16_MMA
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c.sums[0]), "+f"(c.sums[1]), "+f"(c.sums[2]), "+f"(c.sums[3])
      : "r"(a.pairs[0]), "r"(a.pairs[1]), "r"(a.pairs[2]), "r"(a.pairs[3]), "r"(b.pairs[0]),
        "r"(b.pairs[1]));
#else
  __trap();
#endif
}

template <int kRows>
__device__ void load_matrices(Swizzled<kRows>& from, int row, int piece, Pair (&out)[4]) {
#if TRIPTYCH_HAS_BF16_MMA
  const unsigned address = shared_address(&from.pieces(row, from.place(row, piece)));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(address)
               : "memory");
#else
  __trap();
#endif
}

template <int kRows>
__device__ void load_matrices_transposed(Swizzled<kRows>& from, int row, int piece,
                                         Pair (&out)[4]) {
#if TRIPTYCH_HAS_BF16_MMA
  const unsigned address = shared_address(&from.pieces(row, from.place(row, piece)));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(address)
               : "memory");
#else
  __trap();
#endif
}

class CopyQueue {
 public:
  /// The piece at element `index` of `source`. Zeros, and nothing read, where not `inside`.
  template <int kRows>
  __device__ void copy(Swizzled<kRows>& to, int row, int piece, Global<const BFloat16> source,
                       std::int64_t index, bool inside) {
#if TRIPTYCH_HAS_BF16_MMA
    const unsigned target = shared_address(&to.pieces(row, to.place(row, piece)));
    const void* from = &source[inside ? index : 0];
    const int bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(target), "l"(__cvta_generic_to_global(from)), "r"(bytes)
                 : "memory");
#else
    __trap();
#endif
  }
  __device__ void commit() {
#if TRIPTYCH_HAS_BF16_MMA
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
  }
  template <int kPending>
  __device__ void wait() {
#if TRIPTYCH_HAS_BF16_MMA
    asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#endif
  }
};

}  // namespace triptych::cuda::gpu
