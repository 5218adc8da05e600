// SPDX-License-Identifier: Apache-2.0
#include "experiments/studies/epoch_model.h"

#include <fmt/core.h>

#include "core/base/error.h"

namespace triptych::studies {

double epoch_seconds(const EpochModel& model, double step_ratio, int micro_batches) {
  if (!(model.fixed_s >= 0 && model.fixed_s <= model.epoch_s)) {
    throw InvalidArgument(
        fmt::format("the fixed part of an epoch must be from 0 to the {} s of the epoch, got {} s",
                    model.epoch_s, model.fixed_s));
  }
  if (!(model.micro_batch_efficiency > 0)) {
    throw InvalidArgument(fmt::format("the efficiency of micro-batches must be above 0, got {}",
                                      model.micro_batch_efficiency));
  }
  const double worse = micro_batches > 1 ? model.micro_batch_efficiency : 1;
  return model.fixed_s + (model.epoch_s - model.fixed_s) * step_ratio / worse;
}

std::optional<double> survey_seconds(const parallel::Strategy& strategy, int ranks) {
  if (ranks == 1) return kSurveySingle;
  if (ranks != 2) return std::nullopt;
  if (strategy.kind == parallel::Strategy::Kind::Replicated) return kSurveyData;
  if (strategy.kind == parallel::Strategy::Kind::Pipeline) return kSurveyModel;
  return std::nullopt;
}

}  // namespace triptych::studies
