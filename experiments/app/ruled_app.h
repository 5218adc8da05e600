// The class of CLI11 behind the handles of command_line.h. Only the files that compile CLI11
// include this one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "experiments/training/run_options.h"

namespace triptych::app {

using Texts = std::map<std::string, std::string>;

/// An option means something only with, or only without, certain values of one of some others.
struct Rule {
  std::string own;
  std::vector<std::string> others;
  std::vector<std::string> values;
  bool wanted = true;
  bool or_by_default = false;  ///< without values: a default of another does, too
};

/// Facts about an option that CLI11 does not have.
struct OptionDetails {
  std::string value;               ///< metavariable in the help. Empty: value_name()
  std::vector<std::string> words;  ///< all its values. Empty: too many to list
  std::string range;               ///< "1 to 8"
  bool of_numbers = false;
  training::Unit unit = training::Unit::None;
};

/// CLI11's command with rules, which are looked at when all is read and before any callback.
class RuledApp : public CLI::App {
 public:
  RuledApp(const std::string& help, const std::string& name) : CLI::App(help, name) {}
  RuledApp(const std::string& help, const std::string& name, CLI::App* parent)
      : CLI::App(help, name, parent) {}

  std::vector<Rule> rules;
  std::set<std::string> of_program;  ///< options of the program: KnownOption
  std::set<std::string> outputs;     ///< options that say where the command writes
  std::map<std::string, OptionDetails> details;
  /// Option::alone_means: the value, and then those that may follow.
  std::map<std::string, std::vector<std::string>> alone;
  std::string later_with;   ///< with this option the rules are looked at by the command itself
  bool only_reads = false;  ///< calls no callback
  /// Adds the options. Empty: they are there.
  std::function<void()> describe;

  void describe_once() {
    if (const auto add = std::exchange(describe, nullptr)) add();
  }
  /// Each with its options.
  std::vector<CLI::App*> commands_below();

  /// Throws CLI::ValidationError.
  void check_rules(const Texts& defaults) const;

 private:
  bool applies(const Rule& rule, const std::string& other, const Texts& defaults) const;
  void pre_callback() override {
    if (get_parent() != nullptr) return;
    check_parsed();
    if (only_reads) throw CLI::Success();
  }
  void check_parsed() const;
  void keep_inputs() const;
};

inline RuledApp& ruled(CLI::App* app) { return *static_cast<RuledApp*>(app); }

inline CLI::App& program_of(CLI::App& command) {
  auto* parent = command.get_parent();
  return parent == nullptr ? command : program_of(*parent);
}

/// The deepest selected command.
inline CLI::App& deepest(CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : deepest(*parsed.back());
}

/// Metavariable of an option or a positional argument. Empty for a flag.
std::string shown_value(const CLI::App& app, const CLI::Option& option);

/// "triptych bench conv".
std::string full_name(const CLI::App& app);

}  // namespace triptych::app
