// Picture files of a folder, of every kind that core/io/picture.h reads, and which image belongs to
// which mask.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/io/picture.h"
#include "experiments/training/data/dataset.h"

namespace triptych::segmentation {

/// True when the name ends in .png, .PNG or the like.
bool has_png_name(const std::filesystem::path& path);

/// The name of a section of a stack: STEM_000, STEM_001, .... STEM when there is but one.
std::string section_name(const std::string& stem, std::int64_t page, std::int64_t pages);

struct PictureFolder {
  std::vector<std::filesystem::path> images;  ///< in ascending order of their stems
  /// Other files there and folders with pictures, except hidden ones, as a sentence. Empty: none.
  std::string skipped;
};

/// Throws IoError when the folder cannot be listed, holds no picture, or two of one stem. A folder
/// in it, `expected`, is not said to be skipped.
PictureFolder list_pictures(const std::filesystem::path& folder,
                            const std::filesystem::path& expected = {});

/// Throws IoError when a section of a stack among the pictures has the name of another of them, as
/// y_001 of y.tif and y_001.png. The pictures are in ascending order of their stems.
void require_distinct_sections(const std::vector<std::filesystem::path>& pictures);

/// One section of an image, and where its mask should be.
struct PicturePair {
  std::string name;  ///< the stem, or for a stack STEM_000, STEM_001, ...
  std::string split;
  std::filesystem::path image;
  std::filesystem::path mask;  ///< empty: there is none
  std::int64_t page = 0;
  std::int64_t pages = 1;  ///< that the image has
};

/// Pairs of `options.images` and `options.masks`, by the list when there is one: a row names an
/// image, all sections of a stack, or one of them. Without a folder of masks no image has one. Adds
/// to `note` which files were skipped. Throws IoError when two pictures have one name, two rows of
/// the list, of any splits, name one picture or section, an image of the list is missing, a header
/// is damaged, or nothing is selected.
std::vector<PicturePair> pair_pictures(const DatasetOptions& options, std::string& note);

/// Reports a picture in `folder` with the name of `image` in another Unicode form (NFC or NFD).
/// Empty if there is none.
std::string other_form_note(const std::filesystem::path& image,
                            const std::filesystem::path& folder);

/// Pictures that are read one section after the other: the last file stays open.
class OpenPicture {
 public:
  explicit OpenPicture(Palette palette) : palette_(palette) {}
  PictureFile& of(const std::filesystem::path& path);

 private:
  Palette palette_;
  std::unique_ptr<PictureFile> file_;
};

}  // namespace triptych::segmentation
