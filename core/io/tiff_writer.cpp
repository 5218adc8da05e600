// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/io/atomic_file.h"
#include "core/io/picture.h"
#include "core/io/tiff_file.h"

namespace triptych {
namespace {

constexpr std::int64_t kStripBytes = 1 << 18;
constexpr std::int64_t kBigFrom = std::int64_t{1} << 31;

void validate(const Picture& page) {
  const auto& form = page.form;
  const bool typed = form.floating ? form.bits == 32 : form.bits == 8 || form.bits == 16;
  if (form.width < 1 || form.height < 1 || form.channels < 1 || !typed ||
      checked_mul(checked_mul(form.width, form.height), form.channels) !=
          std::ssize(page.samples)) {
    throw InvalidArgument(
        fmt::format("cannot save {} samples as a TIFF of {}", page.samples.size(), describe(form)));
  }
  if (form.floating) return;
  const auto largest = static_cast<float>(form.full_scale());
  for (const auto value : page.samples) {
    if (value >= 0 && value <= largest && value == std::floor(value)) continue;
    throw InvalidArgument(
        fmt::format("a sample is {}, which does not fit {} bits", value, form.bits));
  }
}

void write_tags(TIFF* tiff, const PictureForm& form, std::int64_t rows,
                const std::string& description) {
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, static_cast<std::uint32_t>(form.width));
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, static_cast<std::uint32_t>(form.height));
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, static_cast<int>(form.channels));
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, form.bits);
  TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, form.floating ? SAMPLEFORMAT_IEEEFP : SAMPLEFORMAT_UINT);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
  const bool colours = form.channels == 3 && !form.floating;
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, colours ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK);
  if (!colours && form.channels > 1) {
    const std::vector<std::uint16_t> kinds(static_cast<std::size_t>(form.channels - 1),
                                           EXTRASAMPLE_UNSPECIFIED);
    TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, static_cast<int>(kinds.size()), kinds.data());
  }
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, COMPRESSION_ADOBE_DEFLATE);
  TIFFSetField(tiff, TIFFTAG_PREDICTOR,
               form.floating ? PREDICTOR_FLOATINGPOINT : PREDICTOR_HORIZONTAL);
  TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, static_cast<std::uint32_t>(rows));
  if (!description.empty()) TIFFSetField(tiff, TIFFTAG_IMAGEDESCRIPTION, description.c_str());
}

/// `count` samples from `from` on as the file holds them.
std::vector<std::byte> narrowed(const float* from, std::int64_t count, const PictureForm& form) {
  const auto size = static_cast<std::size_t>(count);
  std::vector<std::byte> bytes(size * static_cast<std::size_t>(form.bits / 8));
  if (form.floating) {
    std::memcpy(bytes.data(), from, bytes.size());
  } else if (form.bits == 16) {
    auto* into = reinterpret_cast<std::uint16_t*>(bytes.data());
    std::transform(from, from + size, into, [](float v) { return static_cast<std::uint16_t>(v); });
  } else {
    std::transform(from, from + size, bytes.data(),
                   [](float v) { return static_cast<std::byte>(static_cast<std::uint8_t>(v)); });
  }
  return bytes;
}

void write_page(internal::TiffFile& tiff, const Picture& page, const std::string& description) {
  const auto& form = page.form;
  const auto row = form.width * form.channels;
  const auto rows = std::clamp<std::int64_t>(kStripBytes / (row * form.bits / 8), 1, form.height);
  write_tags(tiff.get(), form, rows, description);
  for (std::int64_t y = 0; y < form.height; y += rows) {
    const auto count = row * std::min(rows, form.height - y);
    auto bytes = narrowed(page.samples.data() + y * row, count, form);
    const auto size = static_cast<tmsize_t>(bytes.size());
    tiff.require(TIFFWriteEncodedStrip(tiff.get(), static_cast<std::uint32_t>(y / rows),
                                       bytes.data(), size) == size);
  }
  tiff.require(TIFFWriteDirectory(tiff.get()) == 1);
}

}  // namespace

std::string encode_tiff(std::span<const Picture> pages, const std::string& description) {
  if (pages.empty()) throw InvalidArgument("a TIFF needs a page");
  std::int64_t bytes = 0;
  for (const auto& page : pages) {
    validate(page);
    bytes += std::ssize(page.samples) * page.form.bits / 8;
  }
  std::string output;
  internal::TiffFile tiff(output, bytes >= kBigFrom);
  for (const auto& page : pages) {
    write_page(tiff, page, &page == pages.data() ? description : std::string());
  }
  tiff.close();
  tiff.require(!tiff.failed());
  return output;
}

void save_tiff(const std::filesystem::path& path, std::span<const Picture> pages,
               const std::string& description) {
  write_file_atomically(path, encode_tiff(pages, description));
}

}  // namespace triptych
