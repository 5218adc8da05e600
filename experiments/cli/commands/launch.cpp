// `triptych launch`: another command of the program, on several processes of this machine.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "experiments/cli/commands.h"
#include "experiments/cli/launcher.h"

namespace triptych::cli {

void add_launch_command(CLI::App& app, Context& context) {
  auto request = std::make_shared<Launch>();
  auto* command = app.add_subcommand("launch", "Run a command on several processes");
  command->add_option("-n,--ranks", request->ranks, "processes")
      ->required()
      ->check(whole_from(1, kMaxThreads));
  command->add_option("command", request->arguments, "train and its options")->required();
  command->positionals_at_end();
  command->prefix_command();
  command->callback([request, command, &context] {
    auto rest = command->remaining();
    request->arguments.insert(request->arguments.end(), rest.begin(), rest.end());
    const auto outcome = launch(*request);
    fmt::print(stderr, "triptych launch: {}\n", outcome.verdict);
    context.exit_code = outcome.exit_code;
  });
}

}  // namespace triptych::cli
