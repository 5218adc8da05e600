// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/run_limits.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "experiments/training/limits.h"

namespace triptych::training {

void require_within_limits(const RunConfig& config) {
  using namespace limits;
  const auto& optimizer = config.training.optimizer;
  require_within("batch", kBatch, config.training.batch);
  require_within("accumulate", kAccumulate, config.accumulate);
  require_within("learning_rate", kLearningRate, config.learning_rate);
  require_within("momentum", kMomentum, optimizer.momentum);
  require_within("beta1", kMomentum, optimizer.beta1);
  require_within("beta2", kMomentum, optimizer.beta2);
  require_within("epsilon", kEpsilon, optimizer.epsilon);
  require_within("weight_decay", kWeightDecay, optimizer.weight_decay);
  require_within("schedule_steps", kSteps, config.schedule_steps);
  require_within("warmup", kSteps, config.warmup);
  require_within("epochs", kEpochs, config.epochs);
  require_within("steps", kSteps, config.steps);
  require_within("steps_per_epoch", kSteps, config.steps_per_epoch);
  require_within("checkpoint_every", kSteps, config.checkpoint_every);
  require_within("patience", kEpochs, config.patience);
  require_within("statistics_batches", kStatisticsBatches, config.statistics_batches);
  require_within("border_weight", kBorderWeight, config.weights.border);
  require_within("border_sigma", kBorderSigma, config.weights.border_sigma);
  require_within("tile", kTile, config.tile);
  require_within("margin", kMargin, config.margin);
  require_within("validation_fraction", kValidationFraction, config.data.validation_fraction);
  require_within("ignore_label", kMaskValue, config.data.ignore_label);
  require_within("folds", kFolds, config.data.folds);
  require_within("fold", WholeLimits{0, std::max<std::int64_t>(0, config.data.folds - 1)},
                 config.data.fold);
  require_within("cache_mib", kMemoryMib, config.data.cache_mib);
  require_within("synthetic_images", kSyntheticImages, config.data.synthetic_images);
  if (!std::in_range<std::int64_t>(config.memory_limit_mib) ||
      !within(kMemoryMib, static_cast<std::int64_t>(config.memory_limit_mib))) {
    throw InvalidArgument(fmt::format("\"memory_limit_mib\" must be {}, got {}",
                                      to_string(kMemoryMib), config.memory_limit_mib));
  }
}

}  // namespace triptych::training
