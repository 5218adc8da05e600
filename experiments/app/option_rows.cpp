// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/option_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <thread>
#include <type_traits>

#include "core/base/error.h"
#include "core/base/list_text.h"
#include "experiments/app/options.h"
#include "experiments/app/unit_text.h"
#include "parallel/comm/mpi_session.h"

namespace triptych::app {
namespace {

using training::Limits;
using training::OptionGroup;
using training::RunOption;
using training::TextValue;
using training::Value;

Option add_text(Command& command, const std::string& name, const TextValue& value,
                const std::string& help) {
  auto option = command.add_text(
      name, [value](const std::string& text) { value.take(text); },
      [value] { return value.text(); }, help);
  return value.type->names == nullptr ? option : option.check(one_of(value.type->names()));
}

/// A list that is one text with commas.
Option add_list(Command& command, const std::string& name, std::vector<std::string>& value,
                const std::string& help) {
  return command.add_text(
      name, [&value](const std::string& text) { value = split_list(text); },
      [&value] { return fmt::format("{}", fmt::join(value, ",")); }, help);
}

Option add_member(Command& command, const RunOption& row, const Value& value,
                  const std::string& help) {
  const std::string name(row.name);
  const auto add = [&]<class T>(const T& member) -> Option {
    if constexpr (std::is_same_v<T, TextValue>) {
      return add_text(command, name, member, help);
    } else if constexpr (std::is_same_v<T, bool*>) {
      return row.turns_off ? command.add_flag_off(name, *member, help)
                           : command.add_flag(name, *member, help);
    } else if constexpr (std::is_same_v<T, std::vector<std::string>*>) {
      return row.comma_list ? add_list(command, name, *member, help)
                            : command.add_option(name, *member, help);
    } else if constexpr (std::is_same_v<T, std::vector<double>*>) {
      throw InvalidArgument(fmt::format("{} has no form on the command line", name));
    } else {
      return command.add_option(name, *member, help);
    }
  };
  return std::visit(add, value);
}

/// A flag and a list without commas show no default.
bool shows_default(const RunOption& row, const Value& value) {
  return row.help_default && !row.comma_list && !std::holds_alternative<bool*>(value);
}

const Limits& limits_of(const RunOption& row) {
  const bool narrower = !std::holds_alternative<std::monostate>(row.given_limits);
  return narrower ? row.given_limits : row.limits;
}

std::optional<Validator> validator_of(const Limits& limits) {
  if (const auto* whole = std::get_if<training::WholeLimits>(&limits)) return within(*whole);
  if (const auto* number = std::get_if<training::NumberLimits>(&limits)) return within(*number);
  return std::nullopt;
}

std::optional<Validator> validator_of(const RunOption& row) {
  auto validator = validator_of(limits_of(row));
  const auto example = unit_example(row.unit);
  if (!validator || example.empty()) return validator;
  validator->problem = [problem = validator->problem, example](const std::string& text) {
    const auto found = problem(text);
    return found.empty() ? found : fmt::format("{}; a unit may follow, as in {}", found, example);
  };
  return validator;
}

const char* heading_of(OptionGroup group) {
  switch (group) {
    case OptionGroup::Arrays:
    case OptionGroup::Data:
    case OptionGroup::Share:
    case OptionGroup::Folds:
      return "Data";
    case OptionGroup::Model:
    case OptionGroup::Freeze:
    case OptionGroup::Preset:
      return "Model";
    case OptionGroup::Learning:
    case OptionGroup::Rate:
      return "Training";
    case OptionGroup::Length:
    case OptionGroup::Steps:
      return "Length of the run";
    case OptionGroup::Evaluation:
      return "Evaluation";
    case OptionGroup::Folder:
    case OptionGroup::Keeping:
      return "Run folder and weights";
    case OptionGroup::Machine:
    case OptionGroup::Backends:
    case OptionGroup::Choice:
    case OptionGroup::Graph:
    case OptionGroup::Simulation:
    case OptionGroup::Tiling:
      return "Backend";
    case OptionGroup::Ranks:
    case OptionGroup::Replay:
      return "Ranks";
    case OptionGroup::Program:
      return kCommonHeading;
    case OptionGroup::None:
      break;
  }
  return "Options";
}

Option add_option(Command& command, const RunOption& row, const Value& value,
                  const std::string& help) {
  command.begin_group(heading_of(row.group));
  auto option = add_member(command, row, value, help.empty() ? std::string(row.help) : help);
  if (auto validator = validator_of(row)) option.check(std::move(*validator));
  if (row.unit != training::Unit::None) option.in(row.unit);
  if (!row.value.empty()) option.value(row.value);
  if (!shows_default(row, value)) option.without_default();
  if (row.place == training::OptionPlace::OutputFolder) option.output_folder();
  command.begin_group();
  return option;
}

void add_conditions(Option option, const RunOption& row) {
  for (const auto& [other, values, applies] : row.conditions) {
    applies ? option.only_with(std::string(other), values)
            : option.not_with(std::string(other), values);
  }
}

std::optional<Value> value_in(const RunOption& row, const OptionTargets& targets) {
  const auto value = [](const auto& member, auto* target) -> std::optional<Value> {
    if (target == nullptr) return std::nullopt;
    return member(*target);
  };
  if (const auto* run = std::get_if<training::RunMember>(&row.member))
    return value(*run, targets.run);
  if (const auto* model = std::get_if<training::ModelMember>(&row.member))
    return value(*model, targets.model);
  if (const auto* machine = std::get_if<training::MachineMember>(&row.member))
    return value(*machine, targets.machine);
  if (const auto* own = std::get_if<training::CommandMember>(&row.member))
    return value(*own, targets.command);
  return std::nullopt;
}

}  // namespace

void add_options(Command& command, const std::vector<OptionGroup>& groups,
                 const OptionTargets& targets) {
  for (const auto& row : training::run_options()) {
    if (row.name.empty() || std::ranges::find(groups, row.group) == groups.end()) continue;
    if (const auto value = value_in(row, targets))
      add_conditions(add_option(command, row, *value, ""), row);
  }
}

Option add_row(Command& command, std::string_view name, const Value& value,
               const std::string& help) {
  return add_option(command, training::run_option(name), value, help);
}

Validator allowed_for(std::string_view name) {
  return validator_of(training::run_option(name)).value();
}

void add_machine_options(Command& command, training::ExecutionConfig& machine) {
  using enum OptionGroup;
  add_options(command, {Machine, Choice, Graph, Simulation}, {.machine = &machine});
}

Option add_energy_option(Command& command, std::string& energy) {
  return command.add_option("--energy", energy,
                            "energy table of the array's actions: 45nm, 7nm or a JSON file");
}

Option add_scales_option(Command& command, std::vector<double>& scales) {
  const auto take = [&scales](const std::string& text) {
    scales.clear();
    for (const auto& word : split_list(text)) {
      const auto scale = read_number(word);
      if (!scale || !(*scale >= 1e-30 && *scale <= 1e30))
        throw InvalidArgument(fmt::format("\"{}\" is no scale; give a number above 0", word));
      scales.push_back(*scale);
    }
    if (scales.size() != 3)
      throw InvalidArgument("give three scales: of x, of the weights, of the results");
  };
  return command
      .add_text(
          "--scales", take, [] { return std::string(); },
          "int8: scales of x, weights and results, which are then int8 (default: int32 results)")
      .only_with("--contract", {"int8"});
}

void refuse_options_of_images(Command& command) {
  std::vector<std::string> names;
  for (const auto& row : training::run_options())
    if (row.for_images) names.emplace_back(row.name);
  command.refuse_with("--input", names);
}

int threads_per_rank(const training::ExecutionConfig& config) {
  const auto& ranks = config.parallel;
  if (ranks.ranks == 1 || config.threads != 0) return config.threads;
  if (ranks.transport == training::Transport::Simulated) return 1;  // measures processor time
  const int here = ranks.transport == training::Transport::Mpi
                       ? parallel::MpiSession::of_process().ranks_on_this_host()
                       : ranks.ranks;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / here);
}

}  // namespace triptych::app
