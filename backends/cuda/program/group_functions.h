// Partitions of cooperative groups, and functions of all their threads: the header that a program's
// cooperative_groups.h leads to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/program/cooperative_groups.h"

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names.
#pragma clang force_cuda_host_device begin
#pragma clang attribute push(__attribute__((no_sanitize("thread", "coverage", "undefined"))), \
                             apply_to = function)
namespace cooperative_groups {

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
