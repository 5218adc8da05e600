// One directory of a TIFF: place, layout and meaning of its samples.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tiffio.h>

#include <cstdint>
#include <string_view>

#include "core/io/picture.h"
#include "core/io/tiff_file.h"

namespace triptych::internal {

/// Ways from samples of a directory to channels.
enum class Decode : std::uint8_t {
  Samples,   ///< the samples are the channels
  Inverted,  ///< the samples, subtracted from the largest: 0 is white
  Indices,   ///< the indices into a palette are the channel
  Colours,   ///< the colours of a palette are the channels
  Rgba,      ///< libtiff converts another colour space to 8-bit channels
};

struct TiffDirectory {
  toff_t offset = 0;
  std::int64_t number = 0;  ///< its place among all directories of the file
  PictureForm form;
  Decode decode = Decode::Samples;
  std::int64_t samples = 1;  ///< samples per pixel in the file, alpha included
  int stored_bits = 8;
  int format = SAMPLEFORMAT_UINT;
  bool separate = false;  ///< each channel has its own blocks
  bool tiled = false;
  bool white_is_zero = false;  ///< viewers show 0 as white, but the numbers are the data
  std::int64_t block_width = 0;
  std::int64_t block_height = 0;
  std::uint64_t first_byte = 0;  ///< where the pixels begin
  std::uint16_t compression = COMPRESSION_NONE;

  /// Bytes of a row of a block.
  std::int64_t row_bytes() const;
};

template <class T>
T tiff_field(TIFF* tiff, std::uint32_t tag, T otherwise) {
  T value = otherwise;
  return TIFFGetFieldDefaulted(tiff, tag, &value) == 1 ? value : otherwise;
}

/// True for a description by ImageJ or tifffile. Their palettes are for display alone: the numbers
/// are the data.
bool palette_is_display(std::string_view description);

/// The directory at which `file` stands. Throws IoError (without a file name) for unreadable
/// content, and for an unusual orientation, which some programs follow and others do not.
TiffDirectory parse_tiff_directory(const TiffFile& file, Palette palette, bool display_palette,
                                   const PictureLimits& limits);

/// Colours of the numbers of `directory`, at which `file` stands: its palette, or greys with a
/// white 0, or an empty table for other greys.
ColourTable tiff_colours(const TiffFile& file, const TiffDirectory& directory);

}  // namespace triptych::internal
