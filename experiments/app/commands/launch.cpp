// `triptych launch`: another command of the program, on several processes of this machine.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/console.h"
#include "core/base/error.h"
#include "core/base/list_text.h"
#include "experiments/app/commands.h"
#include "experiments/app/message.h"
#include "experiments/app/option_rows.h"
#include "experiments/app/output.h"
#include "experiments/app/train_options.h"
#include "parallel/launch/launcher.h"
#include "parallel/strategies/rank_graph.h"

namespace triptych::app {
namespace {

// A training run on processes. If ranks are lost, it resumes from its last checkpoint with fewer
// ranks.

/// Continuation after a launch.
struct Continuation {
  int ranks = 0;     ///< 0: nothing, the run has ended
  std::string text;  ///< says so in words. Empty when there is nothing to say
};

class ElasticRun {
 public:
  /// `arguments` as for Launch. Throws InvalidArgument unless they train over MPI into a folder
  /// that they name.
  explicit ElasticRun(const std::vector<std::string>& arguments);

  /// Resumption after a launch with this number of ranks. It needs a lost rank and a checkpoint
  /// newer than the last one used, and takes the largest remaining number of ranks that can share
  /// the run.
  Continuation after(const parallel::LaunchOutcome& outcome, int ranks);
  /// Arguments of the program, to go on.
  std::vector<std::string> arguments() const;

 private:
  std::string folder() const {
    return options_.command.resume.empty() ? options_.command.out : options_.command.resume;
  }
  Continuation go_on(int ranks, int left);
  /// At most `left`. 0: none. `why_not` is about the first that was tried.
  int shareable(const training::SavedRun& saved, int left, std::string& why_not) const;

  CommandLine app_;  ///< knows the given options
  TrainOptions options_;
  std::optional<std::int64_t> went_on_from_;  ///< step of a checkpoint
};

ElasticRun::ElasticRun(const std::vector<std::string>& arguments) : app_("triptych") {
  if (arguments.empty() || arguments.front() != "train")
    throw InvalidArgument("--elastic goes with train: triptych launch --elastic -n RANKS train …");
  app_.add_subcommand("train", "", [this](Command& command) {
    options_.add_to(command);
    command.add_flag("--json");
  });
  app_.parse(arguments);
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
  if (next == 0)
    throw InvalidArgument(fmt::format("{} left, and {}", counted(left, "rank"), why_not));
  went_on_from_ = step;
  return {next,
          fmt::format("goes on with {} of {} from step {}", next, counted(ranks, "rank"), step)};
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

/// The exit code of ranks that are not launched again. Prints a document about their failure if
/// they had --json.
int end(const parallel::Launch& request, const parallel::LaunchOutcome& outcome) {
  const auto& arguments = request.arguments;
  if (outcome.exit_code != 0 && std::ranges::find(arguments, "--json") != arguments.end())
    print_error_document(arguments.front(), outcome.exit_code, outcome.verdict);
  return outcome.exit_code;
}

/// Prints the result in one line.
int launch_once(const parallel::Launch& request) {
  const auto outcome = parallel::launch(request);
  say_always(fmt::format("triptych launch: {}\n", outcome.verdict));
  return end(request, outcome);
}

/// Launches until the run has ended and prints one line each time.
int launch_elastic(parallel::Launch request) {
  ElasticRun run(request.arguments);
  while (true) {
    const auto outcome = parallel::launch(request);
    const auto next = run.after(outcome, request.ranks);
    say_always(fmt::format("triptych launch: {}{}{}\n", outcome.verdict,
                           next.text.empty() ? "" : "; ", next.text));
    if (next.ranks == 0) return end(request, outcome);
    request.ranks = next.ranks;
    request.arguments = run.arguments();
  }
}

}  // namespace

void describe_launch(Command& command, Context& context) {
  auto request = std::make_shared<parallel::Launch>();
  auto elastic = std::make_shared<bool>(false);
  command.add_option("-n,--ranks", request->ranks, "number of processes")
      .required()
      .check(allowed_for("--ranks"));
  command.add_flag("--elastic", *elastic,
                   "train: if a rank dies or stalls, continue from the last checkpoint with the "
                   "others");
  command.add_flag("--json", context.json, "print JSON: pass --json on to the command");
  command.add_option("command", request->arguments, "command with its options, such as train")
      .required();
  command.take_rest();
  command.callback([request, elastic, command, &context] {
    auto rest = command.remaining();
    request->arguments.insert(request->arguments.end(), rest.begin(), rest.end());
    if (context.json) request->arguments.emplace_back("--json");
    context.exit_code = *elastic ? launch_elastic(*request) : launch_once(*request);
  });
}

}  // namespace triptych::app
