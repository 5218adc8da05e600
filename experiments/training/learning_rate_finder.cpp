// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/learning_rate_finder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/base/wide_math.h"
#include "experiments/training/data/batcher.h"
#include "experiments/training/trainer.h"

namespace triptych::training {
namespace {

constexpr double kWeight = 0.9;      // of the smoothed loss before
constexpr double kDiverged = 4;      // times the least smoothed loss
constexpr std::size_t kFewest = 10;  // trials that say something

void validate(const RateRange& range) {
  if (range.low > 0 && range.high > range.low && std::isfinite(range.high) && range.steps >= 2)
    return;
  throw InvalidArgument(
      fmt::format("learning rates must rise, over two steps or more; got {} steps from {} to {}",
                  range.steps, range.low, range.high));
}

float rate_of(const RateRange& range, std::int64_t step) {
  const double share = static_cast<double>(step) / static_cast<double>(range.steps - 1);
  return static_cast<float>(range.low * wide::exp(share * wide::log(range.high / range.low)));
}

}  // namespace

RateFinding try_learning_rates(const DeviceSet& machine, const RunConfig& config,
                               const RateRange& range,
                               const std::function<void(const RateTrial&)>& on_trial,
                               const std::function<bool()>& go_on) {
  validate(range);
  validate(config);
  Trainer trainer(machine, {.model = config.model,
                            .options = training_options(config),
                            .memory_limit_mib = config.memory_limit_mib,
                            .accumulate = config.accumulate,
                            .cut = {}});
  const auto data = load_data(config);
  const segmentation::Batcher batcher(data.train, data.normalization, batcher_options(config));
  const auto batch = config.training.batch;
  RateFinding finding;
  double sum = 0, weights = 0, least = HUGE_VAL;
  for (std::int64_t step = 0; step < range.steps && !finding.diverged && go_on(); ++step) {
    const auto drawn = batcher.draw(step * batch, batch);
    const auto rate = rate_of(range, step);
    const auto loss = trainer.step(drawn.x, drawn.y, rate, 0, drawn.others);
    sum = kWeight * sum + (1 - kWeight) * double{loss};
    weights = kWeight * weights + (1 - kWeight);
    finding.trials.push_back({rate, loss, sum / weights});
    least = std::min(least, finding.trials.back().smoothed);
    finding.diverged = !std::isfinite(loss) || finding.trials.back().smoothed > kDiverged * least;
    on_trial(finding.trials.back());
  }
  return finding;
}

std::optional<RateAdvice> advise(std::span<const RateTrial> trials) {
  while (!trials.empty() && !std::isfinite(trials.back().smoothed))
    trials = trials.first(trials.size() - 1);
  if (trials.size() < kFewest) return std::nullopt;
  const auto lowest = std::ranges::min_element(trials, {}, &RateTrial::smoothed);
  double steepest = 0;
  const RateTrial* there = nullptr;
  for (auto trial = trials.begin() + 1; trial < lowest; ++trial) {
    const auto &before = *(trial - 1), &after = *(trial + 1);
    const double fall = (after.smoothed - before.smoothed) /
                        (wide::log(double{after.rate}) - wide::log(double{before.rate}));
    if (fall >= steepest) continue;
    steepest = fall;
    there = &*trial;
  }
  if (there == nullptr) return std::nullopt;
  return RateAdvice{.steepest = there->rate, .tenth_of_lowest = lowest->rate / 10};
}

}  // namespace triptych::training
