// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/mapped.h"
#include "core/base/terminal.h"
#include "experiments/app/command_guide.h"
#include "experiments/page/text_table.h"

namespace triptych::app {
namespace {

constexpr std::size_t kUsualColumns = 80, kMostColumns = 100;
constexpr std::size_t kTextColumn = 28;  // where descriptions begin

/// A line of the help: a name, and its description in the second column.
struct Entry {
  std::string name;
  std::string text;
};

std::size_t columns() {
  return std::clamp(output_columns().value_or(kUsualColumns), kTextColumn + 12, kMostColumns);
}

std::string entry_text(const Entry& entry) {
  const auto name = "  " + entry.name;
  const bool fits = page::display_width(name) + 2 <= kTextColumn;
  auto text = page::filled(entry.text, {.indent = kTextColumn, .columns = columns()});
  if (!fits) return name + "\n" + text;
  text.replace(0, page::display_width(name), name);
  return text;
}

std::string section(std::string_view heading, const std::vector<Entry>& entries) {
  if (entries.empty()) return {};
  auto text = fmt::format("\n{}:\n", heading);
  for (const auto& entry : entries) text += entry_text(entry);
  return text;
}

/// "[1 to 8; default 4]", or empty.
std::string facts_of(const KnownOption& option) {
  std::vector<std::string> facts;
  if (option.required) facts.emplace_back("required");
  if (!option.words.empty()) {
    facts.push_back(fmt::format("{}", fmt::join(option.words, ", ")));
  } else if (!option.range.empty()) {
    facts.push_back(option.range);
  }
  if (!option.default_text.empty()) facts.push_back("default " + option.default_text);
  if (option.repeated) facts.emplace_back("may be repeated");
  return facts.empty() ? std::string() : fmt::format("[{}]", fmt::join(facts, "; "));
}

Entry entry_of(const KnownOption& option) {
  const bool positional = !option.name.starts_with("--");
  auto name = option.name;
  if (!option.short_name.empty()) name = option.short_name + ", " + name;
  if (!positional && !option.value.empty()) name += " " + option.value;
  const auto facts = facts_of(option);
  return {std::move(name), option.help + (facts.empty() ? "" : " " + facts)};
}

using Sections = std::vector<std::pair<std::string, std::vector<KnownOption>>>;

/// The options by their headings, those of every command last.
Sections sections_of(const Command& command) {
  Sections sections;
  KnownOption help;
  help.name = "--help";
  help.short_name = "-h";
  help.heading = kCommonHeading;
  help.help = "print this help";
  help.takes_value = false;
  auto options = command.options();
  options.push_back(std::move(help));
  for (auto& option : options) {
    auto place = std::ranges::find(sections, option.heading, &Sections::value_type::first);
    if (place == sections.end()) place = sections.insert(sections.end(), {option.heading, {}});
    place->second.push_back(std::move(option));
  }
  std::stable_partition(sections.begin(), sections.end(),
                        [](const auto& one) { return one.first != kCommonHeading; });
  std::stable_partition(sections.begin(), sections.end(),
                        [](const auto& one) { return one.first == "Options"; });
  return sections;
}

std::string commands_text(const Command& command) {
  const auto below = command.subcommands();
  const auto under = [&](std::string_view heading) {
    std::vector<Entry> entries;
    for (const auto& one : below) {
      const auto* guide = find_guide(one.path());
      const auto own = guide == nullptr ? std::string_view() : guide->heading;
      if (own == heading) entries.push_back({one.name(), one.help()});
    }
    return entries;
  };
  auto text = section("Commands", under(""));
  for (const auto heading : guide_headings()) text += section(heading, under(heading));
  return text;
}

std::string examples_text(const Command& command) {
  const auto* guide = find_guide(command.path());
  if (guide == nullptr || guide->examples.empty()) return {};
  std::string text = "\nExamples:\n";
  for (const auto example : guide->examples) {
    // A shell takes the broken line as one.
    text += page::filled(fmt::format("{}", example),
                         {.indent = 6, .first = 2, .columns = columns() - 2, .line_end = " \\"});
  }
  return text;
}

}  // namespace

std::string usage_line(const Command& command) {
  const auto path = command.path();
  auto line = "triptych" + (path.empty() ? "" : " " + path);
  if (!command.subcommands().empty())
    line += command.needs_subcommand() ? " COMMAND" : " [COMMAND]";
  line += " [OPTIONS]";
  for (const auto& argument : command.positionals()) {
    const auto name = argument.name + (argument.repeated ? "..." : "");
    line += argument.required ? " " + name : fmt::format(" [{}]", name);
  }
  return line;
}

std::string help_text(const Command& command) {
  auto text = page::filled(command.help() + ".", {.columns = columns()});
  text +=
      page::filled("Usage: " + usage_line(command), {.indent = 7, .first = 0, .columns = columns()})
          .insert(0, "\n");
  auto arguments =
      mapped<Entry>(command.positionals(), [](const auto& argument) { return entry_of(argument); });
  text += section("Arguments", arguments);
  text += commands_text(command);
  for (const auto& [heading, options] : sections_of(command)) {
    auto entries = mapped<Entry>(options, [](const auto& option) { return entry_of(option); });
    text += section(heading, entries);
  }
  return text + examples_text(command);
}

namespace {

page::Json option_json(const KnownOption& option) {
  return {{"name", option.name},
          {"short_name", option.short_name},
          {"heading", option.heading},
          {"value", option.value},
          {"values", option.words},
          {"range", option.range},
          {"default", option.default_text},
          {"required", option.required},
          {"repeated", option.repeated},
          {"output", option.output},
          {"help", option.help}};
}

void add_json(const Command& command, page::Json& commands) {
  page::Json arguments = page::Json::array(), options = page::Json::array(),
             examples = page::Json::array(), below = page::Json::array();
  for (const auto& argument : command.positionals()) arguments.push_back(option_json(argument));
  for (const auto& [heading, list] : sections_of(command))
    for (const auto& option : list) options.push_back(option_json(option));
  const auto* guide = find_guide(command.path());
  if (guide != nullptr)
    for (const auto example : guide->examples) examples.push_back(std::string(example));
  for (const auto& one : command.subcommands()) below.push_back(one.name());
  commands.push_back({{"path", command.path()},
                      {"help", command.help()},
                      {"heading", guide == nullptr ? "" : std::string(guide->heading)},
                      {"usage", usage_line(command)},
                      {"needs_command", command.needs_subcommand()},
                      {"commands", std::move(below)},
                      {"arguments", std::move(arguments)},
                      {"options", std::move(options)},
                      {"examples", std::move(examples)}});
  for (const auto& one : command.subcommands()) add_json(one, commands);
}

}  // namespace

page::Json help_json(const Command& command) {
  auto commands = page::Json::array();
  add_json(command, commands);
  return commands;
}

}  // namespace triptych::app
