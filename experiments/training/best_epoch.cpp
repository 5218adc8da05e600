// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/best_epoch.h"

namespace triptych::training {
namespace {

bool better(const EpochReport& report, const EpochReport& than, Keep keep) {
  if (keep == Keep::Loss) return report.validation_loss < than.validation_loss;
  return report.scores.mean_dice > than.scores.mean_dice;
}

}  // namespace

std::optional<std::size_t> best_epoch(std::span<const EpochReport> epochs, Keep keep) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < epochs.size() && keep != Keep::None; ++i) {
    if (epochs[i].scores.images == 0) continue;
    if (keep == Keep::Dice && !epochs[i].scores.mean_dice) continue;
    if (!best || better(epochs[i], epochs[*best], keep)) best = i;
  }
  return best;
}

bool out_of_patience(std::span<const EpochReport> epochs, Keep keep, std::int64_t patience) {
  const auto best = best_epoch(epochs, keep);
  return best && patience > 0 &&
         std::ssize(epochs) - 1 - static_cast<std::int64_t>(*best) >= patience;
}

}  // namespace triptych::training
