// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/parts.h"

#include <string>

#include "core/base/missing_part.h"

namespace triptych::app {

Command add_absent_command(Command& parent, const CommandText& text, std::string_view part) {
  auto command = parent.add_subcommand(text.name, std::string(text.help) + " (part \"" +
                                                      std::string(part) + "\", not in this build)");
  command.take_all();
  command.callback([part] { throw_missing_part(part); });
  return command;
}

}  // namespace triptych::app
