// Places of the channels and sections among the directories of a TIFF, as descriptions of OME-TIFF
// and of ImageJ say.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/picture.h"

namespace triptych::internal {

/// Directories by section; those of one section are its channels in turn.
using TiffSections = std::vector<std::vector<std::int64_t>>;

/// `directories` of `samples` channels each. Without a description of either kind each directory is
/// a section. Throws IoError when the description speaks of another number of directories.
TiffSections tiff_sections(std::string_view description, std::int64_t directories,
                           std::int64_t samples);

/// Images that ImageJ's description counts; 0: none of its own.
std::int64_t imagej_images(std::string_view description);

/// The description of a picture of `pages` pages of `form`, made of one that `old` describes.
std::string description_for(std::string_view old, const PictureForm& form, std::int64_t pages);

}  // namespace triptych::internal
