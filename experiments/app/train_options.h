// The options of `triptych train`, and what they may change when a run goes on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/app/option_rows.h"
#include "experiments/app/options.h"
#include "experiments/training/run_folder.h"

namespace triptych::app {

struct TrainOptions {
  ModelOptions model;
  training::ExecutionConfig machine;
  training::RunConfig run;
  training::CommandConfig command;

  void add_to(Command& command);
  /// Those of model, data, learning, length and evaluation alone: what makes runs on several
  /// machines one experiment. With model.takes_arrays also --input and --target.
  void add_experiment_to(Command& command);
  /// Those of model, data and learning alone: of a training whose rate and length are not its own.
  void add_trial_to(Command& command);
  /// Those of an experiment that is trained several times on one machine, parts of the images
  /// validating in turn: with its length and what is kept, without a share that validates, ranks
  /// and going on.
  void add_repeated_to(Command& command);
  /// The configuration of a new run. Throws InvalidArgument when it is not valid.
  training::RunConfig config() const;
  /// Says on standard error that a new run has generated images, when no others were named.
  void print_unasked_data() const;
  /// The machine of a new run, with the threads of one rank.
  training::ExecutionConfig machine_config() const;
  /// Applies the options to a run that is resumed, by their policies (training/run_options.h).
  /// Throws InvalidArgument for options that would make it another run.
  void apply_to(training::SavedRun& saved) const;
  /// Applies the options of the machine and its ranks alone.
  void apply_to(training::ExecutionConfig& saved) const;
  /// The command line that goes on with the run in `folder` as this one would, on any number of
  /// ranks.
  std::vector<std::string> resumption(const std::string& folder) const;

 private:
  void add_groups(Command& command, const std::vector<training::OptionGroup>& groups);
  /// Over MPI the ranks are the processes that were started.
  void take_processes(training::ParallelConfig& config) const;
  /// Where the images are, whatever folder a later command is given in.
  training::DataConfig data() const;
  /// The files of --input in the order of the network's inputs.
  void set_inputs(training::RunConfig& config) const;
  std::vector<std::string> given_names() const;
  /// False for an option that the command lacks, too.
  bool given(std::string_view option) const;
  /// Refuses a share for validation when the list says what validates.
  void require_share_applies(const training::DataConfig& data) const;
  /// Replaces epochs and steps by those that were given.
  void set_length(training::RunConfig& config) const;

  Command app_;
  bool takes_share_ = true;  ///< the command has --validation
};

/// Throws UnsupportedError for a model that makes no map of classes, of which `command` judges.
void require_maps(const training::RunConfig& config, std::string_view command);

}  // namespace triptych::app
