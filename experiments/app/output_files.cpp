// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/output_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/console.h"
#include "core/base/error.h"
#include "core/io/atomic_file.h"
#include "core/io/input_file.h"
#include "core/io/output_ledger.h"
#include "core/io/sha256.h"
#include "experiments/training/run_folder.h"
#include "systolic/sim/save_file.h"
#include "systolic/sim/wave_files.h"

namespace triptych::app {
namespace {

constexpr std::int64_t kPartBytes = std::int64_t{1} << 20;

/// Returns the SHA-256 of the content.
std::string copy(const InputFile& from, AtomicFile& to) {
  Sha256 hash;
  std::vector<std::byte> part;
  for (std::int64_t at = 0; at < from.size(); at += std::ssize(part)) {
    part.resize(static_cast<std::size_t>(std::min(kPartBytes, from.size() - at)));
    from.read(at, part);
    hash.update(part);
    to.write(part);
  }
  return hash.finish();
}

}  // namespace

void require_writable(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path) || !path.has_filename()) {
    throw IoError(
        fmt::format("cannot write \"{}\": it is a folder; give a file in it", path.string()));
  }
  if (path.has_parent_path()) training::make_folder(path.parent_path());
  require_own_file(path);
  const AtomicFile never_committed(path);
}

WaveFiles::WaveFiles(std::filesystem::path target) : target_(std::move(target)), folder_("waves") {
  require_writable(target_);
  if (!mmu::is_wave_file(target_)) {
    throw InvalidArgument(fmt::format("the option waves \"{}\": its name must end in .fst or .vcd",
                                      target_.string()));
  }
  for (const auto& file : mmu::view_files(target_)) require_writable(file);
}

void WaveFiles::publish() const {
  auto drafts = mmu::view_files(draft());
  drafts.push_back(draft());
  for (const auto& each : drafts) {
    if (!std::filesystem::exists(each)) continue;
    write_own_file(target_.parent_path() / each.filename(),
                   [&](AtomicFile& file) { return copy(InputFile(each), file); });
  }
}

void run_with_waves(const std::optional<WaveFiles>& waves, const std::function<void()>& run) {
  try {
    run();
  } catch (...) {
    try {
      if (waves) waves->publish();
    } catch (const Error& error) {
      say_note(fmt::format("the waves were not written: {}", error.what()));
    }
    throw;
  }
  if (waves) waves->publish();
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
