// SPDX-License-Identifier: Apache-2.0
#include "experiments/cli/output_files.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/io/atomic_file.h"
#include "experiments/training/run_folder.h"

namespace triptych::cli {

void require_writable(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path) || !path.has_filename()) {
    throw IoError(
        fmt::format("cannot write \"{}\": it is a folder; give a file in it", path.string()));
  }
  if (path.has_parent_path()) training::make_folder(path.parent_path());
  const AtomicFile never_committed(path);
}

PageFiles page_files(const std::string& out) {
  PageFiles files = {out, out};
  files.numbers.replace_extension(".json");
  if (files.page == files.numbers) {
    throw InvalidArgument(
        fmt::format("--out names the page, and its numbers go to \"{}\" beside it; give another "
                    "name, as --out report.html",
                    out));
  }
  require_writable(files.page);
  require_writable(files.numbers);
  return files;
}

}  // namespace triptych::cli
