// Pictures of any kind that this program reads (PNG, TIFF, JPEG), identified by their content:
// first their properties, then one page or a rectangle of it. Sizes are bounded before memory is
// allocated, and a broken file is an IoError with its name. Two threads need two objects.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/io/image.h"
#include "core/io/input_file.h"
#include "core/io/orientation.h"

namespace triptych {

/// Form of one page. Alpha is no channel, and is not read.
struct PictureForm {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::int64_t channels = 1;
  int bits = 8;           ///< of a sample: 8, 12, 16 or 32. Fewer than 8 are widened
  bool floating = false;  ///< or signed, of unknown range. Otherwise 0 to full_scale()
  bool colours = false;   ///< its channels are red, green and blue
  bool palette = false;   ///< its colours are those of a TIFF's palette

  std::int64_t pixels() const { return width * height; }
  double full_scale() const;  ///< 1 for floating values
  bool operator==(const PictureForm&) const = default;
};

/// "512 x 512 pixels, 1 channel, 16 bits".
std::string describe(const PictureForm& form);

/// Interleaved samples, row by row. A float holds every integer of up to 24 bits.
struct Picture {
  PictureForm form;
  std::vector<float> samples;
  /// By Palette::Indices: colours that viewers show for the numbers, or empty for greys.
  ColourTable shown = {};
};

/// Tags of a TIFF with the physical size of a pixel and the description.
struct PictureNotes {
  float x_resolution = 0;  ///< pixels in a unit. 0: not said
  float y_resolution = 0;
  int resolution_unit = 2;  ///< 1: none, 2: inch, 3: centimetre
  std::string description = {};
};

struct Rectangle {
  std::int64_t x = 0;
  std::int64_t y = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;
};

struct PictureLimits {
  ImageLimits image;  ///< max_pixels limits one read(), max_side limits every page
  std::int64_t max_pages = 65535;
  std::int64_t max_channels = 5;
  /// Bytes of one decoded tile or strip: the extra memory to read a rectangle of a TIFF.
  std::int64_t max_block_bytes = std::int64_t{1} << 30;
};

/// One kind of file. PictureFile calls it.
class PictureSource {
 public:
  PictureSource() = default;
  PictureSource(const PictureSource&) = delete;
  PictureSource& operator=(const PictureSource&) = delete;
  virtual ~PictureSource() = default;
  virtual std::int64_t pages() const { return 1; }
  virtual const PictureForm& form(std::int64_t page) const = 0;
  virtual PictureNotes notes() const { return {}; }
  virtual int orientation() const { return kAsStored; }
  virtual std::int64_t block_bytes(std::int64_t) const { return 0; }
  /// `part` lies within the page.
  virtual Picture read(std::int64_t page, const Rectangle& part) = 0;
};

class PictureFile {
 public:
  /// Reads headers, no pixels. Throws IoError: missing, of no known kind, damaged or too large.
  explicit PictureFile(std::filesystem::path path, Palette palette = Palette::Colours,
                       const PictureLimits& limits = {});
  PictureFile(const PictureFile&) = delete;
  PictureFile& operator=(const PictureFile&) = delete;

  const std::filesystem::path& path() const { return file_.path(); }
  /// For errors about the content: InputFile::named.
  const InputFile& file() const { return file_; }
  /// Sections of a stack: slices and frames of an OME-TIFF or ImageJ file with all channels in one
  /// page, otherwise the directories of a TIFF, without thumbnails.
  std::int64_t pages() const { return source_->pages(); }
  const PictureForm& form(std::int64_t page = 0) const { return source_->form(page); }
  /// Those of a TIFF's first directory.
  PictureNotes notes() const { return source_->notes(); }
  bool is_tiff() const { return is_tiff_; }
  /// EXIF orientation of a PNG or JPEG. Form and pixels are those that viewers show.
  int orientation() const { return source_->orientation(); }
  /// Memory that reading a rectangle of a TIFF needs besides it: a tile or strip.
  std::int64_t block_bytes(std::int64_t page) const { return source_->block_bytes(page); }
  Picture read(std::int64_t page = 0);
  /// Throws InvalidArgument when `part` is empty or leaves the page.
  Picture read(std::int64_t page, const Rectangle& part);

 private:
  InputFile file_;
  PictureLimits limits_;
  bool is_tiff_ = false;
  std::unique_ptr<PictureSource> source_;
};

/// True when the name ends as those of pictures that can be read, in letters of either case.
bool has_picture_name(const std::filesystem::path& path);

/// The bytes of a TIFF of these pages: uint8, uint16, uint32 or float32 by their forms, deflated,
/// BigTIFF from 2 GiB on. `notes` are those of its first page. Throws InvalidArgument when there is
/// no page or a sample does not fit its form.
std::string encode_tiff(std::span<const Picture> pages, const PictureNotes& notes = {});

/// Replaces `path` atomically with encode_tiff.
void save_tiff(const std::filesystem::path& path, std::span<const Picture> pages,
               const PictureNotes& notes = {});

/// The notes on a picture of `pages` pages of `form` derived from another one of the same size:
/// resolution and description, the pixel sizes of OME and ImageJ, and the new axes.
PictureNotes notes_for(const PictureNotes& of_input, const PictureForm& form, std::int64_t pages);

/// One value per pixel of a picture in colours, as luma(Image) computes it.
std::vector<float> luma(const Picture& picture);

/// Planes [channels, height, width]: integers over full_scale(), floating values as they are.
/// Colours give one by their luma, one channel gives three by repetition. Otherwise throws
/// InvalidArgument unless the picture has `channels`.
std::vector<float> to_planes(Picture picture, std::int64_t channels);

namespace internal {
/// Kinds of files. Messages of their IoErrors name no file. `file` outlives the source.
std::unique_ptr<PictureSource> open_tiff(const InputFile& file, Palette palette,
                                         const PictureLimits& limits);
}  // namespace internal

}  // namespace triptych
