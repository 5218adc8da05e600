// TIFF files of every layout, written by libtiff itself, for tests of readers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tiffio.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace triptych::test {

struct TiffLayout {
  std::uint32_t width = 37, height = 21;
  int channels = 1;
  int bits = 8;
  int format = SAMPLEFORMAT_UINT;
  int photometric = PHOTOMETRIC_MINISBLACK;
  int compression = COMPRESSION_NONE;
  bool separate = false;
  bool tiled = false;
  std::uint32_t rows = 5;  ///< of a strip, or a tile of 16 x 16
  int extra = EXTRASAMPLE_UNSPECIFIED;
  std::string description = {};
  bool thumbnail = false;
};

/// Sample `channel` of the pixel (x, y) on page `page`, below 2^bits.
inline double sample_at(const TiffLayout& layout, std::uint32_t x, std::uint32_t y, int channel,
                        int page = 0) {
  const auto value = x * 7 + y * 13 + static_cast<std::uint32_t>(channel * 50 + page * 3);
  if (layout.format == SAMPLEFORMAT_IEEEFP) return value / 8.0 - 20;
  if (layout.format == SAMPLEFORMAT_INT) return static_cast<int>(value % 100) - 50;
  return layout.bits >= 16 ? value * 57 % 65536 : value % (1U << layout.bits);
}

/// The bytes of one sample at `into`, or its bits for fewer than 8 or 12 of them.
inline void put_sample(std::vector<std::uint8_t>& row, std::size_t index, double value,
                       const TiffLayout& layout) {
  const auto bits = static_cast<std::size_t>(layout.bits);
  const auto put = [&](auto typed) {
    std::memcpy(row.data() + index * sizeof typed, &typed, sizeof typed);
  };
  if (layout.format == SAMPLEFORMAT_IEEEFP) {
    bits == 32 ? put(static_cast<float>(value)) : put(value);
  } else if (bits == 32) {
    put(static_cast<std::uint32_t>(static_cast<std::int64_t>(value)));
  } else if (bits == 16) {
    put(static_cast<std::uint16_t>(static_cast<std::int64_t>(value)));
  } else if (bits == 8) {
    put(static_cast<std::uint8_t>(static_cast<std::int64_t>(value)));
  } else {
    for (std::size_t bit = 0; bit < bits; ++bit) {
      const auto at = index * bits + bit;
      const auto set = static_cast<std::uint32_t>(value) >> (bits - 1 - bit) & 1U;
      row[at / 8] |= static_cast<std::uint8_t>(set << (7 - at % 8));
    }
  }
}

/// A block from (x0, y0) on. Pixels outside the picture are 0.
inline std::vector<std::uint8_t> tiff_block(const TiffLayout& layout, std::uint32_t x0,
                                            std::uint32_t y0, std::uint32_t width,
                                            std::uint32_t height, int plane, int page) {
  const int channels = layout.separate ? 1 : layout.channels;
  const auto row_bytes = (width * static_cast<std::uint32_t>(channels * layout.bits) + 7) / 8;
  std::vector<std::uint8_t> block;
  for (std::uint32_t y = y0; y < y0 + height; ++y) {
    std::vector<std::uint8_t> row(row_bytes);
    for (std::uint32_t x = x0; x < x0 + width && x < layout.width && y < layout.height; ++x) {
      for (int c = 0; c < channels; ++c) {
        const auto index =
            (x - x0) * static_cast<std::uint32_t>(channels) + static_cast<std::uint32_t>(c);
        put_sample(row, index, sample_at(layout, x, y, layout.separate ? plane : c, page), layout);
      }
    }
    block.insert(block.end(), row.begin(), row.end());
  }
  return block;
}

inline void put_tiff_page(TIFF* tiff, const TiffLayout& layout, int page) {
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, layout.width);
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, layout.height);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, layout.channels);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, layout.bits);
  TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, layout.format);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, layout.photometric);
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, layout.compression);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG,
               layout.separate ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG);
  if (layout.thumbnail) TIFFSetField(tiff, TIFFTAG_SUBFILETYPE, FILETYPE_REDUCEDIMAGE);
  const int colours = layout.photometric == PHOTOMETRIC_SEPARATED ? 4
                      : layout.photometric == PHOTOMETRIC_RGB     ? 3
                                                                  : 1;
  if (layout.channels > colours) {
    std::vector<std::uint16_t> kinds(static_cast<std::size_t>(layout.channels - colours),
                                     static_cast<std::uint16_t>(layout.extra));
    TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, static_cast<int>(kinds.size()), kinds.data());
  }
  if (layout.photometric == PHOTOMETRIC_PALETTE) {
    std::vector<std::uint16_t> red(std::size_t{1} << layout.bits), green = red, blue = red;
    for (std::size_t i = 0; i < red.size(); ++i) {
      red[i] = static_cast<std::uint16_t>(i << 8);
      green[i] = static_cast<std::uint16_t>((255 - i) << 8);
      blue[i] = 0x1200;
    }
    TIFFSetField(tiff, TIFFTAG_COLORMAP, red.data(), green.data(), blue.data());
  }
  if (!layout.description.empty() && page == 0) {
    TIFFSetField(tiff, TIFFTAG_IMAGEDESCRIPTION, layout.description.c_str());
  }
  const auto width = layout.tiled ? 16 : layout.width, height = layout.tiled ? 16 : layout.rows;
  if (layout.tiled) {
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, width);
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, height);
  } else {
    TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, height);
  }
  for (int plane = 0; plane < (layout.separate ? layout.channels : 1); ++plane) {
    const auto sample = static_cast<std::uint16_t>(plane);
    for (std::uint32_t y = 0; y < layout.height; y += height) {
      for (std::uint32_t x = 0; x < layout.width; x += width) {
        const auto rows = layout.tiled ? height : std::min(height, layout.height - y);
        auto block = tiff_block(layout, x, y, width, rows, plane, page);
        const auto size = static_cast<tmsize_t>(block.size());
        layout.tiled
            ? TIFFWriteEncodedTile(tiff, TIFFComputeTile(tiff, x, y, 0, sample), block.data(), size)
            : TIFFWriteEncodedStrip(tiff, TIFFComputeStrip(tiff, y, sample), block.data(), size);
      }
    }
  }
  TIFFWriteDirectory(tiff);
}

/// `mode` as TIFFOpen's: "w", with "8" a BigTIFF, with "b" big-endian.
inline void put_tiff(const std::filesystem::path& path, const std::vector<TiffLayout>& pages,
                     const char* mode = "w") {
  TIFFSetWarningHandler(nullptr);  // of the writer's: old kinds of compression are wanted here
  auto* tiff = TIFFOpen(path.c_str(), mode);
  for (std::size_t i = 0; i < pages.size(); ++i) {
    put_tiff_page(tiff, pages[i], static_cast<int>(i));
  }
  TIFFClose(tiff);
}

}  // namespace triptych::test
