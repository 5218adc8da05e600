// Earlier runs on real GPUs that the repository contains, as
// experiments/studies/rivals/gpu_session.sh wrote them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace triptych::compare {

struct RecordedFigure {
  std::string name;  ///< the command of the run
  double value = 0;
  std::string unit;
};

struct RecordedSession {
  std::string machine, date, commit, file;
  std::vector<RecordedFigure> figures;
};

/// The sessions in gpu-*.json of `folder` that found a GPU, the newest first. None when the folder
/// does not exist. Throws IoError naming a file that is not of that form.
std::vector<RecordedSession> load_recorded(const std::filesystem::path& folder);

/// Their directory in this repository. It may not exist.
std::filesystem::path recorded_folder();

}  // namespace triptych::compare
