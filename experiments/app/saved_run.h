// Loading of runs by commands. It prints the notes of load_run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/training/run_folder.h"

namespace triptych::app {

/// Says each of the run's notes.
void say_notes(const training::SavedRun& run);

/// training::load_trained with the run's notes said.
training::SavedRun load_noted_run(const std::filesystem::path& folder, bool previous);

/// Images for a command, in place of the run's own. Empty members keep the run's.
struct OtherImages {
  std::string data;    ///< folder with images/ and masks/
  std::string images;  ///< instead of data/images
  std::string masks;
  std::string mask_pattern;
  std::string list;
  std::vector<std::string> inputs;  ///< [NAME=]FILE.npy, of a run on arrays
  std::string target;
  std::string labels;   ///< of these masks, or empty for those of the run
  bool invert = false;  ///< the run's labels with the two classes exchanged

  bool any_folder() const { return !data.empty() || !images.empty() || !inputs.empty(); }
};

/// The configuration of `run` with other images. Its list, its mask pattern and its folds do not
/// apply to other folders. A message reports an ignored list. Mask values keep their meaning unless
/// other labels are given. Throws InvalidArgument when they are not whole.
training::RunConfig with_images(const training::SavedRun& run, const OtherImages& other);

}  // namespace triptych::app
