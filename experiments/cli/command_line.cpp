// SPDX-License-Identifier: Apache-2.0
#include "experiments/cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "core/base/error.h"
#include "experiments/cli/usage.h"

namespace triptych::cli {
namespace {

Validator from_library(const CLI::Validator& validator) {
  return {validator.get_description(), validator};
}

}  // namespace

Validator number_from(double low, double high) { return from_library(CLI::Range(low, high)); }

Validator positive_number() { return from_library(CLI::PositiveNumber); }

Validator one_of(std::vector<std::string> words) {
  return from_library(CLI::IsMember(std::move(words)));
}

std::optional<double> read_number(const std::string& text) {
  double value = 0;
  if (!CLI::detail::lexical_cast(text, value)) return std::nullopt;
  return value;
}

Option Option::required() { return Option(option_->required()); }

Option Option::check(Validator validator) {
  return Option(option_->check(std::move(validator.problem), std::move(validator.description)));
}

Option Option::capture_default_str() { return Option(option_->capture_default_str()); }

Option Option::excludes(const std::string& option) { return Option(option_->excludes(option)); }

Option Option::output_file() { return Option(option_->type_name("FILE")); }

Option Option::output_folder() { return Option(option_->type_name("FOLDER")); }

Option Option::list_of(int count) {
  const auto once = CLI::MultiOptionPolicy::Throw;
  return Option(option_->delimiter(',')->expected(count)->multi_option_policy(once));
}

Command Command::add_subcommand(const std::string& name, const std::string& help) {
  return Command(app_->add_subcommand(name, help));
}

template <typename T>
Option Command::add_option(const std::string& name, T& value, const std::string& help) {
  return Option(app_->add_option(name, value, help));
}

template Option Command::add_option(const std::string&, std::string&, const std::string&);
template Option Command::add_option(const std::string&, int&, const std::string&);
template Option Command::add_option(const std::string&, std::int64_t&, const std::string&);
template Option Command::add_option(const std::string&, std::uint64_t&, const std::string&);
template Option Command::add_option(const std::string&, float&, const std::string&);
template Option Command::add_option(const std::string&, double&, const std::string&);
template Option Command::add_option(const std::string&, std::optional<std::int64_t>&,
                                    const std::string&);
template Option Command::add_option(const std::string&, std::vector<std::string>&,
                                    const std::string&);
template Option Command::add_option(const std::string&, std::vector<std::int64_t>&,
                                    const std::string&);

void Command::add_flag(const std::string& name, bool& value, const std::string& help) {
  app_->add_flag(name, value, help);
}

void Command::add_flag(const std::string& name) { app_->add_flag(name); }

void Command::callback(std::function<void()> run) { app_->callback(std::move(run)); }

void Command::require_subcommand() { app_->require_subcommand(1); }

void Command::take_rest() { app_->positionals_at_end()->prefix_command(); }

bool Command::parsed() const { return app_->parsed(); }

std::size_t Command::count(const std::string& option) const { return app_->count(option); }

std::vector<GivenOption> Command::given() const {
  std::vector<GivenOption> given;
  for (auto* option : app_->get_options()) {
    if (option->count() == 0) continue;
    given.push_back({option->get_name(), {}});
    const bool flag = option->get_items_expected_max() == 0;
    if (!flag) given.back().text = option->as<std::string>();
  }
  return given;
}

std::vector<std::string> Command::remaining() const { return app_->remaining(); }

CommandLine::CommandLine(const std::string& name, const std::string& help)
    : Command(new CLI::App(help, name)), owned_(app_) {
  owned_->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

CommandLine::~CommandLine() = default;

void CommandLine::set_version(const std::string& text) {
  owned_->set_version_flag("--version", text);
}

bool CommandLine::run(int argc, char** argv) {
  try {
    if (argc <= 1) throw CLI::CallForHelp();
    owned_->parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    owned_->exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "{}", usage_message(*owned_, error));
    return false;
  }
  return true;
}

void CommandLine::parse(const std::vector<std::string>& arguments) {
  try {
    owned_->parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    throw InvalidArgument(fmt::format("triptych {}: {}", owned_->get_name(), error.what()));
  }
}

}  // namespace triptych::cli
