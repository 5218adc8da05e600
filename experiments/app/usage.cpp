// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/usage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/nearest_name.h"
#include "experiments/app/message.h"
#include "experiments/app/old_spellings.h"
#include "experiments/app/ruled_app.h"
#include "experiments/app/unit_text.h"
#include "experiments/app/value_names.h"

namespace triptych::app {
namespace {

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

std::vector<const CLI::App*> commands_below(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* command : commands_below(app)) names.push_back(command->get_name());
  return names;
}

/// "a, b or c".
std::string alternatives(const std::vector<std::string>& names) {
  if (names.size() < 2) return fmt::format("{}", fmt::join(names, ""));
  const std::vector<std::string> first(names.begin(), names.end() - 1);
  return fmt::format("{} or {}", fmt::join(first, ", "), names.back());
}

/// Paths of the commands that have an option of this name.
std::vector<std::string> commands_with(CLI::App& app, const std::string& option) {
  std::vector<std::string> found;
  for (auto* command : ruled(&app).commands_below()) {
    if (command->get_option_no_throw(option) != nullptr)
      found.push_back(full_name(*command).substr(std::string("triptych ").size()));
    const auto below = commands_with(*command, option);
    found.insert(found.end(), below.begin(), below.end());
  }
  return found;
}

/// The remedy for an option that has no similar name in its command.
std::string place_of(CLI::App& command, const std::string& name) {
  constexpr std::size_t most = 4;
  auto others = commands_with(program_of(command), name);
  if (others.empty()) return {};
  const bool more = others.size() > most;
  if (more) others.resize(most);
  return fmt::format("; it is an option of {}{}", fmt::join(others, ", "), more ? ", …" : "");
}

/// "; did you mean "triptych run RUN"?" for a spelling of earlier versions, if the command has its
/// replacement. Otherwise empty.
std::string renamed(const CLI::App& command, const std::string& name) {
  const auto present = new_spelling(words_of(command), name);
  if (present.empty()) return {};
  if (present.starts_with("--") &&
      std::ranges::count(option_names(command), present.substr(0, present.find(' '))) == 0)
    return {};
  return fmt::format("; did you mean \"{}\"?", present);
}

std::string unknown_option(CLI::App& command, const std::string& word) {
  const auto names = option_names(command);
  const auto name = word.substr(0, word.find('='));
  if (std::ranges::count(names, name) > 0)
    return fmt::format("{0} belongs after the command: {1} {0}", name, full_name(command));
  auto meant = renamed(command, name);
  if (meant.empty()) meant = suggestion(name, names);
  return fmt::format("unknown option \"{}\"{}", word,
                     meant.empty() ? place_of(command, name) : meant);
}

std::string unknown_command(const CLI::App& command, const std::string& word) {
  const auto names = command_names(command);
  if (names.empty())
    return fmt::format("unexpected argument \"{}\"", word) + renamed(command, word);
  const auto meant = suggestion(word, names);
  return fmt::format("unknown command \"{}\"{}", word,
                     meant.empty() ? "; use " + alternatives(names) : meant);
}

/// The word that is wrong among those that nothing took. A command that is missing comes before its
/// options.
std::string unknown_word(CLI::App& command, const std::vector<std::string>& unknown) {
  const auto is_option = [](const std::string& word) { return word.starts_with('-'); };
  const bool wants_command = !commands_below(command).empty();
  if (wants_command && !is_option(unknown.front()))
    return unknown_command(command, unknown.front());
  const auto option = std::ranges::find_if(unknown, is_option);
  return option == unknown.end() ? unknown_command(command, unknown.front())
                                 : unknown_option(command, *option);
}

/// "N" with its range, in words.
std::string description_of(const CLI::App& app, const CLI::Option& option) {
  const auto known = static_cast<const RuledApp&>(app).details.find(option.get_name());
  if (known == static_cast<const RuledApp&>(app).details.end()) return {};
  const auto& details = known->second;
  if (!details.words.empty()) return alternatives(details.words);
  if (details.range.empty()) return {};
  const auto example = unit_example(details.unit);
  return details.range + (example.empty() ? "" : ", or with a unit: " + example);
}

std::string shown_name(const CLI::Option& option) {
  auto name = option.get_name();
  if (!option.get_positional()) return name;
  return upper_case(std::move(name));
}

/// The option that an error of CLI11 begins or ends with.
const CLI::Option* option_of(const CLI::App& command, const std::string& message) {
  const CLI::Option* found = nullptr;
  for (const auto* option : command.get_options()) {
    const auto name = option->get_name();
    const bool named = message.starts_with(name + ":") || message.starts_with(name + " ") ||
                       message.starts_with("Could not convert: " + name + " ");
    if (named) found = option;
  }
  return found;
}

std::string missing_value(const CLI::App& command, const CLI::Option& option) {
  const auto name = shown_name(option);
  const auto value = shown_value(command, option);
  const int wanted = option.get_items_expected_min();
  if (wanted > 1) {
    return fmt::format("{} needs {} values with commas between them, such as {}", name, wanted,
                       option.get_default_str());
  }
  const auto about = description_of(command, option);
  return fmt::format("{} needs a value{}{}", name, value.empty() ? "" : fmt::format(" {}", value),
                     about.empty() ? "" : fmt::format(" ({})", about));
}

/// An option that took the name of another option as its value, as in "--epochs --lr 0.1".
const CLI::Option* option_without_value(const CLI::App& command) {
  for (const auto* option : command.get_options()) {
    if (option->get_positional()) continue;
    for (const auto& text : option->results()) {
      if (text.starts_with('-') && command.get_option_no_throw(text) != nullptr) return option;
    }
  }
  return nullptr;
}

std::string missing_argument(const CLI::App& command, const std::string& message) {
  if (message.starts_with("A subcommand"))
    return fmt::format("a command is missing; use {}", alternatives(command_names(command)));
  const auto* option = option_of(command, message);
  if (option == nullptr) return message;
  const auto name = shown_name(*option);
  if (!option->get_positional()) return fmt::format("{} is required", name);
  const auto about = description_of(command, *option);
  return fmt::format("{} is missing: {}{}", name, option->get_description(),
                     about.empty() ? "" : fmt::format(" ({})", about));
}

std::string wrong_value(const CLI::App& command, const std::string& message) {
  const auto* option = option_of(command, message);
  if (option == nullptr) return message;
  if (option->get_items_expected_max() == 0)
    return fmt::format("{} takes no value", shown_name(*option));
  const auto text = option->results().empty() ? std::string() : option->results().back();
  return fmt::format("{}: must be a number, got \"{}\"", shown_name(*option), text);
}

}  // namespace

std::string problem_of_values(const CLI::App& command) {
  const auto* option = option_without_value(command);
  return option == nullptr ? std::string() : missing_value(command, *option);
}

std::string usage_problem(CLI::App& app, const CLI::ParseError& error) {
  auto& command = deepest(app);
  const auto unknown = app.remaining(true);
  std::string message = error.what();
  const auto is = [&](const char* name) { return error.get_name() == name; };
  // A mistyped command leaves its values to the program, which may take one for a command.
  const auto own = app.remaining(false);
  if (!own.empty() && !own.front().starts_with('-')) return unknown_command(app, own.front());
  if (auto problem = problem_of_values(command); !problem.empty()) return problem;
  if (!unknown.empty()) return unknown_word(command, unknown);
  if (is("RequiredError")) return missing_argument(command, message);
  if (is("ConversionError")) return wrong_value(command, message);
  if (is("ArgumentMismatch")) {
    const auto* option = option_of(command, message);
    if (option == nullptr) return message;
    if (option->get_items_expected_max() == 0) return wrong_value(command, message);
    return missing_value(command, *option);
  }
  // A positional argument is shown as in the help.
  if (const auto* option = option_of(command, message); option != nullptr)
    return with_dashes(shown_name(*option) + message.substr(option->get_name().size()));
  return with_dashes(message);
}

}  // namespace triptych::app
