// Page and learning curves of a training run, from the reports of `train` and `evaluate`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "experiments/page/json.h"

namespace triptych::app {

/// Pictures of validation images: of each result of a document its own, by the image's name.
using RunPictures = std::vector<std::map<std::string, std::string>>;

/// The pictures, as PNG files, that the runs of a document of `train` left in `folder`.
RunPictures run_pictures(const std::filesystem::path& folder, const page::Json& report);

/// One HTML file from the document of `train`, to which with_evaluation() may have added.
std::string run_page(const page::Json& report, const RunPictures& pictures = {});

/// The document, completed from the results of `evaluate --out FOLDER` in `folder`, pictures
/// included. Throws IoError when that holds no evaluation.
page::Json with_evaluation(page::Json report, const std::filesystem::path& folder);

/// The document in the file `path`, of `command`. Throws IoError for another file, and
/// UnsupportedError for one of another schema.
page::Json load_document(const std::filesystem::path& path, const std::string& command);

/// Writes report.json, report.html, loss.svg and quality.svg to a run's folder. A chart without a
/// point is left out.
void write_run_report(const std::filesystem::path& folder, const page::Json& report);

}  // namespace triptych::app
