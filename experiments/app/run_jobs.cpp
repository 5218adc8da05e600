// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/run_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string_view>

#include "core/base/console.h"
#include "core/base/error.h"
#include "core/base/list_text.h"
#include "core/io/output_ledger.h"
#include "core/io/picture.h"
#include "experiments/app/message.h"
#include "experiments/training/data/picture_files.h"

namespace triptych::app {

namespace fs = std::filesystem;
using training::PictureFormat;
using training::PredictionFile;

namespace {

/// The sections of the images, or with `stack` each stack as a whole. A broken file counts as one
/// section, which reports the problem later.
std::vector<Job> jobs_for(const std::vector<fs::path>& inputs, bool stack) {
  std::vector<Job> jobs;
  for (const auto& input : inputs) {
    std::int64_t pages = 1;
    try {
      pages = PictureFile(input).pages();
    } catch (const IoError&) {
    }
    if (stack && pages > 1) {
      jobs.push_back({input, 0, pages, true});
      continue;
    }
    for (std::int64_t page = 0; page < pages; ++page) jobs.push_back({input, page, pages});
  }
  return jobs;
}

/// Endings of files that are no folder's name, and that this command does not write.
constexpr std::array<std::string_view, 12> kOtherFiles = {".jpg",  ".jpeg", ".bmp", ".gif",
                                                          ".webp", ".jp2",  ".npy", ".npz",
                                                          ".pdf",  ".svg",  ".csv", ".json"};

/// Paths of the files of `job`: in the folder `out`, or next to the file `out`.
std::vector<fs::path> outputs_of(const Job& job, const fs::path& out, bool names_file,
                                 const std::vector<PredictionFile>& kinds, PictureFormat format) {
  const auto input_stem = job.input.stem().string();
  const auto name_in_folder =
      job.section() ? segmentation::section_name(input_stem, job.page, job.pages) : input_stem;
  const auto stem = names_file ? out.parent_path() / out.stem() : out / name_in_folder;
  std::vector<fs::path> outputs;
  for (const auto kind : kinds) {
    auto name = stem;
    name += training::ending_of(kind, format);
    outputs.push_back(kind == PredictionFile::Mask && names_file ? out : name);
  }
  return outputs;
}

}  // namespace

std::string Job::name() const {
  return section() ? fmt::format("{} section {}", input.filename().string(), page)
                   : input.filename().string();
}

std::vector<PredictionFile> kinds_in(const std::string& text) {
  std::vector<PredictionFile> kinds;
  for (const auto& word : split_list(text)) {
    const auto kind = value_of<PredictionFile>(word);
    if (std::ranges::count(kinds, kind) == 0) kinds.push_back(kind);
  }
  return kinds;
}

std::vector<fs::path> input_files(const std::vector<std::string>& inputs) {
  std::vector<fs::path> files;
  for (const fs::path input : inputs) {
    if (!fs::exists(input)) throw IoError(fmt::format("{} does not exist", input.string()));
    if (!fs::is_directory(input)) {
      files.push_back(input);
      continue;
    }
    const auto found = segmentation::list_pictures(input);
    say_note(found.skipped);
    files.insert(files.end(), found.images.begin(), found.images.end());
  }
  std::ranges::for_each(files, keep_input);
  return files;
}

std::optional<PictureFormat> format_named(const fs::path& out) {
  if (fs::is_directory(out)) return std::nullopt;
  auto ending = out.extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (ending == ".png") return PictureFormat::Png;
  if (ending == ".tif" || ending == ".tiff") return PictureFormat::Tiff;
  if (std::ranges::count(kOtherFiles, ending) == 0) return std::nullopt;
  throw InvalidArgument(
      fmt::format("--out \"{}\" names a file of a kind that is not written; give FILE.png or "
                  "FILE.tif, beside which .npy files are named, or a folder",
                  out.string()));
}

std::vector<Job> jobs_of(const std::vector<fs::path>& inputs, const fs::path& out,
                         const OutputKinds& kinds) {
  const bool names_file = format_named(out).has_value();
  auto jobs = jobs_for(inputs, kinds.stack);
  if (names_file && jobs.size() > 1) {
    throw InvalidArgument(fmt::format(
        "--out \"{}\" names a file, and there are {} images; give a folder{}", out.string(),
        jobs.size(), inputs.size() == 1 ? ", or --stack for one TIFF of all sections" : ""));
  }
  const OutputLedger own(names_file ? out.parent_path() : out);
  std::map<fs::path, fs::path> input_of;
  for (auto& job : jobs) {
    const auto& input = job.input;
    job.outputs = outputs_of(job, out, names_file, kinds.files, kinds.format);
    for (const auto& output : job.outputs) {
      own.require(output.filename());
      const auto [other, is_new] = input_of.emplace(output, input);
      if (is_new) continue;
      throw InvalidArgument(
          fmt::format("\"{}\" and \"{}\" would both be written to \"{}\"; run them one after the "
                      "other, each with an --out of its own",
                      other->second.string(), input.string(), output.string()));
    }
  }
  return jobs;
}

void note_sections(const std::vector<Job>& jobs) {
  const auto stack = std::ranges::find_if(jobs, &Job::section);
  if (stack == jobs.end()) return;
  const auto stem = stack->input.stem().string();
  say_note(fmt::format(
      "\"{}\" has {} sections, each of which gets its own files: {}, {} and so on; give --stack "
      "--format tiff for one file",
      stack->input.string(), stack->pages, segmentation::section_name(stem, 0, stack->pages),
      segmentation::section_name(stem, 1, stack->pages)));
}

}  // namespace triptych::app
