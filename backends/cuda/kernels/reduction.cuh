// The stated reduction tree (core/base/reduction.h) on a GPU: its 32 lanes are the lanes of a warp,
// so one warp folds one block of the tree, and a block of threads folds the blocks' results.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/kernels/platform.h"
#include "core/base/reduction.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

inline constexpr int kLanes = static_cast<int>(kReductionLanes);
inline constexpr unsigned kWholeWarp = ~0U;

/// Place of the running thread, in a block with whole warps along x.
__device__ inline int lane_of_warp() { return static_cast<int>(threadIdx.x) % kLanes; }
__device__ inline int warp_of_block() { return static_cast<int>(threadIdx.x) / kLanes; }
/// Number of the running warp in a grid of one dimension, and of all its warps.
__device__ inline std::int64_t global_warp() { return global_thread() / kLanes; }
__device__ inline std::int64_t all_warps() { return all_threads() / kLanes; }

/// The lanes of a warp folded by halving. The result is lane 0's.
template <class Combine>
__device__ typename Combine::Type fold_lanes(typename Combine::Type value) {
  for (unsigned half = kLanes / 2; half > 0; half /= 2) {
    value = Combine()(value, __shfl_down_sync(kWholeWarp, value, half));
  }
  return value;
}

/// The lanes of a warp folded neighbour with neighbour, as the balanced tree does. Lanes beyond its
/// end hold kStart. The result is lane 0's.
template <class Combine>
__device__ typename Combine::Type fold_neighbours(typename Combine::Type value) {
  for (unsigned distance = 1; distance < kLanes; distance *= 2) {
    value = Combine()(value, __shfl_down_sync(kWholeWarp, value, distance));
  }
  return value;
}

/// Calls add(value(i)) for the elements i < count of a block of the tree that belong to the running
/// lane, in ascending order. kAhead elements of a whole block are read before the first is added:
/// reads that wait for each other cannot use the bandwidth of a GPU's memory.
template <int kAhead, class Value, class Add>
__device__ void for_each_of_lane(std::int64_t count, const Value& value, const Add& add) {
  static_assert(kReductionBlock % (kAhead * kLanes) == 0);
  const int lane = lane_of_warp();
  if (count < kReductionBlock) {
    for (std::int64_t i = lane; i < count; i += kLanes) add(value(i));
    return;
  }
#pragma unroll 1
  for (int first = lane; first < kReductionBlock; first += kAhead * kLanes) {
    decltype(value(0)) ahead[kAhead];
#pragma unroll
    for (int j = 0; j < kAhead; ++j) ahead[j] = value(first + j * kLanes);
#pragma unroll
    for (int j = 0; j < kAhead; ++j) add(ahead[j]);
  }
}

/// One block of the tree, elements value(i) for i < count, by one warp. The result is lane 0's.
template <class Combine, class Value>
__device__ typename Combine::Type fold_block_by_warp(std::int64_t count, const Value& value) {
  using T = typename Combine::Type;
  T total = Combine::kStart;
  for_each_of_lane<16>(
      count, [&](std::int64_t i) -> T { return value(i); },
      [&](T element) { total = Combine()(total, element); });
  return one_nan(fold_lanes<Combine>(total));
}

/// The shared memory that a block of threads folds results in.
template <class T>
struct FoldSpace {
  Shared<T, kLanes> of_warps;
};

/// The balanced tree over up to blockDim.x results.
template <class Combine>
__device__ typename Combine::Type fold_chunk(Global<const typename Combine::Type> results,
                                             std::int64_t count,
                                             FoldSpace<typename Combine::Type>& space) {
  using T = typename Combine::Type;
  const int warps = static_cast<int>(blockDim.x) / kLanes, lane = lane_of_warp();
  T value = Combine::kStart;
  if (threadIdx.x < count) value = results[threadIdx.x];
  value = fold_neighbours<Combine>(value);
  if (lane == 0) space.of_warps[warp_of_block()] = value;
  __syncthreads();
  // Every warp folds the warps' results, so that all threads know the total.
  T of_warp = Combine::kStart;
  if (lane < warps) of_warp = space.of_warps[lane];
  __syncthreads();
  return one_nan(__shfl_sync(kWholeWarp, fold_neighbours<Combine>(of_warp), 0));
}

/// The balanced tree over the results of `count` blocks, by all threads of a block. Each gets the
/// total. The block is of one dimension: 32, 64, ... or 1024 threads.
template <class Combine>
__device__ typename Combine::Type fold_results(Global<const typename Combine::Type> results,
                                               std::int64_t count,
                                               FoldSpace<typename Combine::Type>& space) {
  const std::int64_t chunk = blockDim.x;
  const auto total = fold_chunk<Combine>(results, count, space);
  if (count <= chunk) return total;
  TreeFold<Combine> tree;
  tree.push(total);
  for (std::int64_t first = chunk; first < count; first += chunk) {
    tree.push(fold_chunk<Combine>(results.from(first), count - first, space));
  }
  return tree.result();
}

/// Threads for fold_results.
inline unsigned fold_threads(std::int64_t count) {
  unsigned threads = kLanes;
  while (threads < 1024 && threads < count) threads *= 2;
  return threads;
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
