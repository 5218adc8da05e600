// An epoch from the ratio of its steps, and the survey that measured two GPUs: the plain model's
// prediction for its table, and assumptions under which the model gives its numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "parallel/strategies/strategy.h"

namespace triptych::studies {

struct EpochModel {
  double epoch_s = 0;  ///< of one machine alone
  double fixed_s = 0;  ///< of it that takes the same however many machines there are
  /// Factor of a machine's rate when it works on micro-batches instead of the whole batch.
  double micro_batch_efficiency = 1;
};

/// fixed + (epoch - fixed) * step / single step, the ratio of a pipeline of several micro-batches
/// being worse by their efficiency. Throws InvalidArgument when the fixed part is not within the
/// epoch, or an efficiency not above 0.
double epoch_seconds(const EpochModel& model, double step_ratio, int micro_batches);

/// Table 2 of the source survey: a U-Net on two RTX 2070 SUPER and an i9-9900K, mean epochs. It
/// states no image size, batch, data set, optimiser, split or content of an epoch.
inline constexpr double kSurveySingle = 24.76, kSurveyData = 18.976, kSurveyModel = 23.7;

/// The survey's seconds of one rank, and on two ranks of data parallelism and any split by layers.
/// Nothing for other strategies and numbers of ranks.
std::optional<double> survey_seconds(const parallel::Strategy& strategy, int ranks);

/// A fit, not a measurement. With 13.2 s of the epoch that do not scale (loading, augmentation,
/// validation or start-up), data parallel at nearly two times the rate on the rest is 18.98 s. A
/// pipeline of two micro-batches is ideally 1.17 times as fast, and 0.94 of that because each
/// micro-batch is half as large. That is 1.10 times as fast on the rest: 23.7 s. Other stories fit
/// the first number alone as well: a loader's ceiling, no overlap, a tiny batch, a slow path.
inline constexpr EpochModel kSurveyFit = {kSurveySingle, 13.2, 0.94};

}  // namespace triptych::studies
