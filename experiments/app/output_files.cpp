// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/output_files.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/io/atomic_file.h"
#include "core/io/own_files.h"
#include "experiments/training/run_folder.h"
#include "systolic/sim/save_file.h"
#include "systolic/sim/wave_files.h"

namespace triptych::app {

void require_writable(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path) || !path.has_filename()) {
    throw IoError(
        fmt::format("cannot write \"{}\": it is a folder; give a file in it", path.string()));
  }
  if (path.has_parent_path()) training::make_folder(path.parent_path());
  require_own_file(path);
  const AtomicFile never_committed(path);
}

void require_writable_waves(const std::filesystem::path& waves) {
  if (!mmu::is_wave_file(waves)) {
    throw InvalidArgument(
        fmt::format("the option waves \"{}\": its name must end in .fst or .vcd", waves.string()));
  }
  require_writable(waves);
  for (const auto& file : mmu::view_files(waves)) require_writable(file);
}

void adopt_waves(const std::filesystem::path& waves) {
  OwnFiles own(waves.parent_path());
  own.adopt(waves.filename());
  for (const auto& file : mmu::view_files(waves)) own.adopt(file.filename());
}

void require_outside(const std::filesystem::path& out, const std::filesystem::path& input) {
  if (out.empty() || input.empty()) return;
  const auto whole = [](const std::filesystem::path& path) {
    const auto full = std::filesystem::weakly_canonical(std::filesystem::absolute(path));
    return full.has_filename() ? full : full.parent_path();
  };
  const auto inner = whole(out), outer = whole(input);
  if (std::ranges::mismatch(outer, inner).in1 != outer.end()) return;
  throw InvalidArgument(
      fmt::format("\"{}\" {} \"{}\", which is read and never overwritten; choose another --out",
                  out.string(), inner == outer ? "is" : "lies in", input.string()));
}

void require_outside(const std::filesystem::path& out, const training::DataConfig& data) {
  if (data.source != "synthetic") require_outside(out, std::filesystem::path(data.source));
  for (const auto& input : {data.images, data.masks, data.list})
    require_outside(out, std::filesystem::path(input));
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

}  // namespace triptych::app
