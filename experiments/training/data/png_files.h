// PNG files of a folder, whatever the case of their ".png".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace triptych::segmentation {

/// True when the name ends in .png, .PNG or the like.
bool has_png_name(const std::filesystem::path& path);

/// The file STEM.png of `folder`, or STEM.PNG if only that is there.
std::filesystem::path png_of(const std::filesystem::path& folder, const std::string& stem);

struct PngFolder {
  std::vector<std::filesystem::path> images;  ///< in ascending order of their stems
  /// Other files there, but for folders and hidden ones, as a sentence; empty: none.
  std::string skipped;
};

/// Throws IoError when the folder cannot be listed, holds no PNG, or two of one stem.
PngFolder list_pngs(const std::filesystem::path& folder);

}  // namespace triptych::segmentation
