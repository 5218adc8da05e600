// PNG pictures in and out. Every kind of PNG can be read (1 to 16 bits, palette, grey, RGB, alpha,
// interlaced). Sizes are bounded before memory is allocated, and a broken file is an IoError.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace triptych {

/// Colours by number, as a palette has them.
using ColourTable = std::vector<std::array<std::uint16_t, 3>>;

/// Interleaved samples, row by row: grey, grey-alpha, RGB or RGBA by `channels` 1 to 4. Files of
/// fewer than 8 bits are widened to 8 (0 and 255 for one bit). A palette is converted to RGB unless
/// the caller asks for indices.
struct Image {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::int64_t channels = 1;
  int bit_depth = 8;  ///< 8 or 16
  std::vector<std::uint16_t> samples;
  ColourTable palette = {};  ///< with Palette::Indices
  int orientation = 1;       ///< of its EXIF block (orientation.h)

  std::int64_t pixels() const { return width * height; }
  int max_value() const { return bit_depth == 16 ? 65535 : 255; }
};

struct ImageLimits {
  std::int64_t max_file_bytes = std::int64_t{1} << 30;
  std::int64_t max_side = 65536;
  std::int64_t max_pixels = std::int64_t{1} << 28;  ///< 16384 x 16384
  std::int64_t max_chunk_bytes = std::int64_t{1} << 23;
};

/// The meaning of a picture's numbers, where the file says how they are shown.
enum class Palette : std::uint8_t {
  Colours,  ///< brightness: three channels for a palette, inverted for a TIFF in which 0 is white
  Indices,  ///< nothing: numbers as they are stored, of a palette one channel
};

/// Decodes a whole PNG file held in memory. Throws IoError (without a file name).
Image decode_png(std::span<const std::byte> file, const ImageLimits& limits = {},
                 Palette palette = Palette::Colours);

/// Throws IoError naming `path`: missing, empty, not a PNG, truncated, damaged or too large.
Image load_png(const std::filesystem::path& path, const ImageLimits& limits = {},
               Palette palette = Palette::Colours);

/// The bytes of an 8- or 16-bit grey (1 channel) or RGB (3 channels) PNG. Throws InvalidArgument
/// when the image is of another form or its samples do not fit.
std::string encode_png(const Image& image);

/// Replaces `path` atomically with encode_png(image).
void save_png(const std::filesystem::path& path, const Image& image);

/// ITU-R 601 luma of each pixel, alpha ignored: L = (19595 R + 38470 G + 7471 B + 0x8000) >> 16.
std::vector<std::uint16_t> luma(const Image& image);

/// luma over the largest sample value: [height, width] in [0, 1].
std::vector<float> to_gray(const Image& image);

namespace internal {
// Decoders write 8-bit samples as bytes into the last half of the memory of the wide samples, so
// that no second picture is in memory.

/// Allocates `count` samples for `image`, after its size. Throws MemoryLimitError.
void allocate_samples(Image& image, std::size_t count);
/// Where the bytes go: as many as there are samples.
unsigned char* bytes_within(std::vector<std::uint16_t>& samples);
/// Makes the samples of the bytes.
void widen_bytes(std::vector<std::uint16_t>& samples);
}  // namespace internal

}  // namespace triptych
