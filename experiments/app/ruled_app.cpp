// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/ruled_app.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/list_text.h"
#include "core/io/output_ledger.h"
#include "experiments/app/usage.h"
#include "experiments/app/value_names.h"

namespace triptych::app {
namespace {

bool matches(const std::vector<std::string>& values, const std::string& text) {
  for (const auto& part : split_list(text)) {
    for (const auto& value : values) {
      const bool begins =
          value.ends_with('*') && part.starts_with(value.substr(0, value.size() - 1));
      if (begins || part == value) return true;
    }
  }
  return false;
}

}  // namespace

bool RuledApp::applies(const Rule& rule, const std::string& other, const Texts& defaults) const {
  const auto* option = get_option(other);
  const auto known = defaults.find(other);
  if (rule.values.empty()) {
    return option->count() > 0 || (known != defaults.end() && !known->second.empty()) ||
           (rule.or_by_default && !option->get_default_str().empty());
  }
  return matches(rule.values, option->count() > 0       ? option->results().back()
                              : known != defaults.end() ? known->second
                                                        : option->get_default_str());
}

std::vector<CLI::App*> RuledApp::commands_below() {
  auto commands = get_subcommands({});
  for (auto* command : commands) ruled(command).describe_once();
  return commands;
}

void RuledApp::check_rules(const Texts& defaults) const {
  for (const auto& rule : rules) {
    const auto* own = get_option_no_throw(rule.own);  // a list of rules may be several commands'
    if (own == nullptr || own->count() == 0) continue;
    const bool holds = std::ranges::any_of(
        rule.others, [&](const std::string& other) { return applies(rule, other, defaults); });
    if (holds == rule.wanted) continue;
    auto with = fmt::format("{}", fmt::join(rule.others, " or "));
    if (!rule.values.empty()) with += fmt::format(" {}", fmt::join(rule.values, " or "));
    throw CLI::ValidationError(
        rule.own,
        fmt::format(fmt::runtime(rule.wanted ? "applies only with {}; add that, or leave {} out"
                                             : "does not apply with {}; leave {} out"),
                    with, rule.own));
  }
}

/// Each existing file that an option names which is not for output is read: as FILE, NAME=FILE, or
/// one of several with commas between them.
void RuledApp::keep_inputs() const {
  for (const auto* option : get_options()) {
    if (option->count() == 0 || outputs.contains(option->get_name())) continue;
    for (const auto& text : option->results()) {
      keep_input(text);
      for (const auto& part : split_list(text)) {
        keep_input(part);
        keep_input(part.substr(part.find('=') + 1));
      }
    }
  }
}

void RuledApp::check_parsed() const {
  const auto below = get_subcommands();
  for (const auto* option : get_options()) {
    if (below.empty() || option->count() == 0) continue;
    throw CLI::ValidationError(
        option->get_name(),
        fmt::format("belongs after the command {0}: {1} {2}", below.front()->get_name(),
                    full_name(*below.front()), option->get_name()));
  }
  if (const auto problem = problem_of_values(*this); !problem.empty())
    throw CLI::ValidationError(problem);
  if (later_with.empty() || count(later_with) == 0) check_rules({});
  keep_inputs();
  for (auto* app : below) ruled(app).check_parsed();
}

std::string shown_value(const CLI::App& app, const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return {};
  const auto& all = static_cast<const RuledApp&>(app).details;
  const auto known = all.find(option.get_name());
  const auto details = known == all.end() ? OptionDetails() : known->second;
  if (!details.value.empty()) return details.value;
  if (const auto name = value_name(option.get_name()); !name.empty()) return std::string(name);
  if (option.get_positional()) return upper_case(option.get_name());
  if (details.of_numbers) return "N";
  const auto* row = training::find_run_option(option.get_name());
  if (row != nullptr && !row->value.empty()) return std::string(row->value);
  return details.words.empty() ? "TEXT" : "NAME";
}

std::string full_name(const CLI::App& app) {
  const auto* parent = app.get_parent();
  return (parent == nullptr ? "" : full_name(*parent) + " ") + app.get_name();
}

}  // namespace triptych::app
