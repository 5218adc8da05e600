// kernels/hopper.cuh in PTX for sm_90a. In code for other architectures these trap. The kernels
// that use them refuse GPUs of other architectures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include "backends/cuda/kernels/hopper.cuh"

namespace triptych::cuda::gpu {

#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define TRIPTYCH_HAS_WGMMA 1
#else
#define TRIPTYCH_HAS_WGMMA 0
#endif

using TensorMap = CUtensorMap;

/// Throws DeviceError when the driver has no copy engine to describe a matrix to.
TensorMap make_tensor_map(const BFloat16* data, std::int64_t rows, std::int64_t width,
                          int box_rows);
TensorMap make_tensor_map(const BFloat16* data, const std::int64_t (&sizes)[4],
                          const int (&box)[4]);

class PhaseBarrier {
 public:
  __device__ void begin(int arrivals) {
#if TRIPTYCH_HAS_WGMMA
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address()), "r"(arrivals)
                 : "memory");
#endif
  }
  /// The products of a warpgroup end for all its threads: one of them arrives.
  __device__ void begin_warpgroups(int count) { begin(count); }
  __device__ void expect(int bytes) {
#if TRIPTYCH_HAS_WGMMA
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()),
                 "r"(bytes)
                 : "memory");
#endif
  }
  __device__ void arrive_warpgroup() {
#if TRIPTYCH_HAS_WGMMA
    if (threadIdx.x % 128 != 0) return;
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address()) : "memory");
#endif
  }
  __device__ void wait(unsigned parity) {
#if TRIPTYCH_HAS_WGMMA
    unsigned over = 0;
    while (over == 0) {
      asm volatile(
          "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
          "selp.u32 %0, 1, 0, p; }"
          : "=r"(over)
          : "r"(address()), "r"(parity)
          : "memory");
    }
#endif
  }
  __device__ unsigned address() { return shared_address(&word_); }

 private:
  unsigned long long word_;
};

__device__ inline void publish_barriers() {
#if TRIPTYCH_HAS_WGMMA
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

template <int kRows>
__device__ void load_box(Swizzled<kRows>& to, int row, const TensorMap& from, int column,
                         int from_row, PhaseBarrier& barrier) {
#if TRIPTYCH_HAS_WGMMA
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4}], [%2];" ::"r"(shared_address(&to.pieces(row, 0))),
      "l"(&from), "r"(barrier.address()), "r"(column), "r"(from_row)
      : "memory");
#else
  __trap();
#endif
}

template <int kRows>
__device__ void load_box(Swizzled<kRows>& to, int row, const TensorMap& from, const int (&at)[4],
                         PhaseBarrier& barrier) {
#if TRIPTYCH_HAS_WGMMA
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared_address(&to.pieces(row, 0))),
      "l"(&from), "r"(barrier.address()), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3])
      : "memory");
#else
  __trap();
#endif
}

/// Rows of 128 bytes from `row` on as wgmma reads them: 128-byte swizzle, eight rows of 1024 bytes
/// after another, along k in either order. With kDepthOutside the next 64 rows or columns of the
/// product lie 64 rows further (PTX ISA, "Matrix descriptor format" and "Canonical layouts").
template <bool kDepthOutside, int kRows>
__device__ std::uint64_t descriptor(Swizzled<kRows>& tile, int row) {
  constexpr std::uint64_t kAside = kDepthOutside ? 64 * 128 >> 4 : 1;
  const std::uint64_t address = shared_address(&tile.pieces(row, 0));
  return (address & 0x3FFFF) >> 4 | kAside << 16 | std::uint64_t{1024 >> 4} << 32 |
         std::uint64_t{1} << 62;
}

/// Ties the sums to this place of the code: to the compiler a product writes them when it is
/// started. Nothing else would stop it from moving earlier writes behind a fence, or reads before a
/// wait.
template <int kCount>
__device__ void hold(WarpgroupSums (&sums)[kCount]) {
#pragma unroll
  for (auto& c : sums) {
#pragma unroll
    for (auto& column : c.columns) {
#pragma unroll
      for (float& sum : column.sums) asm volatile("" : "+f"(sum)::"memory");
    }
  }
}

/// c += a b' over 16 values of k.
template <bool kDepthOutside>
__device__ inline void multiply_step(FragmentC (&s)[16], std::uint64_t a, std::uint64_t b) {
#if TRIPTYCH_HAS_WGMMA
  asm volatile(
      "{ .reg .pred add; setp.ne.b32 add, %66, 0; "
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
      "}, %64, %65, add, 1, 1, %67, %67; }"
      : "+f"(s[0].sums[0]), "+f"(s[0].sums[1]), "+f"(s[0].sums[2]), "+f"(s[0].sums[3]),
        "+f"(s[1].sums[0]), "+f"(s[1].sums[1]), "+f"(s[1].sums[2]), "+f"(s[1].sums[3]),
        "+f"(s[2].sums[0]), "+f"(s[2].sums[1]), "+f"(s[2].sums[2]), "+f"(s[2].sums[3]),
        "+f"(s[3].sums[0]), "+f"(s[3].sums[1]), "+f"(s[3].sums[2]), "+f"(s[3].sums[3]),
        "+f"(s[4].sums[0]), "+f"(s[4].sums[1]), "+f"(s[4].sums[2]), "+f"(s[4].sums[3]),
        "+f"(s[5].sums[0]), "+f"(s[5].sums[1]), "+f"(s[5].sums[2]), "+f"(s[5].sums[3]),
        "+f"(s[6].sums[0]), "+f"(s[6].sums[1]), "+f"(s[6].sums[2]), "+f"(s[6].sums[3]),
        "+f"(s[7].sums[0]), "+f"(s[7].sums[1]), "+f"(s[7].sums[2]), "+f"(s[7].sums[3]),
        "+f"(s[8].sums[0]), "+f"(s[8].sums[1]), "+f"(s[8].sums[2]), "+f"(s[8].sums[3]),
        "+f"(s[9].sums[0]), "+f"(s[9].sums[1]), "+f"(s[9].sums[2]), "+f"(s[9].sums[3]),
        "+f"(s[10].sums[0]), "+f"(s[10].sums[1]), "+f"(s[10].sums[2]), "+f"(s[10].sums[3]),
        "+f"(s[11].sums[0]), "+f"(s[11].sums[1]), "+f"(s[11].sums[2]), "+f"(s[11].sums[3]),
        "+f"(s[12].sums[0]), "+f"(s[12].sums[1]), "+f"(s[12].sums[2]), "+f"(s[12].sums[3]),
        "+f"(s[13].sums[0]), "+f"(s[13].sums[1]), "+f"(s[13].sums[2]), "+f"(s[13].sums[3]),
        "+f"(s[14].sums[0]), "+f"(s[14].sums[1]), "+f"(s[14].sums[2]), "+f"(s[14].sums[3]),
        "+f"(s[15].sums[0]), "+f"(s[15].sums[1]), "+f"(s[15].sums[2]), "+f"(s[15].sums[3])
      : "l"(a), "l"(b), "r"(1), "n"(kDepthOutside ? 1 : 0));
#else
  __trap();
#endif
}

template <int kCount>
__device__ void fence_products(WarpgroupSums (&sums)[kCount]) {
#if TRIPTYCH_HAS_WGMMA
  hold(sums);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

template <bool kDepthOutside, int kRowsA, int kRowsB>
__device__ void multiply_tiles(WarpgroupSums& c, Swizzled<kRowsA>& a, int a_row,
                               Swizzled<kRowsB>& b, int b_row) {
#if TRIPTYCH_HAS_WGMMA
  constexpr std::uint64_t kStep = (kDepthOutside ? 128 : sizeof(BFloat16)) * 16 >> 4;  // addresses
  const std::uint64_t of_a = descriptor<kDepthOutside>(a, a_row);
  const std::uint64_t of_b = descriptor<kDepthOutside>(b, b_row);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    multiply_step<kDepthOutside>(c.columns, of_a + k * kStep, of_b + k * kStep);
  }
#endif
}

template <int kCount>
__device__ void commit_products(WarpgroupSums (&sums)[kCount]) {
#if TRIPTYCH_HAS_WGMMA
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  hold(sums);
#endif
}

template <int kPending, int kCount>
__device__ void wait_products(WarpgroupSums (&sums)[kCount]) {
#if TRIPTYCH_HAS_WGMMA
  hold(sums);
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
  hold(sums);
#endif
}

template <int kCount>
__device__ void take_registers() {
#if TRIPTYCH_HAS_WGMMA
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
#endif
}
template <int kCount>
__device__ void leave_registers() {
#if TRIPTYCH_HAS_WGMMA
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
#endif
}

}  // namespace triptych::cuda::gpu
