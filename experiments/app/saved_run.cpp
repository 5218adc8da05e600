// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/saved_run.h"

#include <algorithm>

#include "core/base/speech.h"

namespace triptych::app {

void say_notes(const training::SavedRun& run) { std::ranges::for_each(run.notes, say_note); }

training::SavedRun load_noted_run(const std::filesystem::path& folder, bool previous) {
  using enum CheckpointAge;
  auto run = training::load_trained(folder, previous ? Previous : Newest);
  say_notes(run);
  return run;
}

training::RunConfig with_images(const training::SavedRun& run, const OtherImages& other) {
  if (other.data.empty() && other.images.empty() != other.masks.empty()) {
    throw InvalidArgument(
        "--images and --masks go together; give both, or one folder with both by --data");
  }
  auto config = run.config;
  auto& data = config.data;
  if (!other.data.empty()) data.source = other.data;
  if (other.any_folder()) {
    data.images = other.images;
    data.masks = other.masks;
    data.mask_pattern = other.mask_pattern;
  }
  if (!other.mask_pattern.empty()) data.mask_pattern = other.mask_pattern;
  if (!other.list.empty()) data.list = other.list;
  validate(config);
  return config;
}

}  // namespace triptych::app
