// SPDX-License-Identifier: Apache-2.0
#include "core/io/tiff_directory.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "core/base/checked_math.h"
#include "core/base/error.h"

namespace triptych::internal {
namespace {

void parse_samples(const TiffFile& file, TiffDirectory& found) {
  auto* tiff = file.get();
  found.samples = tiff_field<std::uint16_t>(tiff, TIFFTAG_SAMPLESPERPIXEL, 1);
  found.stored_bits = tiff_field<std::uint16_t>(tiff, TIFFTAG_BITSPERSAMPLE, 1);
  found.format = tiff_field<std::uint16_t>(tiff, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT);
  if (found.format == SAMPLEFORMAT_VOID) found.format = SAMPLEFORMAT_UINT;
  found.separate = tiff_field<std::uint16_t>(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) ==
                       PLANARCONFIG_SEPARATE &&
                   found.samples > 1;
  found.compression = tiff_field<std::uint16_t>(tiff, TIFFTAG_COMPRESSION, COMPRESSION_NONE);
  if (TIFFIsCODECConfigured(found.compression) == 0) {
    throw IoError(fmt::format("the TIFF is compressed in way {}, which libtiff cannot read here",
                              found.compression));
  }
}

void require_usual_orientation(const TiffFile& file) {
  const auto orientation =
      tiff_field<std::uint16_t>(file.get(), TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
  if (orientation < 2 || orientation > 8) return;
  throw IoError(fmt::format(
      "its tag Orientation is {} ({}), which some programs follow and others ignore; save the "
      "pixels as they are to be seen, with orientation 1",
      orientation, describe_orientation(orientation)));
}

bool has_alpha(const TiffFile& file, const TiffDirectory& found) {
  std::uint16_t extra = 0;
  std::uint16_t* kinds = nullptr;
  return TIFFGetField(file.get(), TIFFTAG_EXTRASAMPLES, &extra, &kinds) == 1 && extra > 0 &&
         kinds != nullptr && extra < found.samples &&
         (kinds[extra - 1] == EXTRASAMPLE_ASSOCALPHA || kinds[extra - 1] == EXTRASAMPLE_UNASSALPHA);
}

void parse_palette(TiffDirectory& found, Palette palette, bool display_palette) {
  const bool colours = palette == Palette::Colours && !display_palette;
  found.decode = colours ? Decode::Colours : Decode::Indices;
  if (!colours) return;
  found.form.channels = 3;
  found.form.bits = 8;
  found.form.colours = found.form.palette = true;
}

void parse_channels(const TiffFile& file, Palette palette, bool display_palette,
                    TiffDirectory& found) {
  auto* tiff = file.get();
  auto& form = found.form;
  form.channels = found.samples - (has_alpha(file, found) ? 1 : 0);
  form.bits = std::max(8, found.stored_bits);
  form.floating = found.format != SAMPLEFORMAT_UINT;
  const auto photometric =
      tiff_field<std::uint16_t>(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
  if (photometric == PHOTOMETRIC_PALETTE) {
    parse_palette(found, palette, display_palette);
  } else if (photometric == PHOTOMETRIC_YCBCR && found.compression == COMPRESSION_JPEG &&
             !found.separate) {
    TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    form.colours = form.channels == 3;
  } else if (photometric == PHOTOMETRIC_RGB) {
    form.colours = form.channels == 3;
  } else if (photometric == PHOTOMETRIC_MINISWHITE) {
    found.white_is_zero = !form.floating && !display_palette;
    if (found.white_is_zero && palette == Palette::Colours) found.decode = Decode::Inverted;
  } else if (photometric != PHOTOMETRIC_MINISBLACK && photometric != PHOTOMETRIC_MASK) {
    found.decode = Decode::Rgba;
    form = {.width = form.width, .height = form.height, .channels = 3, .colours = true};
  }
}

void require_readable(const TiffFile& file, const TiffDirectory& found,
                      const PictureLimits& limits) {
  if (found.form.channels > limits.max_channels || found.samples > limits.max_channels + 1) {
    throw IoError(fmt::format("the TIFF has {} channels, at most {} can be read", found.samples,
                              limits.max_channels));
  }
  if (found.decode == Decode::Rgba) {
    std::array<char, 1024> reason = {};
    if (TIFFRGBAImageOK(file.get(), reason.data()) == 0)
      throw IoError(fmt::format("the TIFF cannot be read: {}", reason.data()));
    return;
  }
  const auto bits = found.stored_bits;
  const bool known = found.format == SAMPLEFORMAT_IEEEFP ? bits == 32 || bits == 64
                     : found.format == SAMPLEFORMAT_INT  ? bits == 8 || bits == 16 || bits == 32
                     : found.format == SAMPLEFORMAT_UINT ? bits >= 1 && (bits <= 16 || bits == 32)
                                                         : false;
  if (!known || (found.decode == Decode::Colours && (bits > 16 || found.samples != 1))) {
    throw IoError(fmt::format(
        "the TIFF has samples of {} bits in format {}; integers of up to 16 or of 32 bits and "
        "floating values of 32 or 64 bits can be read",
        bits, found.format));
  }
}

void parse_blocks(const TiffFile& file, const PictureLimits& limits, TiffDirectory& found) {
  auto* tiff = file.get();
  found.tiled = TIFFIsTiled(tiff) != 0;
  if (found.decode == Decode::Rgba) return;
  if (found.tiled) {
    found.block_width = tiff_field<std::uint32_t>(tiff, TIFFTAG_TILEWIDTH, 0);
    found.block_height = tiff_field<std::uint32_t>(tiff, TIFFTAG_TILELENGTH, 0);
  } else {
    found.block_width = found.form.width;
    found.block_height = std::min<std::int64_t>(
        found.form.height, tiff_field<std::uint32_t>(tiff, TIFFTAG_ROWSPERSTRIP, 0xFFFFFFFF));
  }
  const auto row = found.row_bytes();
  const auto libtiffs = found.tiled ? TIFFTileRowSize(tiff) : TIFFScanlineSize(tiff);
  if (found.block_width < 1 || found.block_height < 1 || libtiffs != row)
    throw IoError("the TIFF cannot be read: its blocks are not of the size of its pixels");
  if (checked_mul(row, found.block_height) > limits.max_block_bytes) {
    throw IoError(fmt::format(
        "the TIFF has {} of {} bytes, the limit is {}; store it in smaller ones",
        found.tiled ? "tiles" : "strips", row * found.block_height, limits.max_block_bytes));
  }
  const std::uint64_t* offsets = nullptr;
  const auto tag = found.tiled ? TIFFTAG_TILEOFFSETS : TIFFTAG_STRIPOFFSETS;
  if (TIFFGetField(tiff, tag, &offsets) == 1 && offsets != nullptr) found.first_byte = offsets[0];
}

/// Some writers fill 16-bit tables with 8-bit values.
bool holds_bytes(std::span<const std::uint16_t> table) {
  return std::ranges::all_of(table, [](std::uint16_t value) { return value < 256; });
}

}  // namespace

std::int64_t TiffDirectory::row_bytes() const {
  return ceil_div(block_width * (separate ? 1 : samples) * stored_bits, 8);
}

bool palette_is_display(std::string_view description) {
  return description.starts_with("ImageJ=") || description.starts_with("{\"shape\"");
}

TiffDirectory parse_tiff_directory(const TiffFile& file, Palette palette, bool display_palette,
                                   const PictureLimits& limits) {
  auto* tiff = file.get();
  TiffDirectory found;
  found.offset = TIFFCurrentDirOffset(tiff);
  auto& form = found.form;
  form.width = tiff_field<std::uint32_t>(tiff, TIFFTAG_IMAGEWIDTH, 0);
  form.height = tiff_field<std::uint32_t>(tiff, TIFFTAG_IMAGELENGTH, 0);
  if (form.width < 1 || form.height < 1) throw IoError("the TIFF has no pixels");
  if (std::max(form.width, form.height) > limits.image.max_side) {
    throw IoError(fmt::format("the picture has {} x {} pixels, the limit is {} a side", form.width,
                              form.height, limits.image.max_side));
  }
  parse_samples(file, found);
  require_usual_orientation(file);
  parse_channels(file, palette, display_palette, found);
  require_readable(file, found, limits);
  parse_blocks(file, limits, found);
  return found;
}

ColourTable tiff_colours(const TiffFile& file, const TiffDirectory& directory) {
  const bool palette = directory.decode == Decode::Colours || directory.decode == Decode::Indices;
  ColourTable colours;
  if (directory.white_is_zero && directory.stored_bits <= 16) {
    const auto white = static_cast<std::size_t>(directory.form.full_scale());
    for (std::size_t value = 0; value <= white; ++value) {
      const auto grey = static_cast<std::uint16_t>(white - value);
      colours.push_back({grey, grey, grey});
    }
  }
  if (!palette || directory.stored_bits > 16) return colours;
  std::uint16_t* red = nullptr;
  std::uint16_t* green = nullptr;
  std::uint16_t* blue = nullptr;
  file.require(TIFFGetField(file.get(), TIFFTAG_COLORMAP, &red, &green, &blue) == 1);
  const auto size = std::size_t{1} << directory.stored_bits;
  const bool bytes =
      holds_bytes({red, size}) && holds_bytes({green, size}) && holds_bytes({blue, size});
  const int divisor = bytes ? 1 : 256;
  for (std::size_t i = 0; i < size; ++i) {
    const auto eight = [&](const std::uint16_t* table) {
      return static_cast<std::uint16_t>(table[i] / divisor);
    };
    colours.push_back({eight(red), eight(green), eight(blue)});
  }
  return colours;
}

}  // namespace triptych::internal
