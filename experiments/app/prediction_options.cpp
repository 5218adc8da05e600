// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/prediction_options.h"

#include "experiments/app/saved_run.h"
#include "experiments/training/quantizer.h"

namespace triptych::app {

Option PredictionOptions::add_weights_to(Command& command) {
  return command.add_option("--weights", weights, "the run folder of a training, or quantised");
}

void PredictionOptions::add_to(Command& command) {
  command
      .add_option("--threshold", threshold,
                  "probability above which a pixel is of class 1; without: the likelier class")
      .check(number_from(0, 1));
  command.add_option("--tta", test_time, "flips: predict in 8 orientations and take the mean")
      .capture_default_str();
  command.add_flag("--previous", previous, "use the checkpoint before the newest");
  command.add_option("--tile", tiles.tile, "side of a tile; 0: chosen by the model")
      .check(within(training::limits::kTile))
      .capture_default_str();
  command.add_option("--margin", tiles.margin, "overlap of tiles; -1: a fourth")
      .check(within(training::limits::kMargin))
      .capture_default_str();
  machine.add_to(command);
}

training::SavedRun PredictionOptions::load() const { return load_noted_run(weights, previous); }

training::ExecutionConfig PredictionOptions::machine_for(const training::SavedRun& run) const {
  return training::machine_for(run, weights, machine.config(), contract_given);
}

training::SegmenterOptions PredictionOptions::segmenter() const {
  training::SegmenterOptions options = {.test_time = test_time};
  if (threshold) options.threshold = static_cast<float>(*threshold);
  return options;
}

}  // namespace triptych::app
