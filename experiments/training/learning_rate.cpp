// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/learning_rate.h"

#include <fmt/core.h>

#include <algorithm>
#include <numbers>

#include "core/base/error.h"
#include "core/base/list_text.h"
#include "core/base/wide_math.h"

namespace triptych::training {
namespace {

/// Steps of the cosine, after the warm-up.
std::int64_t cosine_steps(const RunConfig& config) {
  return std::max<std::int64_t>(1, config.schedule_steps - config.warmup);
}

}  // namespace

float learning_rate_of(const RunConfig& config, std::int64_t step) {
  const auto warmup = config.warmup;
  if (step < warmup) {
    const auto share = static_cast<double>(step + 1) / static_cast<double>(warmup);
    return static_cast<float>(config.learning_rate * share);
  }
  if (config.schedule == Schedule::Constant) return config.learning_rate;
  const auto length = static_cast<double>(cosine_steps(config));
  const auto done = std::min(1.0, static_cast<double>(step - warmup) / length);
  return static_cast<float>(config.learning_rate * (1 + wide::cos(std::numbers::pi * done)) / 2);
}

std::optional<std::int64_t> schedule_end(const RunConfig& config) {
  if (config.schedule == Schedule::Constant || config.schedule_steps == 0) return std::nullopt;
  return config.warmup + cosine_steps(config);
}

void require_schedule_of_new(const RunConfig& config, std::int64_t total) {
  const auto end = schedule_end(config);
  if (!end || total <= *end) return;
  throw InvalidArgument(fmt::format(
      "the learning rate is 0 after step {}, where the schedule ends, and the run has {}: "
      "the others would change nothing; give the option schedule-steps {}, or 0 for the whole run, "
      "or end the run after {}",
      *end, counted(total, "step"), total, counted(*end, "step")));
}

void require_schedule_of_old(const RunConfig& config, std::int64_t done, std::int64_t total,
                             const std::filesystem::path& folder) {
  const auto end = schedule_end(config);
  if (!end || total <= *end || done >= total) return;
  const auto reach = done < *end ? fmt::format("go on to step {} at most, or ", *end) : "";
  throw InvalidArgument(fmt::format(
      "the learning rate is 0 after step {}, where the schedule of the run in \"{}\" ends, and "
      "{} in all are asked for: the others would change nothing; {}start a new run from its "
      "weights with the option init {}",
      *end, folder.string(), counted(total, "step"), reach, folder.string()));
}

}  // namespace triptych::training
