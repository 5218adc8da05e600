// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/runs_on_data.h"

#include <set>

#include "core/base/error.h"
#include "core/io/output_ledger.h"
#include "experiments/training/run_folder.h"

namespace triptych::training {
namespace {

namespace fs = std::filesystem;

/// Notes the run where the list in `folder` has files of `images`.
void note_in(const fs::path& folder, const fs::path& images, const fs::path& run) {
  try {
    OutputLedger own(folder);
    const auto name = fs::relative(images, folder);
    if (own.lists_any_in(name == "." ? fs::path() : name)) own.note_run(run);
  } catch (const Error&) {
    return;  // a list of somebody else, or a folder that is not to be written to
  }
}

}  // namespace

void note_run_on(const DataConfig& data, const fs::path& run) {
  if (is_synthetic(data) || !data.inputs.empty()) return;
  std::error_code unknown;
  std::set<fs::path> folders;
  for (const auto& images : {images_folder(data), masks_folder(data)}) {
    const auto real = fs::canonical(images, unknown);
    if (unknown) continue;
    folders.insert(real);
  }
  const auto absolute = fs::canonical(run, unknown);
  if (unknown) return;
  for (const auto& images : folders)
    for (const auto& folder : {images, images.parent_path()}) note_in(folder, images, absolute);
}

std::vector<fs::path> runs_on(const fs::path& folder) {
  const OutputLedger own(folder);
  std::vector<fs::path> runs;
  for (const auto& run : own.runs())
    if (holds_run(run)) runs.emplace_back(run);
  return runs;
}

}  // namespace triptych::training
