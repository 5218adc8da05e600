// Options of the table of a run (training/run_options.h) as options of a command.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/app/command_line.h"
#include "experiments/training/run_options.h"

namespace triptych::app {

/// Variables that options are written to. A command has no options of a part that is null.
struct OptionTargets {
  training::RunConfig* run = nullptr;
  ModelConfig* model = nullptr;
  training::ExecutionConfig* machine = nullptr;
  training::CommandConfig* command = nullptr;
};

/// Adds the options of these groups in the order of the table.
void add_options(Command& command, const std::vector<training::OptionGroup>& groups,
                 const OptionTargets& targets);

/// Adds the option of a row for another variable, with the help of the row or with `help`.
Option add_row(Command& command, std::string_view name, const training::Value& value,
               const std::string& help = "");

/// The same for a variable of any type that options have.
template <class T>
Option add_run_option(Command& command, std::string_view name, T& value,
                      const std::string& help = "") {
  return add_row(command, name, training::value_of_member(value), help);
}

/// Accepts numbers within the limits of the row.
Validator allowed_for(std::string_view name);

/// --backend, --threads, --contract and the others of one machine.
void add_machine_options(Command& command, training::ExecutionConfig& machine);

/// --energy, a name or a file for machines::find_energy_table.
Option add_energy_option(Command& command, std::string& energy);

/// --scales, of int8 operands and results.
Option add_scales_option(Command& command, std::vector<double>& scales);

/// With --input the command refuses options of images, of maps and of presets.
void refuse_options_of_images(Command& command);

/// Threads of each rank: those of the configuration, or the share of a rank in this machine's.
int threads_per_rank(const training::ExecutionConfig& config);

}  // namespace triptych::app
