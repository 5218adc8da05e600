// The stated reduction tree (core/base/reduction.h) on a GPU. A team of threads folds one block of
// the tree, and a block of threads folds the blocks' results. Where an access moves one element, a
// team is a warp, and a thread has one of the tree's 32 lanes. Where it moves four, a team is eight
// threads with four neighbouring lanes each. The order of the additions is the same.
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

/// The threads that fold one block of the tree by accesses of kEach elements. A warp has kEach
/// teams, which always work at the same time.
template <int kEach>
struct FoldTeam {
  static constexpr int kThreads = kLanes / kEach;
  /// Place of the running thread in its team.
  __device__ static int member() { return lane_of_warp() % kThreads; }
  /// Place of its team in the warp.
  __device__ static int number() { return lane_of_warp() / kThreads; }
};

/// Calls visit(item, is_inside) for the items that belong to the running team, where `warp` is one
/// of `warps`. Every thread of a warp makes every call. Teams without an item get one beyond the
/// end.
template <int kEach, class Visit>
__device__ void for_each_of_team(std::int64_t warp, std::int64_t warps, std::int64_t items,
                                 const Visit& visit) {
  for (auto first = warp * kEach; first < items; first += warps * kEach) {
    const std::int64_t item = first + FoldTeam<kEach>::number();
    visit(item, item < items);
  }
}

/// The lanes of a block of the tree folded by halving. The result is that of the team's member 0.
template <class Combine, int kEach>
__device__ typename Combine::Type fold_lanes(Vector<typename Combine::Type, kEach> lanes) {
#pragma unroll
  for (unsigned half = FoldTeam<kEach>::kThreads / 2; half > 0; half /= 2) {
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      lanes[e] = Combine()(lanes[e], __shfl_down_sync(kWholeWarp, lanes[e], half));
    }
  }
#pragma unroll
  for (int half = kEach / 2; half > 0; half /= 2) {
#pragma unroll
    for (int e = 0; e < half; ++e) lanes[e] = Combine()(lanes[e], lanes[e + half]);
  }
  return lanes[0];
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

/// Calls add(read(i)) for the groups of kEach elements, from i on, of a block of the tree that
/// belong to the running thread, in ascending order. `count` is a multiple of kEach. kAhead groups
/// of a whole block are read before the first is added: reads that wait for each other cannot use
/// the bandwidth of a GPU's memory.
template <int kEach, int kAhead, class Read, class Add>
__device__ void for_each_of_lanes(std::int64_t count, const Read& read, const Add& add) {
  static_assert(kReductionBlock % (kAhead * kLanes) == 0);
  const int begin = kEach * FoldTeam<kEach>::member();
  if (count < kReductionBlock) {
    for (std::int64_t i = begin; i < count; i += kLanes) add(read(i));
    return;
  }
#pragma unroll 1
  for (int first = begin; first < kReductionBlock; first += kAhead * kLanes) {
    decltype(read(0)) ahead[kAhead];
#pragma unroll
    for (int j = 0; j < kAhead; ++j) ahead[j] = read(first + j * kLanes);
#pragma unroll
    for (int j = 0; j < kAhead; ++j) add(ahead[j]);
  }
}

/// One block of the tree by one team. read(i) gives the kEach elements from i on, and `count` is a
/// multiple of kEach. The result is that of the team's member 0.
template <class Combine, int kEach, class Read>
__device__ typename Combine::Type fold_block_by_team(std::int64_t count, const Read& read) {
  using Elements = Vector<typename Combine::Type, kEach>;
  Elements total;
#pragma unroll
  for (int e = 0; e < kEach; ++e) total[e] = Combine::kStart;
  for_each_of_lanes<kEach, kEach == 1 ? 16 : 8>(count, read, [&](const Elements& elements) {
#pragma unroll
    for (int e = 0; e < kEach; ++e) total[e] = Combine()(total[e], elements[e]);
  });
  return one_nan(fold_lanes<Combine>(total));
}

/// One block of the tree, elements value(i) for i < count, by one warp. The result is lane 0's.
template <class Combine, class Value>
__device__ typename Combine::Type fold_block_by_warp(std::int64_t count, const Value& value) {
  using Element = Vector<typename Combine::Type, 1>;
  return fold_block_by_team<Combine, 1>(count, [&](std::int64_t i) { return Element{{value(i)}}; });
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
