// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/png_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <span>

#include "core/base/error.h"

namespace triptych::segmentation {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNamed = 5;

std::string skipped_text(const fs::path& folder, std::vector<std::string> names) {
  if (names.empty()) return {};
  std::ranges::sort(names);
  const auto named = std::span(names).first(std::min(names.size(), kNamed));
  const auto more = names.size() - named.size();
  return fmt::format("skipped in \"{}\", because not .png: {}{}", folder.string(),
                     fmt::join(named, ", "), more == 0 ? "" : fmt::format(" and {} more", more));
}

/// Throws IoError for two files of one stem.
void require_distinct(const std::vector<fs::path>& images) {
  const auto twice = std::ranges::adjacent_find(images, {}, &fs::path::stem);
  if (twice == images.end()) return;
  throw IoError(fmt::format("\"{}\" and \"{}\" have the same name; rename one", twice->string(),
                            std::next(twice)->string()));
}

}  // namespace

bool has_png_name(const fs::path& path) {
  auto extension = path.extension().string();
  std::ranges::transform(extension, extension.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  return extension == ".png";
}

fs::path png_of(const fs::path& folder, const std::string& stem) {
  auto usual = folder / (stem + ".png");
  std::error_code ignored;
  if (fs::exists(usual, ignored)) return usual;
  for (const auto* extension : {".PNG", ".Png"}) {
    if (auto path = folder / (stem + extension); fs::exists(path, ignored)) return path;
  }
  return usual;
}

PngFolder list_pngs(const fs::path& folder) {
  PngFolder found;
  std::vector<std::string> others;
  std::error_code error;
  for (fs::directory_iterator item(folder, error), end; !error && item != end;
       item.increment(error)) {
    const auto& path = item->path();
    std::error_code ignored;
    if (path.filename().native().starts_with('.') || item->is_directory(ignored)) continue;
    if (has_png_name(path)) {
      found.images.push_back(path);
    } else {
      others.push_back(path.filename().string());
    }
  }
  if (error) {
    throw IoError(fmt::format("cannot list \"{}\": {}", folder.string(), error.message()));
  }
  std::ranges::sort(found.images, {}, [](const fs::path& path) { return path.stem(); });
  require_distinct(found.images);
  found.skipped = skipped_text(folder, std::move(others));
  if (found.images.empty()) {
    throw IoError(fmt::format("no images in \"{}\": it holds no *.png{}{}", folder.string(),
                              found.skipped.empty() ? "" : "; ", found.skipped));
  }
  return found;
}

}  // namespace triptych::segmentation
