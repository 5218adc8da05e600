// `triptych help` and `triptych version`.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/help.h"
#include "core/base/mapped.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/base/console.h"
#include "core/base/error.h"
#include "core/base/nearest_name.h"
#include "experiments/app/commands.h"
#include "experiments/app/output.h"
#include "triptych_version.h"

namespace triptych::app {
namespace {

Command find_below(const Command& command, const std::string& name) {
  const auto below = command.subcommands();
  const auto found = std::ranges::find(below, name, &Command::name);
  if (found != below.end()) return *found;
  auto names = mapped<std::string>(below, [](const auto& one) { return one.name(); });
  throw InvalidArgument(fmt::format("there is no command \"{}\"{}", name, suggestion(name, names)));
}

}  // namespace

void describe_help(Command& command, Context& context) {
  auto path = std::make_shared<std::vector<std::string>>();
  command.add_option("command", *path, "names of the command, such as bench conv");
  command.add_flag("--json", context.json, "print JSON");
  command.callback([command, path, &context] {
    auto subject = command.program();
    for (const auto& name : *path) subject = find_below(subject, name);
    if (context.json) return print_document("help", help_json(subject));
    print_text("{}", help_text(subject));
  });
}

void describe_version(Command& command, Context& context) {
  command.add_flag("--json", context.json, "print JSON");
  command.callback([&context] {
    if (context.json)
      return print_document("version", Json::array({{{"version", kVersion}, {"commit", kCommit}}}));
    print_text("triptych {} ({})\n", kVersion, kCommit);
  });
}

}  // namespace triptych::app
