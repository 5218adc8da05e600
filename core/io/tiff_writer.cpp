// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/io/atomic_file.h"
#include "core/io/picture.h"
#include "core/io/tiff_axes.h"
#include "core/io/tiff_file.h"
#include "core/io/tiff_stream.h"

namespace triptych {
namespace {

constexpr std::int64_t kStripBytes = 1 << 18;
constexpr std::int64_t kBigFrom = std::int64_t{1} << 31;

void validate(const Picture& page) {
  const auto& form = page.form;
  const bool typed = form.bits == 32 || (!form.floating && (form.bits == 8 || form.bits == 16));
  if (form.width < 1 || form.height < 1 || form.channels < 1 || !typed ||
      (form.colours && form.channels != 3) ||
      checked_mul(checked_mul(form.width, form.height), form.channels) !=
          std::ssize(page.samples)) {
    throw InvalidArgument(
        fmt::format("cannot save {} samples as a TIFF of {}", page.samples.size(), describe(form)));
  }
  if (form.floating) return;
  const auto largest = static_cast<float>(form.full_scale());
  for (const auto value : page.samples) {
    const bool fits = form.bits == 32 ? value < largest : value <= largest;  // rounded up to 2^32
    if (value >= 0 && fits && value == std::floor(value)) continue;
    throw InvalidArgument(
        fmt::format("a sample is {}, which does not fit {} bits", value, form.bits));
  }
}

void write_notes(TIFF* tiff, const PictureNotes& notes) {
  if (!notes.description.empty())
    TIFFSetField(tiff, TIFFTAG_IMAGEDESCRIPTION, notes.description.c_str());
  if (notes.x_resolution > 0 && notes.y_resolution > 0) {
    TIFFSetField(tiff, TIFFTAG_XRESOLUTION, static_cast<double>(notes.x_resolution));
    TIFFSetField(tiff, TIFFTAG_YRESOLUTION, static_cast<double>(notes.y_resolution));
    TIFFSetField(tiff, TIFFTAG_RESOLUTIONUNIT, notes.resolution_unit);
  }
}

void write_tags(TIFF* tiff, const PictureForm& form) {
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, static_cast<std::uint32_t>(form.width));
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, static_cast<std::uint32_t>(form.height));
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, static_cast<int>(form.channels));
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, form.bits);
  TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, form.floating ? SAMPLEFORMAT_IEEEFP : SAMPLEFORMAT_UINT);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, form.colours ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK);
  if (!form.colours && form.channels > 1) {
    const std::vector<std::uint16_t> kinds(static_cast<std::size_t>(form.channels - 1),
                                           EXTRASAMPLE_UNSPECIFIED);
    TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, static_cast<int>(kinds.size()), kinds.data());
  }
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, COMPRESSION_ADOBE_DEFLATE);
  TIFFSetField(tiff, TIFFTAG_PREDICTOR,
               form.floating ? PREDICTOR_FLOATINGPOINT : PREDICTOR_HORIZONTAL);
}

/// `count` samples from `from` on as the file holds them.
std::vector<std::byte> narrowed(const float* from, std::int64_t count, const PictureForm& form) {
  const auto size = static_cast<std::size_t>(count);
  std::vector<std::byte> bytes(size * static_cast<std::size_t>(form.bits / 8));
  if (form.floating) {
    std::memcpy(bytes.data(), from, bytes.size());
  } else if (form.bits == 32) {
    auto* into = reinterpret_cast<std::uint32_t*>(bytes.data());
    std::transform(from, from + size, into, [](float v) { return static_cast<std::uint32_t>(v); });
  } else if (form.bits == 16) {
    auto* into = reinterpret_cast<std::uint16_t*>(bytes.data());
    std::transform(from, from + size, into, [](float v) { return static_cast<std::uint16_t>(v); });
  } else {
    std::transform(from, from + size, bytes.data(),
                   [](float v) { return static_cast<std::byte>(static_cast<std::uint8_t>(v)); });
  }
  return bytes;
}

void write_page(internal::TiffFile& tiff, const Picture& page, const PictureNotes& notes) {
  const auto& form = page.form;
  const auto row = form.width * form.channels;
  const auto rows = std::clamp<std::int64_t>(kStripBytes / (row * form.bits / 8), 1, form.height);
  write_tags(tiff.get(), form);
  TIFFSetField(tiff.get(), TIFFTAG_ROWSPERSTRIP, static_cast<std::uint32_t>(rows));
  write_notes(tiff.get(), notes);
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

PictureNotes notes_for(const PictureNotes& of_input, const PictureForm& form, std::int64_t pages) {
  auto notes = of_input;
  notes.description = internal::description_for(of_input.description, form, pages);
  return notes;
}

std::string encode_tiff(std::span<const Picture> pages, const PictureNotes& notes) {
  if (pages.empty()) throw InvalidArgument("a TIFF needs a page");
  std::int64_t bytes = 0;
  for (const auto& page : pages) {
    validate(page);
    bytes += std::ssize(page.samples) * page.form.bits / 8;
  }
  std::string output;
  internal::TiffFile tiff(output, bytes >= kBigFrom);
  for (const auto& page : pages) {
    write_page(tiff, page, &page == pages.data() ? notes : PictureNotes());
  }
  tiff.close();
  tiff.require(!tiff.failed());
  return output;
}

void save_tiff(const std::filesystem::path& path, std::span<const Picture> pages,
               const PictureNotes& notes) {
  write_file_atomically(path, encode_tiff(pages, notes));
}

TiffStream::TiffStream(AtomicFile& file, const PictureForm& form, const PictureNotes& notes)
    : form_(form),
      tiff_(std::make_unique<internal::TiffFile>(
          file, form.pixels() * form.channels * form.bits / 8 >= kBigFrom)) {
  write_tags(tiff_->get(), form_);
  TIFFSetField(tiff_->get(), TIFFTAG_TILEWIDTH, static_cast<std::uint32_t>(kTile));
  TIFFSetField(tiff_->get(), TIFFTAG_TILELENGTH, static_cast<std::uint32_t>(kTile));
  write_notes(tiff_->get(), notes);
}

TiffStream::~TiffStream() = default;

void TiffStream::write_rows(std::span<const float> samples) {
  const auto row = form_.width * form_.channels;
  if (std::ssize(samples) % row != 0 || rows_ + std::ssize(samples) / row > form_.height)
    throw InvalidArgument("these are no rows of the picture");
  while (!samples.empty()) {
    const auto room = kTile * row - std::ssize(waiting_);
    const auto taken = std::min(std::ssize(samples), room);
    waiting_.insert(waiting_.end(), samples.begin(), samples.begin() + taken);
    samples = samples.subspan(static_cast<std::size_t>(taken));
    rows_ += taken / row;
    if (taken == room || rows_ == form_.height) write_tiles();
  }
}

void TiffStream::write_tiles() {
  const auto row = form_.width * form_.channels;
  const auto rows = std::ssize(waiting_) / row;
  const auto top = rows_ - rows;
  std::vector<float> tile;
  for (std::int64_t x = 0; x < form_.width; x += kTile) {
    tile.assign(static_cast<std::size_t>(kTile * kTile * form_.channels), 0.0F);
    const auto count = std::min(kTile, form_.width - x) * form_.channels;
    for (std::int64_t y = 0; y < rows; ++y) {
      const auto from = waiting_.begin() + y * row + x * form_.channels;
      std::copy(from, from + count, tile.begin() + y * kTile * form_.channels);
    }
    auto bytes = narrowed(tile.data(), std::ssize(tile), form_);
    const auto index = TIFFComputeTile(tiff_->get(), static_cast<std::uint32_t>(x),
                                       static_cast<std::uint32_t>(top), 0, 0);
    const auto size = static_cast<tmsize_t>(bytes.size());
    tiff_->require(TIFFWriteEncodedTile(tiff_->get(), index, bytes.data(), size) == size);
  }
  waiting_.clear();
}

std::int64_t TiffStream::finish() {
  if (rows_ != form_.height) throw InvalidArgument("the picture lacks rows");
  tiff_->require(TIFFWriteDirectory(tiff_->get()) == 1);
  tiff_->close();
  tiff_->require(!tiff_->failed());
  return tiff_->size();
}

TiffPages::TiffPages(AtomicFile& file, std::int64_t most_bytes)
    : tiff_(std::make_unique<internal::TiffFile>(file, most_bytes >= kBigFrom)) {}

TiffPages::~TiffPages() = default;

void TiffPages::write(const Picture& page, const PictureNotes& notes) {
  validate(page);
  write_page(*tiff_, page, notes);
  ++pages_;
}

std::int64_t TiffPages::finish() {
  if (pages_ == 0) throw InvalidArgument("a TIFF needs a page");
  tiff_->close();
  tiff_->require(!tiff_->failed());
  return tiff_->size();
}

}  // namespace triptych
