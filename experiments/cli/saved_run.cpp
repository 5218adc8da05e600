// SPDX-License-Identifier: Apache-2.0
#include "experiments/cli/saved_run.h"

#include <fmt/format.h>

#include <cstdio>

namespace triptych::cli {

void print_notes(const training::SavedRun& run) {
  for (const auto& note : run.notes) fmt::print(stderr, "NOTE: {}\n", note);
}

training::SavedRun load_noted_run(const std::filesystem::path& folder, bool previous) {
  using enum CheckpointAge;
  auto run = training::load_run(folder, previous ? Previous : Newest);
  print_notes(run);
  return run;
}

}  // namespace triptych::cli
