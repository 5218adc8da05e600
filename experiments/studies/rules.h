// The rules that turn numbers into verdicts. Its claim states each in words (claim.cpp).
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

  /// 1 - ln by_arithmetic / ln speedup: the loss without the bandwidth. 1 where nothing is left.
  double bandwidth_share() const;
};

/// Says whether the speedup is lost without the bandwidth (share >= 0.9). For all kinds of work:
/// holds here. For some: under conditions. For none: wrong.
ClaimVerdict judge_bandwidth(std::span<const Shares> kinds);

/// On-chip over off-chip bandwidth, "about ten": from 7.5 to 13.3.
inline constexpr double kTenLow = 7.5, kTenHigh = 13.3;
/// Tests the claim's machine and newer ones: all about ten: holds here, the first alone: out of
/// date, not even that one: wrong.
ClaimVerdict judge_sram(double claimed_machine, std::span<const double> newer);

/// A task: speedups over the first machine.
struct TaskSpeedup {
  double compute = 0, with_transfers = 0;
};
/// Tasks from small to large. Some are faster without transfers alone: the claim holds, here if the
/// largest one wins with transfers, else under conditions. None: wrong.
ClaimVerdict judge_transfers(std::span<const TaskSpeedup> tasks);

/// Speedups at doubling batches. Last over first at least 1.5: holds, here if the last doubling
/// still adds 5 %, otherwise under conditions (up to saturation). Above 1.1: under conditions.
/// Otherwise wrong.
ClaimVerdict judge_growth(std::span<const double> speedups);

/// Reads per multiply-add of the memory nearest to the arithmetic: the array's, and the least of
/// other machines. At most half of it: holds here. Less: under conditions. Otherwise wrong.
ClaimVerdict judge_reuse(double array, double least_other);

/// Utilisation of a small and a large square product, and of products of one shape each with as
/// many multiply-adds. Small above 0.75: wrong. Small below 0.25, large above 0.75 and equal work
/// that differs by at most 1.5 times: holds here. Otherwise under conditions.
ClaimVerdict judge_utilisation(double small, double large, std::span<const double> equal_work);

/// Matrix units over ordinary ones on the newest GPU, and the GPU's matrix units over the array
/// that the claim sets against it. Ratio below 2: holds here. Matrix units at least as fast as the
/// array's: out of date. Otherwise under conditions.
ClaimVerdict judge_matrix_units(double over_ordinary, double over_array);

/// The fastest kernel on all threads over scalar code on one. At least 10: wrong. At most 2: holds
/// here. Otherwise under conditions.
ClaimVerdict judge_cpu_parallelism(double speedup);

/// Bytes of the long computation as counted and as the formula says.
struct Counted {
  double bytes = 0, formula = 0;
};
/// Less traffic, both as the formulas say to 10 %: holds here. Less, but not by the stated formula:
/// under conditions. Otherwise wrong.
ClaimVerdict judge_attention(const Counted& flash, const Counted& materialised);

/// Bytes over the busiest link at ascending numbers of ranks. The server's in proportion to the
/// workers (to 10 %) and the ring's below two times the buffer: holds here. The server's growing
/// faster than the ring's: under conditions. Otherwise wrong.
struct LinkBytes {
  double ranks = 2, server = 0, ring = 0;
};
ClaimVerdict judge_ring(std::span<const LinkBytes> rows, double buffer_bytes);

/// Seconds of communication per step and the largest difference of a weight from that of
/// synchronous training: averaging every few steps, and every step. Faster, and different in the
/// first case alone: under conditions. Faster and different in both: holds here. Otherwise wrong.
struct Averaging {
  double synchronous_s = 0, averaged_s = 0;
  double difference = 0, difference_every_step = 0;
};
ClaimVerdict judge_averaging(const Averaging& averaging);

/// Elements that the ranks of a model cut into layers sum in a step, against its parameters. At
/// least half as many: holds here. Below a hundredth: wrong. Otherwise under conditions.
ClaimVerdict judge_model_parallel_gradients(double summed, double parameters);

/// Speedups (T1 / T2 - 1) of data and model parallelism: as the survey's table has them, as the
/// model of its machine gives them without fitted assumptions, and with them. As the table to 0.05
/// without them: holds here. With them alone: under conditions. Otherwise wrong.
struct TwoRanks {
  double data = 0, model = 0;
};
ClaimVerdict judge_strategies(const TwoRanks& table, const TwoRanks& plain, const TwoRanks& fitted);

}  // namespace triptych::studies
