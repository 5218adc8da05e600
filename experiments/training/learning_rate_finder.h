// Search for a learning rate: one short training with a rate that rises step by step until the loss
// does (Smith, "Cyclical learning rates for training neural networks", 2017).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "experiments/training/device_set.h"
#include "experiments/training/run_config.h"

namespace triptych::training {

struct RateRange {
  double low = 1e-6;
  double high = 1;
  std::int64_t steps = 100;  ///< the rate of step i is low (high / low)^(i / (steps - 1))
};

struct RateTrial {
  float rate = 0;
  float loss = 0;
  double smoothed = 0;  ///< exponential mean of the losses so far, of weight 0.9, unbiased
};

struct RateFinding {
  std::vector<RateTrial> trials;
  bool diverged = false;  ///< the loss became four times its least, or not finite: the last trial
};

/// Trains `config` from its initial weights on the batches of its first steps. Nothing is written.
/// `on_trial` hears each step. Returns sooner when `go_on` says no. Throws InvalidArgument for a
/// range that does not rise, and as TrainingRun does for the rest.
RateFinding try_learning_rates(
    const DeviceSet& machine, const RunConfig& config, const RateRange& range,
    const std::function<void(const RateTrial&)>& on_trial = [](const RateTrial&) {},
    const std::function<bool()>& go_on = [] { return true; });

/// The rate at which the smoothed loss falls fastest over the logarithm of the rate, and a tenth of
/// the one at which it is lowest. Nothing when it never falls, or there are fewer than ten trials.
struct RateAdvice {
  float steepest = 0;
  float tenth_of_lowest = 0;
};
std::optional<RateAdvice> advise(std::span<const RateTrial> trials);

}  // namespace triptych::training
