// The options of `triptych train`, and those that a resumed run may change.
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
  /// The options of model, data, learning, length and evaluation. They define an experiment on
  /// several backends. With model.takes_arrays also --input and --target.
  void add_experiment_to(Command& command);
  /// The options of model, data and learning, for a training that sets its own rate and length.
  void add_trial_to(Command& command);
  /// The options of an experiment that is repeated on one machine, with a different part of the
  /// images for validation each time. They include its length and saved weights. They exclude
  /// --validation, ranks and resumption.
  void add_repeated_to(Command& command);
  /// The configuration of a new run. Throws InvalidArgument when it is not valid.
  training::RunConfig config() const;
  /// Reports on standard error that a new run uses generated images, if the user named no data.
  void print_unasked_data() const;
  /// The machine of a new run, with the threads of one rank.
  training::ExecutionConfig machine_config() const;
  /// Applies the options to a run that is resumed, by their policies (training/run_options.h).
  /// Throws InvalidArgument for options that would make it another run.
  void apply_to(training::SavedRun& saved) const;
  /// Applies the options of the machine and its ranks alone.
  void apply_to(training::ExecutionConfig& saved) const;
  /// The command line that resumes the run in `folder` like this one, on any number of ranks.
  std::vector<std::string> resumption(const std::string& folder) const;

 private:
  void add_groups(Command& command, const std::vector<training::OptionGroup>& groups);
  /// Over MPI the ranks are the processes that were started.
  void take_processes(training::ParallelConfig& config) const;
  /// The folders of images as absolute paths, valid in any current directory.
  training::DataConfig data() const;
  /// The files of --input in the order of the network's inputs.
  void set_inputs(training::RunConfig& config) const;
  std::vector<std::string> given_names() const;
  /// False for an option that the command lacks, too.
  bool given(std::string_view option) const;
  /// Refuses --validation if the list has splits.
  void require_share_applies(const training::DataConfig& data) const;
  /// Replaces epochs and steps by the given ones.
  void set_length(training::RunConfig& config) const;

  Command app_;
  bool takes_share_ = true;  ///< the command has --validation
};

/// Throws UnsupportedError if the model predicts no map of classes, which `command` needs.
void require_maps(const training::RunConfig& config, std::string_view command);

}  // namespace triptych::app
