// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/usage.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>

#include "core/base/nearest_name.h"
#include "experiments/app/message.h"
#include "experiments/app/old_spellings.h"

namespace triptych::app {
namespace {

/// The command that was being read: the deepest one that was named.
const CLI::App& deepest(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : deepest(*parsed.back());
}

std::string full_name(const CLI::App& app) {
  const auto* parent = app.get_parent();
  return (parent == nullptr ? "" : full_name(*parent) + " ") + app.get_name();
}

/// full_name without the program: "lab start".
std::string words_of(const CLI::App& app) {
  const auto name = full_name(app);
  const auto space = name.find(' ');
  return space == std::string::npos ? "" : name.substr(space + 1);
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const auto* option : command.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

/// "unknown option "--step"; did you mean "--steps"?" for the first word that nothing took.
std::string unknown_word(const CLI::App& command, const std::string& word) {
  const bool option = word.starts_with('-');
  const auto names = option ? option_names(command) : command_names(command);
  const auto name = word.substr(0, word.find('='));
  auto present = new_spelling(words_of(command), name);
  if (present.starts_with("--") &&
      std::ranges::count(option_names(command), present.substr(0, present.find(' '))) == 0)
    present.clear();
  const auto hint = [](const std::string& meant) {
    return meant.empty() ? "" : fmt::format("; did you mean \"{}\"?", meant);
  };
  if (names.empty()) return fmt::format("unexpected argument \"{}\"", word) + hint(present);
  if (std::ranges::count(names, name) > 0) {
    return fmt::format("{0} stands before the command; put it behind: {1} {0}", name,
                       full_name(command));
  }
  const auto meant = present.empty() ? nearest_name(name, names) : present;
  const auto text = fmt::format("unknown {} \"{}\"", option ? "option" : "command", word);
  if (!meant.empty()) return text + hint(meant);
  return option ? text : text + fmt::format("; use {}", fmt::join(names, ", "));
}

}  // namespace

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const auto& command = deepest(app);
  const auto unknown = app.remaining(true);
  std::string problem = with_dashes(error.what());
  if (!unknown.empty()) {
    const auto first = std::ranges::find_if(
        unknown, [](const std::string& word) { return word.starts_with('-'); });
    problem = unknown_word(command, first == unknown.end() ? unknown.front() : *first);
  }
  const auto name = full_name(command);
  return fmt::format("{0}: {1}\n{0} --help lists what it takes\n", name, problem);
}

}  // namespace triptych::app
