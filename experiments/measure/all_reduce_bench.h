// Times all-reduces of one group of ranks, and fits the alpha-beta model to the times.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/time_kind.h"
#include "experiments/measure/statistics.h"
#include "parallel/comm/communicator.h"

namespace triptych::measure {

struct AllReduceRow {
  std::string transport, algorithm;
  int ranks = 1;
  std::int64_t bytes = 0;
  Statistics time;  ///< a sample is the slowest rank's
  TimeKind kind = TimeKind::Measured;
  std::uint64_t cycles = 0, arbiter_wait_cycles = 0;  ///< on arrays
  bool right = false;                                 ///< every element on every rank is the sum

  /// bytes / time.
  double algorithm_bandwidth() const { return static_cast<double>(bytes) / time.median; }
  /// Bandwidth of each rank's link: times 2 (ranks - 1) / ranks, as nccl-tests define it.
  double bus_bandwidth() const {
    return algorithm_bandwidth() * 2 * (ranks - 1) / static_cast<double>(ranks);
  }
};

/// Time of f32 sums, called by every rank of the group, which all get the same result. With
/// `repeats` 0 it continues for about half a second, at least 7 samples.
AllReduceRow time_all_reduce(parallel::Communicator& communicator, parallel::Algorithm algorithm,
                             std::int64_t bytes, int repeats);

/// seconds = alpha + bytes * beta, the line with the least squared relative error.
struct AlphaBeta {
  double alpha_s = 0;
  double bytes_per_s = 0;
  double error = 0;  ///< the largest relative one
};

/// Fits rows of one transport, algorithm and number of ranks.
AlphaBeta fit_alpha_beta(std::span<const AllReduceRow> rows);

/// Bytes that one thread and then all of `threads` at once move by a[i] += b[i] on arrays of that
/// many bytes, per second: two reads and a write of each element. The baseline of all-reduces.
double add_stream_bytes_per_s(int threads, std::int64_t bytes);

}  // namespace triptych::measure
