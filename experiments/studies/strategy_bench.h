// Strategies of training side by side: on ranks of this machine, measured, and on machines known by
// their figures, modelled.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/machines/node_time.h"
#include "experiments/machines/rank_plans.h"
#include "experiments/measure/statistics.h"
#include "experiments/studies/epoch_model.h"

namespace triptych::studies {

/// Training that is compared: each step of `batch` images, of all ranks together.
struct StrategyWork {
  ModelConfig model;
  TrainingOptions training;
  training::ExecutionConfig machine;  ///< without its ranks
  std::vector<parallel::Strategy> strategies;
  std::vector<std::int64_t> ranks;  ///< above 1: of each strategy
  int steps = 1;                    ///< of an epoch
};

struct StrategyRow {
  parallel::Strategy strategy;  ///< of several ranks
  int ranks = 1;
  int threads = 0;  ///< of each rank. 0: it is no machine of threads
  int micro_batches = 1;
  measure::Statistics epoch;         ///< measured. No samples: nothing was
  double communication_s = 0;        ///< of an epoch, rank 0's, waiting included
  std::optional<Duration> modelled;  ///< epoch
  double modelled_communication_s = 0;
  std::int64_t bytes_sent = 0;       ///< per step, by the rank that sends most
  std::vector<double> memory_bytes;  ///< of each rank's plan
  /// Per step and rank: elements of collectives that add, and of the others.
  std::vector<std::int64_t> elements_summed, elements_passed;
  std::optional<double> survey_s;  ///< measurement of the source survey (recorded)

  /// "single" of one rank, else the strategy's text.
  std::string name() const;
  /// The epoch: measured where it was, else modelled.
  Duration time() const;
};

/// Mean epochs of `epochs` rounds. In each round every strategy has its turn. With `times`, the
/// figures of a calibration of this machine, rows also have a prediction.
std::vector<StrategyRow> measure_strategies(const StrategyWork& work, int epochs,
                                            const machines::MachineFigures* calibration);

/// A machine known by its figures, several times, and the links between them.
struct ModelledCluster {
  machines::MachineFigures figures;
  machines::Assumptions assumptions;
  std::string interconnect = "ring";  ///< for parallel::make_interconnect
  parallel::Link link;
  bool overlap = true;
};

/// The same table from the plans alone, one for each of `epochs`. The epoch of one machine is its
/// `epoch_s`, or if that is 0 the model's time for the steps.
std::vector<std::vector<StrategyRow>> model_strategies(const StrategyWork& work,
                                                       const ModelledCluster& cluster,
                                                       std::span<const EpochModel> epochs);

/// How much faster than `single`, in %.
double speedup_percent(const StrategyRow& single, const StrategyRow& row);

}  // namespace triptych::studies
