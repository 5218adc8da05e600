// Descriptions of commands for help, completion and documents.
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "experiments/app/command_line.h"
#include "experiments/app/ruled_app.h"
#include "experiments/app/value_names.h"

namespace triptych::app {
namespace {

/// Every command has --help and --json. They follow the other common options.
bool is_common(const std::string& name) { return name == "--help" || name == "--json"; }

KnownOption describe(CLI::App* app, const CLI::Option& option) {
  const auto name = option.get_name();
  const auto& command = ruled(app);
  const auto known = command.details.find(name);
  const auto details = known == command.details.end() ? OptionDetails() : known->second;
  const auto& short_names = option.get_snames();
  return {.name = option.get_positional() ? upper_case(name) : name,
          .short_name = short_names.empty() ? std::string() : "-" + short_names.front(),
          .heading = is_common(name) ? kCommonHeading : option.get_group(),
          .help = option.get_description(),
          .value = shown_value(*app, option),
          .words = details.words,
          .range = details.range,
          .default_text = option.get_default_str(),
          .takes_value = option.get_items_expected_max() > 0,
          .of_numbers = details.of_numbers,
          .required = option.get_required(),
          .repeated = option.get_items_expected_max() > option.get_items_expected_min() ||
                      option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll,
          .output = command.outputs.contains(name),
          .of_program = command.of_program.contains(name)};
}

}  // namespace

std::string Command::name() const { return app_->get_name(); }

std::string Command::path() const {
  const auto* parent = app_->get_parent();
  if (parent == nullptr) return {};
  const auto above = full_name(*parent);
  const auto space = above.find(' ');
  return space == std::string::npos ? app_->get_name()
                                    : above.substr(space + 1) + " " + app_->get_name();
}

std::string Command::help() const { return app_->get_description(); }

void Command::set_help(const std::string& text) { app_->description(text); }

std::vector<KnownOption> Command::options() const {
  std::vector<KnownOption> options;
  for (const auto* option : app_->get_options()) {
    if (option == app_->get_help_ptr() || option->get_positional()) continue;
    options.push_back(describe(app_, *option));
  }
  return options;
}

std::vector<KnownOption> Command::positionals() const {
  std::vector<KnownOption> arguments;
  for (const auto* option : app_->get_options())
    if (option->get_positional()) arguments.push_back(describe(app_, *option));
  return arguments;
}

std::vector<Command> Command::subcommands() const {
  std::vector<Command> commands;
  for (auto* app : ruled(app_).commands_below()) commands.push_back(Command(app));
  return commands;
}

Command Command::program() const { return Command(&program_of(*app_)); }

bool Command::needs_subcommand() const { return app_->get_require_subcommand_min() > 0; }

Command Command::chosen() const { return Command(&deepest(*app_)); }

}  // namespace triptych::app
