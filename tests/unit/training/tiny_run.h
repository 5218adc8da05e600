// The smallest run with validation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/nn/models.h"
#include "experiments/training/run_config.h"

namespace triptych::training {

/// Two epochs of two steps.
inline RunConfig tiny_run() {
  RunConfig config;
  config.model = model_preset("unet-s");
  config.model.base = 2;
  config.model.depth = 1;
  config.model.size = 16;
  config.data.synthetic_images = 4;
  config.data.validation_fraction = 0.5;
  config.training.batch = 2;
  config.epochs = 2;
  config.steps_per_epoch = 2;
  return config;
}

}  // namespace triptych::training
