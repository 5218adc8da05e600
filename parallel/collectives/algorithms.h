// The collectives and their algorithms: pure functions from (world size, rank, elements) to a
// schedule. All work in place on a buffer of `elements` elements. The chunk of rank r is
// part_of({0, elements}, r, world_size).
//
// A sum's bits depend on the order of its additions, which each algorithm states: with 4 ranks
//   ring              (((c+1)+(c+2))+(c+3))+c modulo 4, c being the chunk's number
//   direct            ((0+1)+2)+3: rank order, wherever the chunks are cut
//   halving-doubling  (0+1)+(2+3): a balanced tree over the ranks
//   tree              the same tree
// `library` is the algorithm of the transport's own library, with an unspecified order: it has no
// schedule.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "parallel/collectives/schedule.h"

namespace triptych::parallel {

enum class Collective : std::uint8_t { AllReduce, ReduceScatter, AllGather, Broadcast };
enum class Algorithm : std::uint8_t { Ring, Direct, HalvingDoubling, Tree, Library };

std::string_view to_string(Collective collective);
std::string_view to_string(Algorithm algorithm);
/// The algorithm of that name. Throws InvalidArgument listing the names.
Algorithm algorithm_from_string(std::string_view name);
/// Those that a collective has schedules of, the default first.
std::span<const Algorithm> algorithms_of(Collective collective);

/// The participants and the operands.
struct CollectiveShape {
  int world_size = 1;
  int rank = 0;
  std::int64_t elements = 0;
  int root = 0;  ///< of a broadcast: the rank that sends its elements to all
  /// Large buffers are worked on in pieces of this many elements per chunk, which stay in the last
  /// level of the cache between the steps: 2 MiB of f32. Fewer cost a meeting of the ranks each.
  std::int64_t segment_elements = 524288;
};

/// Steps of `shape.rank`. Throws InvalidArgument for an algorithm that the collective does
/// not have, and for shapes that make no sense.
Schedule make_schedule(Collective collective, Algorithm algorithm, const CollectiveShape& shape);

}  // namespace triptych::parallel
