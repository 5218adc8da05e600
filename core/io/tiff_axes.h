// Places of the channels and sections among the directories of a TIFF, as descriptions of OME-TIFF,
// ImageJ and tifffile say.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/picture.h"

namespace triptych::internal {

/// Directories by section. Those of one section are its channels in turn.
using TiffSections = std::vector<std::vector<std::int64_t>>;

/// Sections of a file with the directories of these numbers, of `samples` channels each. Without a
/// description that states axes each directory is a section. Throws IoError when the description
/// does not fit the directories, or places planes in other files.
TiffSections tiff_sections(std::string_view description, std::span<const std::int64_t> numbers,
                           std::int64_t samples);

/// Images behind one directory, as ImageJ and tifffile count them. 0: none but that of the
/// directory.
std::int64_t counted_images(std::string_view description, std::int64_t samples);

/// The description of a picture of `pages` pages of `form`, made of one that `old` describes.
std::string description_for(std::string_view old, const PictureForm& form, std::int64_t pages);

}  // namespace triptych::internal
