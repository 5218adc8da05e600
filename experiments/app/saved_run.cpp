// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/saved_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

namespace triptych::app {

void print_note(const std::string& note) {
  if (!note.empty()) fmt::print(stderr, "NOTE: {}\n", note);
}

void print_notes(const training::SavedRun& run) { std::ranges::for_each(run.notes, print_note); }

training::SavedRun load_noted_run(const std::filesystem::path& folder, bool previous) {
  using enum CheckpointAge;
  const auto best = folder / training::kBestFolder;
  if (!previous && training::holds_run(best)) {
    auto run = load_noted_run(best, false);
    print_note(fmt::format(
        "these are the weights of the best evaluation, after epoch {}; {} has the last ones",
        run.epochs.size(), (folder / training::kCheckpointFolder).string()));
    return run;
  }
  const bool last =
      folder.filename() == training::kCheckpointFolder && training::holds_run(folder.parent_path());
  auto run =
      training::load_trained(last ? folder.parent_path() : folder, previous ? Previous : Newest);
  print_notes(run);
  return run;
}

training::RunConfig with_images(const training::SavedRun& run, const std::string& data,
                                const std::string& list) {
  auto config = run.config;
  if (!data.empty()) {
    config.data.source = data;
    config.data.images.clear();
    config.data.masks.clear();
  }
  if (!list.empty()) config.data.list = list;
  validate(config);
  return config;
}

}  // namespace triptych::app
