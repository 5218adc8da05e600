// Options of `run` and `evaluate` for a trained model: the weights, the device, and the treatment
// of images.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "experiments/app/options.h"
#include "experiments/training/run_folder.h"
#include "experiments/training/segmenter.h"

namespace triptych::app {

struct PredictionOptions {
  training::ExecutionConfig machine;
  std::string weights;  ///< folder of the run
  bool previous = false;
  bool contract_given = false;  ///< set by read()
  training::TileOptions tiles;
  std::optional<double> threshold;
  training::TestTime test_time = training::TestTime::None;

  /// The run, as the command's first argument.
  void add_run_to(Command& command);
  void add_to(Command& command);
  /// Call it when the command line has been read.
  void read(const Command& command) { contract_given = command.count("--contract") > 0; }

  /// The run, with its notes printed.
  training::SavedRun load() const;
  /// The machine's configuration, with the contract that the weights of `run` ask for.
  training::ExecutionConfig machine_for(const training::SavedRun& run) const;
  training::SegmenterOptions segmenter() const;
};

}  // namespace triptych::app
