// Partitions of cooperative groups, tiles of more than a warp, and functions of all their threads:
// the header that a program's cooperative_groups.h leads to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/program/cooperative_groups.h"

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names.
#pragma clang force_cuda_host_device begin
#pragma clang attribute push(__attribute__((no_sanitize("thread", "coverage", "undefined"))), \
                             apply_to = function)
namespace cooperative_groups {

// Tiles with more threads than a warp. Only a whole block can wait here, so such a tile has to be
// the block.

/// A GPU keeps values of a tile there. The emulator does not need it.
template <unsigned kBlockSize>
struct block_tile_memory {};
template <unsigned kBlockSize>
TRIPTYCH_UNWATCHED thread_block this_thread_block(block_tile_memory<kBlockSize>&) {
  return {};
}

namespace details {

constexpr unsigned kMostTileBytes = 32;  // of a value

/// A place for a value of each thread of the block, which runs on one thread of the processor.
TRIPTYCH_UNWATCHED inline char* tile_value(unsigned rank) {
  static thread_local char values[1024 * kMostTileBytes];
  return values + rank * kMostTileBytes;
}

}  // namespace details

template <unsigned kSize, class Parent>
requires(kSize > 32) class thread_block_tile<kSize, Parent> {
 public:
  TRIPTYCH_UNWATCHED static constexpr unsigned size() { return kSize; }
  TRIPTYCH_UNWATCHED static constexpr unsigned num_threads() { return kSize; }
  TRIPTYCH_UNWATCHED static unsigned thread_rank() {
    return details::thread_rank_in_block() % kSize;
  }
  TRIPTYCH_UNWATCHED static unsigned meta_group_rank() {
    return details::thread_rank_in_block() / kSize;
  }
  TRIPTYCH_UNWATCHED static unsigned meta_group_size() {
    return (details::block_size() + kSize - 1) / kSize;
  }
  TRIPTYCH_UNWATCHED void sync(Location where = Location::current()) const {
    if (details::block_size() > kSize) {
      triptych::cuda::plain::services->fail(
          "a tile of more than a warp that is smaller than its block is not emulated", where);
    }
    __syncthreads(where);
  }
  TRIPTYCH_UNWATCHED int any(int predicate, Location where = Location::current()) const {
    return reduce_all(
        predicate != 0, [](bool a, bool b) { return a || b; }, where);
  }
  TRIPTYCH_UNWATCHED int all(int predicate, Location where = Location::current()) const {
    return reduce_all(
        predicate != 0, [](bool a, bool b) { return a && b; }, where);
  }
  template <class T>
  TRIPTYCH_UNWATCHED T shfl(T value, unsigned rank, Location where = Location::current()) const {
    publish(value, where);
    const T other = value_of<T>(rank % kSize);
    sync(where);
    return other;
  }
  template <class T>
  TRIPTYCH_UNWATCHED T shfl_down(T value, unsigned delta,
                                 Location where = Location::current()) const {
    const unsigned rank = thread_rank();
    return shfl(value, rank + delta < kSize ? rank + delta : rank, where);
  }
  template <class T>
  TRIPTYCH_UNWATCHED T shfl_up(T value, unsigned delta,
                               Location where = Location::current()) const {
    const unsigned rank = thread_rank();
    return shfl(value, rank >= delta ? rank - delta : rank, where);
  }
  template <class T>
  TRIPTYCH_UNWATCHED T shfl_xor(T value, unsigned with,
                                Location where = Location::current()) const {
    const unsigned rank = thread_rank() ^ with;
    return shfl(value, rank < kSize ? rank : thread_rank(), where);
  }
  /// The combination of all values, in each thread.
  template <class T, class Op>
  TRIPTYCH_UNWATCHED T reduce_all(T value, Op op, const Location& where) const {
    publish(value, where);
    T combined = value_of<T>(0);
    for (unsigned rank = 1; rank < kSize; ++rank) combined = op(combined, value_of<T>(rank));
    sync(where);
    return combined;
  }

 private:
  template <class T>
  TRIPTYCH_UNWATCHED void publish(const T& value, const Location& where) const {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= details::kMostTileBytes,
                  "groups exchange values of at most 32 bytes");
    std::memcpy(details::tile_value(thread_rank()), &value, sizeof(T));
    sync(where);
  }
  template <class T>
  TRIPTYCH_UNWATCHED T value_of(unsigned rank) const {
    T value;
    std::memcpy(&value, details::tile_value(rank), sizeof(T));
    return value;
  }
};

/// The `size` neighbours of the running lane among `lanes`.
TRIPTYCH_UNWATCHED inline coalesced_group tiled_partition(const coalesced_group& lanes,
                                                          unsigned size) {
  const unsigned tile = lanes.thread_rank() / size;
  unsigned mask = 0, rank = 0;
  for (unsigned rest = lanes.lane_mask(); rest != 0; rest &= rest - 1, ++rank) {
    if (rank / size == tile) mask |= rest & (~rest + 1);
  }
  return coalesced_group(mask);
}
/// Tiles of at most a warp, or the group itself.
TRIPTYCH_UNWATCHED inline thread_group tiled_partition(const thread_group& group, unsigned size,
                                                       Location where = Location::current()) {
  if (!group.is_block()) return tiled_partition(group.lanes(), size);
  if (size >= group.size()) return group;
  if (size > 32) {
    triptych::cuda::plain::services->fail("tiles of more than a warp are not emulated", where);
  }
  return tiled_partition(coalesced_group(details::lanes_of_warp()), size);
}
/// The lanes of the group with the same answer.
template <class Group>
TRIPTYCH_UNWATCHED coalesced_group binary_partition(const Group& group, bool predicate,
                                                    Location where = Location::current()) {
  const unsigned votes = __ballot_sync(group.lane_mask(), predicate, where);
  return coalesced_group(predicate ? votes : group.lane_mask() & ~votes);
}
template <class Group, class T>
TRIPTYCH_UNWATCHED coalesced_group labeled_partition(const Group& group, T label,
                                                     Location where = Location::current()) {
  return coalesced_group(__match_any_sync(group.lane_mask(), label, where));
}
template <class T>
struct plus {
  TRIPTYCH_UNWATCHED T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct less {
  TRIPTYCH_UNWATCHED T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct greater {
  TRIPTYCH_UNWATCHED T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T>
struct bit_and {
  TRIPTYCH_UNWATCHED T operator()(T a, T b) const { return a & b; }
};
template <class T>
struct bit_or {
  TRIPTYCH_UNWATCHED T operator()(T a, T b) const { return a | b; }
};
template <class T>
struct bit_xor {
  TRIPTYCH_UNWATCHED T operator()(T a, T b) const { return a ^ b; }
};

/// The combination of all values, in each lane.
template <class Group, class T, class Op>
TRIPTYCH_UNWATCHED T reduce(const Group& group, T value, Op op,
                            Location where = Location::current()) {
  T all = group.shfl(value, 0, where);
  for (unsigned rank = 1; rank < group.size(); ++rank)
    all = op(all, group.shfl(value, rank, where));
  return all;
}
template <unsigned kSize, class Parent, class T, class Op>
requires(kSize > 32) TRIPTYCH_UNWATCHED T
    reduce(const thread_block_tile<kSize, Parent>& group, T value, Op op,
           Location where = Location::current()) {
  return group.reduce_all(value, op, where);
}
/// The combination of the values of this lane and those of lower ranks.
template <class Group, class T, class Op = plus<T>>
TRIPTYCH_UNWATCHED T inclusive_scan(const Group& group, T value, Op op = {},
                                    Location where = Location::current()) {
  T all = group.shfl(value, 0, where);
  for (unsigned rank = 1; rank < group.size(); ++rank) {
    const T other = group.shfl(value, rank, where);
    if (rank <= group.thread_rank()) all = op(all, other);
  }
  return all;
}
template <class Group, class T, class Op = plus<T>>
TRIPTYCH_UNWATCHED T exclusive_scan(const Group& group, T value, Op op = {},
                                    Location where = Location::current()) {
  const T all = inclusive_scan(group, value, op, where);
  const T before = group.shfl_up(all, 1, where);
  return group.thread_rank() == 0 ? T{} : before;
}

}  // namespace cooperative_groups
#pragma clang attribute pop
#pragma clang force_cuda_host_device end
// NOLINTEND(readability-identifier-naming)
