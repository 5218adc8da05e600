// Time of a collective on an interconnect, by the alpha-beta model: modelled, never measured.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "parallel/collectives/interconnect.h"
#include "parallel/collectives/schedule.h"

namespace triptych::parallel {

/// A message on its way, for drawing.
struct Flight {
  int from = 0, to = 0;
  std::int64_t bytes = 0;
  double start_s = 0, end_s = 0;
};

/// Computation of a rank: after its steps before number `after` are done, and so that step `before`
/// and those behind it wait for it. Everything between overlaps with it. `after` equal to `before`
/// means that nothing does. Computations follow one another.
struct Delay {
  std::size_t before = 0;  ///< number of the step. As many as there are: none waits
  double seconds = 0;
  std::size_t after = before;  ///< at most `before`
};

struct Interval {
  double start_s = 0, end_s = 0;
};

struct Price {
  double seconds = 0;           ///< until the last rank is done
  std::vector<double> rank_s;   ///< until each is
  std::vector<double> busy_s;   ///< by link: how long messages were on their way
  std::vector<Flight> flights;  ///< in order of their start
  std::vector<std::vector<Interval>> computations;  ///< of each rank: of its delays
  std::vector<std::vector<Interval>> steps;         ///< of each rank
};

/// Runs the schedules of all ranks in virtual time. A message that is sent flows, after the sum of
/// its path's latencies, through all links of the path at once, at its max-min fair share of their
/// bandwidths (flows.h), and is there when its last byte is. Messages from one rank to another go
/// one after another. Additions take bytes / add_bytes_per_s. 0: no time. The schedules must be
/// right (symbolic.h). `delays`, when given, are those of each rank in the order of its steps.
///
/// When no two messages share a link, S bytes over n ranks, on links with the latency a and the
/// bandwidth b, take (Thakur, Rabenseifner and Gropp, 2005):
///   ring               2 (n - 1) (h a + S / (n b)), neighbours being h links apart
///   halving-doubling   2 lg n h a + 2 (n - 1) / n S / b, for n a power of two
///   tree               2 lg n (h a + S / b), for n a power of two
/// and on a switch, where a rank's messages share its two links:
///   direct             2 (2 a + (n - 1) / n S / b)
Price price(std::span<const Schedule> schedules, std::int64_t element_bytes,
            const Interconnect& interconnect, double add_bytes_per_s = 0,
            std::span<const std::vector<Delay>> delays = {});

}  // namespace triptych::parallel
