// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/elastic.h"

#include <fmt/core.h>

#include "core/base/error.h"
#include "experiments/app/message.h"
#include "parallel/strategies/rank_graph.h"

namespace triptych::app {

ElasticRun::ElasticRun(const std::vector<std::string>& arguments) : app_("train") {
  if (arguments.empty() || arguments.front() != "train")
    throw InvalidArgument("--elastic goes with train: triptych launch --elastic -n RANKS train …");
  options_.add_to(app_);
  app_.add_flag("--json");
  app_.parse({arguments.begin() + 1, arguments.end()});
  if (options_.machine.parallel.transport != training::Transport::Mpi)
    throw InvalidArgument("--elastic is for ranks that are processes; add --transport mpi");
  if (folder().empty())
    throw InvalidArgument("--elastic goes on from the run's folder; name it by --out FOLDER");
}

std::vector<std::string> ElasticRun::arguments() const {
  auto arguments = options_.resumption(folder());
  arguments.insert(arguments.begin(), "train");
  return arguments;
}

Continuation ElasticRun::after(const parallel::LaunchOutcome& outcome, int ranks) {
  if (outcome.exit_code == 0 || outcome.interrupted) return {};
  const auto ends = [](const std::string& why) {
    return Continuation{0, fmt::format("it does not go on: {}", why)};
  };
  if (outcome.lost == 0) return ends("no rank has died or stalled");
  if (outcome.lost >= ranks) return ends("no rank is left");
  if (!training::holds_run(folder()))
    return ends(fmt::format("\"{}\" holds no checkpoint yet", folder()));
  try {
    return go_on(ranks, ranks - outcome.lost);
  } catch (const Error& error) {
    return ends(with_dashes(error.what()));
  }
}

Continuation ElasticRun::go_on(int ranks, int left) {
  const auto saved = training::load_run(folder());
  const auto step = std::ssize(saved.losses);
  if (went_on_from_ == step) {
    throw CommError(
        fmt::format("no checkpoint was written since it went on from step {}; look for what ends "
                    "its ranks, or save more often by --checkpoint-every",
                    step));
  }
  std::string why_not;
  const int next = shareable(saved, left, why_not);
  if (next == 0) throw InvalidArgument(fmt::format("{} ranks are left, and {}", left, why_not));
  went_on_from_ = step;
  return {next, fmt::format("goes on with {} of {} ranks from step {}", next, ranks, step)};
}

int ElasticRun::shareable(const training::SavedRun& saved, int left, std::string& why_not) const {
  auto machine = saved.machine;
  options_.apply_to(machine);
  const auto& config = machine.parallel;
  for (int ranks = left; ranks > 0; --ranks) {
    try {
      parallel::make_rank_graph(
          config.strategy,
          {.step = training_step(saved.config.model, training_options(saved.config)),
           .batch = saved.config.training.batch,
           .world_size = ranks,
           .order = config.order,
           .shards = config.shards,
           .accumulate = saved.config.accumulate});
      return ranks;
    } catch (const InvalidArgument& error) {
      if (why_not.empty()) why_not = error.what();
    }
  }
  return 0;
}

}  // namespace triptych::app
