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
  auto run = training::load_trained(folder, previous ? Previous : Newest);
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
