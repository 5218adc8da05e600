// `triptych launch`: another command of the program, on several processes of this machine.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "core/base/speech.h"
#include "experiments/app/commands.h"
#include "experiments/app/elastic.h"
#include "experiments/app/option_rows.h"
#include "parallel/launch/launcher.h"

namespace triptych::app {
namespace {

/// Prints what came of it, in one line.
int launch_once(const parallel::Launch& request) {
  const auto outcome = parallel::launch(request);
  say_always(fmt::format("triptych launch: {}\n", outcome.verdict));
  return outcome.exit_code;
}

/// Launches until the run has ended; one line each time.
int launch_elastic(parallel::Launch request) {
  ElasticRun run(request.arguments);
  while (true) {
    const auto outcome = parallel::launch(request);
    const auto next = run.after(outcome, request.ranks);
    say_always(fmt::format("triptych launch: {}{}{}\n", outcome.verdict,
                           next.text.empty() ? "" : "; ", next.text));
    if (next.ranks == 0) return outcome.exit_code;
    request.ranks = next.ranks;
    request.arguments = run.arguments();
  }
}

}  // namespace

void add_launch_command(Command& app, Context& context) {
  auto request = std::make_shared<parallel::Launch>();
  auto elastic = std::make_shared<bool>(false);
  auto command = app.add_subcommand("launch", "Run a command on several processes");
  command.add_option("-n,--ranks", request->ranks, "processes")
      .required()
      .check(allowed_for("--ranks"));
  command.add_flag("--elastic", *elastic,
                   "train: when a rank dies or stalls, go on from the last checkpoint with those "
                   "that are left");
  command.add_option("command", request->arguments, "train and its options").required();
  command.take_rest();
  command.callback([request, elastic, command, &context] {
    auto rest = command.remaining();
    request->arguments.insert(request->arguments.end(), rest.begin(), rest.end());
    context.exit_code = *elastic ? launch_elastic(*request) : launch_once(*request);
  });
}

}  // namespace triptych::app
