// SPDX-License-Identifier: Apache-2.0
#include "experiments/studies/rules.h"

#include <algorithm>
#include <cmath>

namespace triptych::studies {
namespace {

constexpr double kExplains = 0.9;

bool about_ten(double ratio) { return ratio >= kTenLow && ratio <= kTenHigh; }

bool within(double value, double expected, double tolerance) {
  return std::fabs(value - expected) <= tolerance * std::fabs(expected);
}

bool near(const TwoRanks& a, const TwoRanks& b) {
  return std::fabs(a.data - b.data) <= 0.05 && std::fabs(a.model - b.model) <= 0.05;
}

}  // namespace

double Shares::bandwidth_share() const {
  return speedup > 1 ? 1 - std::log(std::max(by_arithmetic, 1.0)) / std::log(speedup) : 0;
}

ClaimVerdict judge_bandwidth(std::span<const Shares> kinds) {
  const auto explained = std::ranges::count_if(
      kinds, [](const Shares& shares) { return shares.bandwidth_share() >= kExplains; });
  if (explained == 0) return ClaimVerdict::Wrong;
  return explained == std::ssize(kinds) ? ClaimVerdict::HoldsHere
                                        : ClaimVerdict::HoldsUnderConditions;
}

ClaimVerdict judge_sram(double claimed_machine, std::span<const double> newer) {
  if (!about_ten(claimed_machine)) return ClaimVerdict::Wrong;
  return std::ranges::all_of(newer, about_ten) ? ClaimVerdict::HoldsHere : ClaimVerdict::OutOfDate;
}

ClaimVerdict judge_transfers(std::span<const TaskSpeedup> tasks) {
  const bool some = std::ranges::any_of(
      tasks, [](const TaskSpeedup& task) { return task.compute > 1 && task.with_transfers <= 1; });
  if (!some) return ClaimVerdict::Wrong;
  return tasks.back().with_transfers > 1 ? ClaimVerdict::HoldsHere
                                         : ClaimVerdict::HoldsUnderConditions;
}

ClaimVerdict judge_growth(std::span<const double> speedups) {
  if (speedups.size() < 2) return ClaimVerdict::Wrong;
  const double growth = speedups.back() / speedups.front();
  if (growth <= 1.1) return ClaimVerdict::Wrong;
  const bool still_grows = speedups.back() >= 1.05 * speedups[speedups.size() - 2];
  return growth >= 1.5 && still_grows ? ClaimVerdict::HoldsHere
                                      : ClaimVerdict::HoldsUnderConditions;
}

ClaimVerdict judge_reuse(double array, double least_other) {
  if (array >= least_other) return ClaimVerdict::Wrong;
  return array <= least_other / 2 ? ClaimVerdict::HoldsHere : ClaimVerdict::HoldsUnderConditions;
}

ClaimVerdict judge_utilisation(double small, double large, std::span<const double> equal_work) {
  if (small > 0.75) return ClaimVerdict::Wrong;
  const auto [least, most] = std::ranges::minmax(equal_work);
  const bool size_decides = small < 0.25 && large > 0.75 && most <= 1.5 * least;
  return size_decides ? ClaimVerdict::HoldsHere : ClaimVerdict::HoldsUnderConditions;
}

ClaimVerdict judge_matrix_units(double over_ordinary, double over_array) {
  if (over_ordinary < 2) return ClaimVerdict::HoldsHere;
  return over_array >= 1 ? ClaimVerdict::OutOfDate : ClaimVerdict::HoldsUnderConditions;
}

ClaimVerdict judge_cpu_parallelism(double speedup) {
  if (speedup >= 10) return ClaimVerdict::Wrong;
  return speedup <= 2 ? ClaimVerdict::HoldsHere : ClaimVerdict::HoldsUnderConditions;
}

ClaimVerdict judge_attention(const Counted& flash, const Counted& materialised) {
  if (flash.bytes >= materialised.bytes) return ClaimVerdict::Wrong;
  const bool as_formula = within(flash.bytes, flash.formula, 0.1) &&
                          within(materialised.bytes, materialised.formula, 0.1);
  return as_formula ? ClaimVerdict::HoldsHere : ClaimVerdict::HoldsUnderConditions;
}

ClaimVerdict judge_ring(std::span<const LinkBytes> rows, double buffer_bytes) {
  const auto &first = rows.front(), &last = rows.back();
  const double workers = (last.ranks - 1) / (first.ranks - 1);
  const bool bounded =
      std::ranges::all_of(rows, [&](const LinkBytes& row) { return row.ring <= 2 * buffer_bytes; });
  const double server = last.server / first.server, ring = last.ring / first.ring;
  if (bounded && within(server, workers, 0.1)) return ClaimVerdict::HoldsHere;
  return server > ring ? ClaimVerdict::HoldsUnderConditions : ClaimVerdict::Wrong;
}

ClaimVerdict judge_averaging(const Averaging& averaging) {
  constexpr double same = 1e-3;
  const bool faster = averaging.averaged_s < averaging.synchronous_s;
  if (!faster || averaging.difference <= same) return ClaimVerdict::Wrong;
  return averaging.difference_every_step > same ? ClaimVerdict::HoldsHere
                                                : ClaimVerdict::HoldsUnderConditions;
}

ClaimVerdict judge_model_parallel_gradients(double summed, double parameters) {
  if (summed < 0.01 * parameters) return ClaimVerdict::Wrong;
  return summed >= 0.5 * parameters ? ClaimVerdict::HoldsHere : ClaimVerdict::HoldsUnderConditions;
}

ClaimVerdict judge_strategies(const TwoRanks& table, const TwoRanks& plain,
                              const TwoRanks& fitted) {
  if (near(table, plain)) return ClaimVerdict::HoldsHere;
  return near(table, fitted) ? ClaimVerdict::HoldsUnderConditions : ClaimVerdict::Wrong;
}

}  // namespace triptych::studies
