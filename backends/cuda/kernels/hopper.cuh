// Additions of compute capability 9.0, as small types: products of a warpgroup (four warps) with
// operands in shared memory, a copy engine that loads whole boxes of a matrix, and barriers with
// phases that count the arrived bytes. In PTX for sm_90a (device/hopper_ptx.cuh). The emulation
// (emulation/hopper.h) works tile by tile, with the rounding of tensor_core.cuh.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/kernels/tensor_core.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

/// 64 x 128 sums of a warpgroup. For each eight columns j, thread t holds the same elements as a
/// warp's FragmentC for the rows from 16 (t / 32) on (PTX ISA, "Register fragments and shared
/// memory matrix layouts of wgmma.mma_async.m64nNk16").
struct WarpgroupSums {
  static constexpr int kRows = 64, kColumns = 128;
  FragmentC columns[kColumns / 8];
};

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM

// In both:
//   TensorMap make_tensor_map(const BFloat16* data, rows, width, box_rows): on the host, a matrix
//     of dense rows as the copy engine reads it, in boxes of box_rows rows by 64 elements. Outside
//     of the matrix a box is zeros.
//   TensorMap make_tensor_map(data, sizes[4], box[4]): the same for four axes, innermost first.
//     box[0] is 64, and the rows of a box are its other axes, the second fastest.
//   class PhaseBarrier, in shared memory: phases 0, 1, 0, ... each over when all have arrived and
//     the bytes they expect have come.
//       begin(arrivals). begin_warpgroups(count): the arrivals are whole warpgroups.
//       expect(bytes): one arrival, with the number of bytes that will come. arrive_warpgroup().
//       wait(parity): until the phase of this parity is over.
//   publish_barriers(): shows the copy engine the writes of begin(). A block barrier must follow.
//   load_box(Swizzled& to, int row, const TensorMap& from, int column, int from_row,
//   PhaseBarrier&), load_box(to, row, from, const int (&at)[4], barrier):
//     asked by one thread. Its bytes count for the barrier's phase. A place may be negative.
//   Products of a warpgroup, all its threads together. `sums` is an array of WarpgroupSums:
//       fence_products(sums): before the first product that adds to sums that the threads wrote.
//       multiply_tiles<kDepthOutside>(WarpgroupSums& c, Swizzled& a, int a_row, Swizzled& b,
//       int b_row): starts c += a b' of 64 rows of a and 128 rows of b, 64 values of k along each.
//         From multiples of 8. kDepthOutside: the rows are values of k, 64 for 64 rows of c along
//         them, and twice 64 for its columns.
//       commit_products(sums): closes a group of products.
//       wait_products<kPending>(sums): until all groups but the last kPending are done. All sums
//         that products still use are named.
//   take_registers<kCount>(), leave_registers<kCount>(): of each thread of the warpgroup.
#if defined(__CUDACC__)
#include "backends/cuda/device/hopper_ptx.cuh"
#else
#include "backends/cuda/emulation/hopper.h"
#endif
