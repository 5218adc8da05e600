// A report of the summation of gradients over ranks: the schedules of the collectives, their effect
// on the gradients of a real training step, and their cost. The page of collectives steps through
// it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/page/json.h"
#include "parallel/collectives/schedule.h"

namespace triptych::studies {

/// "ring", "direct", "halving-doubling", "tree" and "server".
std::vector<std::string_view> summing_ways();

/// An all-reduce of `elements` numbers of `ranks` ranks: a schedule each, in one piece for every
/// size (pieces are for ranks that share a cache).
std::vector<parallel::Schedule> summing_schedules(std::string_view way, int ranks,
                                                  std::int64_t elements);

/// Price of an all-reduce of S bytes on a switch with links of latency a and bandwidth b: latencies
/// a + volumes S / b.
struct SumPrice {
  double latencies = 0;  ///< links that messages pass one behind another
  double volumes = 0;    ///< of S, through the busiest link
};
/// By parallel::price. Exact for all a and b and every S that the ranks divide, where there are 2,
/// 3, 4 or 8 of them. For other numbers some algorithms have more than one longest path.
SumPrice price_of_sum(std::string_view way, int ranks);
/// The seconds of parallel::price itself.
double modelled_seconds(std::string_view way, int ranks, std::int64_t bytes, double alpha_s,
                        double bytes_per_s);

/// {"model", "parameter", "elements", "gradients": of each rank, "bytes": of all gradients, "ways":
/// [{"name", "worlds": [{"ranks", "chunks", "schedules", "sums", "orders", "latencies",
/// "volumes"}]}]}. A step of a schedule is [kind, peer, send, memory, begin, end, source's memory,
/// begin, end]. The gradients are those of one training step with a different picture for each
/// rank.
page::Json collectives_report();

}  // namespace triptych::studies
