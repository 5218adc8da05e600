// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/prediction_options.h"

#include "experiments/app/option_rows.h"
#include "experiments/app/saved_run.h"
#include "experiments/training/quantizer.h"

namespace triptych::app {

void PredictionOptions::add_run_to(Command& command) {
  command.add_option("run", weights, "run folder of a training or of triptych quantize").required();
}

void PredictionOptions::add_to(Command& command) {
  command
      .add_option("--threshold", threshold,
                  "probability above which a pixel is of class 1 (default: the likelier class)")
      .check(number_from(0, 1));
  command.add_option("--tta", test_time,
                     "test-time augmentation. flips: mean of predictions in 8 orientations");
  add_run_option(command, "--previous", previous, "use the checkpoint before the newest");
  add_run_option(command, "--tile", tiles.tile,
                 "side of a tile in pixels (0: chosen by the model)");
  add_run_option(command, "--margin", tiles.margin,
                 "overlap of tiles in pixels (-1: a fourth of the tile)");
  add_machine_options(command, machine);
}

training::SavedRun PredictionOptions::load() const { return load_noted_run(weights, previous); }

training::ExecutionConfig PredictionOptions::machine_for(const training::SavedRun& run) const {
  return training::machine_for(run, weights, machine, contract_given);
}

training::SegmenterOptions PredictionOptions::segmenter() const {
  training::SegmenterOptions options = {.test_time = test_time};
  if (threshold) options.threshold = static_cast<float>(*threshold);
  return options;
}

}  // namespace triptych::app
