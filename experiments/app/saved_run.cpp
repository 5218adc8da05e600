// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/saved_run.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/console.h"
#include "experiments/training/data/labels.h"
#include "experiments/training/imported_network.h"
#include "experiments/training/run_arrays.h"

namespace triptych::app {

void say_notes(const training::SavedRun& run) { std::ranges::for_each(run.notes, say_note); }

training::SavedRun load_noted_run(const std::filesystem::path& folder, bool previous) {
  using enum CheckpointAge;
  auto run = training::load_trained(folder, previous ? Previous : Newest);
  say_notes(run);
  return run;
}

namespace {

void set_arrays(training::RunConfig& config, const OtherImages& other) {
  const auto* network = training::imported_network(config.model);
  if (network == nullptr || network->rows().empty())
    throw InvalidArgument("--input is for runs on arrays, and this one is on images: give --data");
  config.data.inputs = training::files_of_inputs(network->model(), other.inputs);
  config.data.target = other.target;
  config.data.sha256.clear();
}

}  // namespace

namespace {

bool same_folders(const training::DataConfig& one, const training::DataConfig& other) {
  std::error_code ignored;
  const auto same = [&](const auto& folder_of) {
    return std::filesystem::equivalent(folder_of(one), folder_of(other), ignored);
  };
  return same(training::images_folder) && same(training::masks_folder);
}

/// Resets the lists of images and masks of the run's own folders, but keeps the meaning of mask
/// values.
void leave_own_folders(training::DataConfig& data, bool say_of_list) {
  if (!data.list.empty() && say_of_list)
    say_note(fmt::format(
        "the run's list \"{}\" is for the run's own images and does not count for these; give one "
        "for them by --list",
        data.list));
  data.list.clear();
  data.mask_pattern.clear();
  data.folds = data.fold = 0;
}

}  // namespace

namespace {

void set_labels(training::DataConfig& data, const OtherImages& other) {
  if (!other.labels.empty()) {
    data.labels = other.labels;
    data.palette.clear();  // of the values of the training's masks
    data.invert = false;
  } else if (other.invert && data.labels.empty()) {
    data.invert = !data.invert;
  } else if (other.invert) {
    data.labels = segmentation::exchanged_labels(data.labels);
  }
}

}  // namespace

training::RunConfig with_images(const training::SavedRun& run, const OtherImages& other) {
  if (other.data.empty() && other.images.empty() != other.masks.empty()) {
    throw InvalidArgument(
        "--images and --masks go together; give both, or one folder with both by --data");
  }
  if (other.data == "synthetic" && !training::is_synthetic(run.config.data)) {
    throw InvalidArgument(
        "--data synthetic is for runs that trained on generated images, and this one's came from "
        "files: give a folder with images/ and masks/");
  }
  auto config = run.config;
  auto& data = config.data;
  if (!other.data.empty()) data.source = other.data;
  if (!other.data.empty() && !data.inputs.empty())
    throw InvalidArgument("the run is on arrays; give others by --input and --target");
  if (other.any_folder()) {
    data.images = other.images;
    data.masks = other.masks;
    if (!same_folders(run.config.data, data)) leave_own_folders(data, other.list.empty());
    // The target of generated images is the dark part of their masks.
    const bool was_generated = config.model.maps && training::is_synthetic(run.config.data);
    if (was_generated && !training::is_synthetic(data)) data.invert = true;
  }
  if (!other.mask_pattern.empty()) data.mask_pattern = other.mask_pattern;
  if (!other.list.empty()) data.list = other.list;
  if (!other.inputs.empty()) set_arrays(config, other);
  set_labels(data, other);
  validate(config);
  return config;
}

}  // namespace triptych::app
