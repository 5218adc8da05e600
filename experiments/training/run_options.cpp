// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/run_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "experiments/training/run_option_rows.h"

namespace triptych::training {
namespace {

using enum ResumePolicy;

bool is_given(const ResumeOptions& options, std::string_view name) {
  return !name.empty() && std::ranges::find(options.given, name) != options.given.end();
}

bool is_given(const ResumeOptions& options, const RunOption& option) {
  return is_given(options, option.name) || is_given(options, option.python) ||
         is_given(options, option.replaced_with);
}

/// The value of an option as a message shows it.
std::string shown_text(const RunOption& option, const Value& value) {
  if (option.turns_off) return *std::get<bool*>(value) ? "off" : "on";
  const auto text = text_of(value);
  return text.empty() ? "unset" : text;
}

[[noreturn]] void refuse(const RunOption& option, const std::string& values) {
  throw InvalidArgument(fmt::format(
      "the option {} cannot change{} in a resumed run; leave it out, or start a new run",
      option.name.substr(2), values));
}

/// Throws InvalidArgument when `asked` has another value of a stored option of the machine.
void require_stored(const RunOption& option, ExecutionConfig run, ExecutionConfig asked) {
  const auto own = value_in(option, run), other = value_in(option, asked);
  if (option.resume != Stored || !own || same_value(*own, *other)) return;
  refuse(option,
         fmt::format(" from {} to {}", shown_text(option, *own), shown_text(option, *other)));
}

}  // namespace

std::span<const RunOption> run_options() {
  static const std::vector<RunOption> list = [] {
    auto all = rows::data();
    for (auto part : {rows::learning(), rows::machine()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return list;
}

const RunOption* find_run_option(std::string_view name) {
  for (const auto& option : run_options()) {
    if (option.name.empty()) continue;
    if (option.name == name || option.name.substr(2) == name) return &option;
  }
  return nullptr;
}

const RunOption& run_option(std::string_view name) {
  const auto* found = find_run_option(name);
  TRIPTYCH_ASSERT(found != nullptr);
  return *found;
}

std::int64_t most_of(std::string_view name) {
  return std::get<WholeLimits>(run_option(name).limits).high;
}

std::string_view last_part(std::string_view field) {
  return field.substr(field.find_last_of('.') + 1);
}

std::optional<Value> value_in(const RunOption& option, RunConfig& config) {
  if (const auto* member = std::get_if<RunMember>(&option.member)) return (*member)(config);
  const auto* member = std::get_if<ModelMember>(&option.member);
  return member == nullptr ? std::nullopt : std::optional((*member)(config.model));
}

std::optional<Value> value_in(const RunOption& option, ExecutionConfig& machine) {
  const auto* member = std::get_if<MachineMember>(&option.member);
  return member == nullptr ? std::nullopt : std::optional((*member)(machine));
}

void require_within_limits(const RunConfig& config) {
  auto copy = config;
  for (const auto& option : run_options()) {
    // The model's own validation has limits that depend on the network.
    const auto* member = std::get_if<RunMember>(&option.member);
    if (member != nullptr) require_within(last_part(option.field), option.limits, (*member)(copy));
  }
  const WholeLimits folds = {0, std::max<std::int64_t>(0, config.data.folds - 1)};
  require_within("fold", folds, &copy.data.fold);
}

void apply_on_resume(const ResumeOptions& options, RunConfig& run, ExecutionConfig& machine) {
  for (const auto& name : options.given) TRIPTYCH_ASSERT(find_run_option(name) != nullptr);
  auto asked = options.config;
  for (const auto& option : run_options()) {
    if (!is_given(options, option) || std::holds_alternative<MachineMember>(option.member))
      continue;
    if (option.resume == Stored || option.resume == Refused) refuse(option, "");
    if (const auto value = value_in(option, run)) copy_value(*value_in(option, asked), *value);
  }
  apply_on_resume(options, machine);
}

void apply_on_resume(const ResumeOptions& options, ExecutionConfig& machine) {
  auto asked = options.machine;
  for (const auto& option : run_options()) {
    const auto value = value_in(option, machine);
    if (!value) continue;
    if (is_given(options, option)) require_stored(option, machine, asked);
    if (option.resume != Free && !is_given(options, option)) continue;
    if (option.before_replacing != nullptr) option.before_replacing(machine, asked);
    copy_value(*value_in(option, asked), *value);
  }
}

void require_same_numerics(const ExecutionConfig& run, const ExecutionConfig& other) {
  for (const auto& option : run_options()) require_stored(option, run, other);
}

bool is_run_of(const RunConfig& saved, const RunConfig& asked) {
  RunConfig own = saved, wanted = asked, usual;
  for (const auto& option : run_options()) {
    if (!option.completed) continue;
    const auto value = *value_in(option, wanted);
    if (same_value(value, *value_in(option, usual))) copy_value(value, *value_in(option, own));
  }
  return to_json(own) == to_json(wanted);
}

bool is_per_process(std::string_view field) {
  RunConfig config;
  return std::ranges::any_of(run_options(), [&](const RunOption& option) {
    if (option.ranks != RankPolicy::Own || !value_in(option, config)) return false;
    return field == option.field ||
           (field.starts_with(option.field) && field.substr(option.field.size()).starts_with('.'));
  });
}

}  // namespace triptych::training
