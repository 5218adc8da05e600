// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "experiments/training/event_file.h"
#include "experiments/training/imported_network.h"
#include "experiments/training/run_folder.h"

namespace triptych::training {
namespace {

namespace fs = std::filesystem;

constexpr std::array kNeeded = {kModelFile, kReportFile, kLossesFile, kMetricsFile, kUpdatesFile};

}  // namespace

std::string run_that_needs(const fs::path& path) {
  std::error_code ignored;
  const auto folder = fs::weakly_canonical(fs::absolute(path).parent_path(), ignored);
  const auto in_run = [](const fs::path& run) {
    return holds_run(run) ? fmt::format("the run in \"{}\"", run.string()) : std::string();
  };
  if (folder.filename() == kCheckpointFolder) return in_run(folder.parent_path());
  const auto name = path.filename().string();
  const bool needed =
      std::ranges::find(kNeeded, name) != kNeeded.end() || name.starts_with(kEventFilePrefix);
  return needed ? in_run(folder) : "";
}

}  // namespace triptych::training
