// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/parts.h"

#include <fmt/format.h>

#include "core/base/missing_part.h"

namespace triptych::app {

void describe_absent(Command& command, std::string_view part) {
  command.set_help(fmt::format("{} (part \"{}\", not in this build)", command.help(), part));
  command.take_all();
  command.callback([part] { throw_missing_part(part); });
}

Command add_absent_command(Command& parent, const CommandText& text, std::string_view part) {
  auto command = parent.add_subcommand(text.name, text.help);
  describe_absent(command, part);
  return command;
}

}  // namespace triptych::app
