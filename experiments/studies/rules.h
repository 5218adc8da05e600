// The rules by which numbers become verdicts. Each stands in words beside its claim (claim.cpp).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "experiments/studies/claim.h"

namespace triptych::studies {

/// One kind of work: how much faster it is on the GPU, and how much faster it would be with the
/// GPU's bandwidth but the CPU's arithmetic, and the other way round.
struct Shares {
  double speedup = 1, by_bandwidth = 1, by_arithmetic = 1;

  /// 1 - ln by_arithmetic / ln speedup: what is lost with the bandwidth. 1 where nothing is left.
  double bandwidth_share() const;
};

/// Says whether the speedup is lost without the bandwidth (share >= 0.9). Of all kinds of work:
/// holds here; of some: under conditions; of none: wrong.
ClaimVerdict judge_bandwidth(std::span<const Shares> kinds);

/// On-chip over off-chip bandwidth, "about ten": from 7.5 to 13.3.
inline constexpr double kTenLow = 7.5, kTenHigh = 13.3;
/// Judges the machine that the claim is about, and newer ones: all about ten: holds here; the first
/// alone: out of date; not even that one: wrong.
ClaimVerdict judge_sram(double claimed_machine, std::span<const double> newer);

/// A task: speedups over the first machine.
struct TaskSpeedup {
  double compute = 0, with_transfers = 0;
};
/// Tasks from small to large. Some are faster without transfers alone: the claim holds, here if the
/// largest one wins with transfers, else under conditions. None: wrong.
ClaimVerdict judge_transfers(std::span<const TaskSpeedup> tasks);

/// Speedups at doubling batches. Last over first at least 1.5: holds, here if the last doubling
/// still adds 5 %, else under conditions (up to where it saturates); above 1.1: under conditions;
/// else wrong.
ClaimVerdict judge_growth(std::span<const double> speedups);

/// Reads per multiply-add of the memory nearest to the arithmetic: the array's, and the least of
/// other machines. At most half of it: holds here; less: under conditions; else wrong.
ClaimVerdict judge_reuse(double array, double least_other);

/// Utilisation of a small and a large square product, and of products of one shape each with as
/// many multiply-adds. Small above 0.75: wrong. Small below 0.25, large above 0.75 and equal work
/// that differs by at most 1.5 times: holds here; else under conditions.
ClaimVerdict judge_utilisation(double small, double large, std::span<const double> equal_work);

/// Matrix units over ordinary ones on the newest GPU, and the GPU's matrix units over the array
/// that the claim sets against it. Ratio below 2: holds here; matrix units at least as fast as the
/// array's: out of date; else under conditions.
ClaimVerdict judge_matrix_units(double over_ordinary, double over_array);

/// The fastest kernel on all threads over scalar code on one. At least 10: wrong; at most 2: holds
/// here; else under conditions.
ClaimVerdict judge_cpu_parallelism(double speedup);

/// Bytes of the long computation as counted and as the formula says.
struct Counted {
  double bytes = 0, formula = 0;
};
/// Less traffic, both as the formulas say to 10 %: holds here. Less, but not as they say: under
/// conditions; else wrong.
ClaimVerdict judge_attention(const Counted& flash, const Counted& materialised);

/// Bytes over the busiest link at ascending numbers of ranks. The server's in proportion to the
/// workers (to 10 %) and the ring's below twice the buffer: holds here; the server's growing faster
/// than the ring's: under conditions; else wrong.
struct LinkBytes {
  double ranks = 2, server = 0, ring = 0;
};
ClaimVerdict judge_ring(std::span<const LinkBytes> rows, double buffer_bytes);

/// Seconds of communication per step and the largest difference of a weight from that of
/// synchronous training: averaging every few steps, and every step. Faster, and different in the
/// first case alone: under conditions. Faster and different in both: holds here; else wrong.
struct Averaging {
  double synchronous_s = 0, averaged_s = 0;
  double difference = 0, difference_every_step = 0;
};
ClaimVerdict judge_averaging(const Averaging& averaging);

/// Elements that the ranks of a model cut into layers sum in a step, against its parameters. At
/// least half as many: holds here; below a hundredth: wrong; else under conditions.
ClaimVerdict judge_model_parallel_gradients(double summed, double parameters);

/// Speedups (T1 / T2 - 1) of data and model parallelism: as the survey's table has them, as the
/// model of its machine gives them without fitted assumptions, and with them. As the table to 0.05
/// without them: holds here; with them alone: under conditions; else wrong.
struct TwoRanks {
  double data = 0, model = 0;
};
ClaimVerdict judge_strategies(const TwoRanks& table, const TwoRanks& plain, const TwoRanks& fitted);

}  // namespace triptych::studies
