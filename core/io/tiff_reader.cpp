// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "core/io/picture.h"
#include "core/io/tiff_axes.h"
#include "core/io/tiff_directory.h"
#include "core/io/tiff_file.h"

namespace triptych::internal {
namespace {

constexpr std::int64_t kRgbaBytes = 4;

/// Samples of a row of a block, one of `stride` in turn, as floats.
template <class T>
void widen(const std::byte* row, std::int64_t stride, std::int64_t count, float* into,
           std::int64_t step) {
  const auto* values = reinterpret_cast<const T*>(row);
  if (stride == 1 && step == 1) {
    for (std::int64_t i = 0; i < count; ++i) into[i] = static_cast<float>(values[i]);
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) into[i * step] = static_cast<float>(values[i * stride]);
}

/// Sample `index` of a row with `bits` per sample, the highest bit first.
std::uint32_t packed_sample(const std::byte* row, std::int64_t index, int bits) {
  std::uint32_t value = 0;
  for (std::int64_t bit = index * bits; bit < (index + 1) * bits; ++bit) {
    const auto byte = std::to_integer<std::uint32_t>(row[bit / 8]);
    value = value << 1 | (byte >> (7 - bit % 8) & 1U);
  }
  return value;
}

class TiffSource final : public PictureSource {
 public:
  TiffSource(const InputFile& file, Palette palette, const PictureLimits& limits)
      : input_(file), tiff_(file), palette_(palette), limits_(limits) {
    read_directories();
    const auto samples = directories_.front().form.channels;
    repeat_uncounted();
    std::vector<std::int64_t> numbers;
    for (const auto& directory : directories_) numbers.push_back(directory.number);
    sections_ = tiff_sections(description_, numbers, samples);
    for (const auto& section : sections_) forms_.push_back(form_of(section));
  }

  std::int64_t pages() const override { return std::ssize(sections_); }
  const PictureForm& form(std::int64_t page) const override {
    return forms_[static_cast<std::size_t>(page)];
  }

  PictureNotes notes() const override { return notes_; }
  std::int64_t block_bytes(std::int64_t page) const override {
    const auto index = sections_[static_cast<std::size_t>(page)].front();
    const auto& directory = directories_[static_cast<std::size_t>(index)];
    return directory.row_bytes() * directory.block_height;
  }

  Picture read(std::int64_t page, const Rectangle& part) override {
    Picture picture;
    picture.form = form(page);
    picture.form.width = part.width;
    picture.form.height = part.height;
    const auto count = static_cast<std::size_t>(picture.form.pixels() * picture.form.channels);
    memory_budget().require(count * sizeof(float), "the picture");
    picture.samples.resize(count);
    std::int64_t channel = 0;
    for (const auto index : sections_[static_cast<std::size_t>(page)]) {
      const auto& directory = directories_[static_cast<std::size_t>(index)];
      read_directory(directory, part, channel, picture);
      if (channel == 0 && !display_palette_ && palette_ == Palette::Indices)
        picture.shown = tiff_colours(tiff_, directory);
      channel += directory.form.channels;
    }
    return picture;
  }

 private:
  void read_directories() {
    std::int64_t number = -1;
    do {
      ++number;
      std::uint32_t kind = tiff_field<std::uint32_t>(tiff_.get(), TIFFTAG_SUBFILETYPE, 0);
      if ((kind & (FILETYPE_REDUCEDIMAGE | FILETYPE_MASK)) != 0) continue;
      if (std::ssize(directories_) == limits_.max_pages) {
        throw IoError(fmt::format("the TIFF has more than {} pages", limits_.max_pages));
      }
      if (directories_.empty()) {
        const char* text = nullptr;
        if (TIFFGetField(tiff_.get(), TIFFTAG_IMAGEDESCRIPTION, &text) == 1 && text != nullptr) {
          description_ = text;
        }
        display_palette_ = palette_is_display(description_);
        read_notes();
      }
      directories_.push_back(parse_tiff_directory(tiff_, palette_, display_palette_, limits_));
      directories_.back().number = number;
    } while (TIFFReadDirectory(tiff_.get()) == 1);
    tiff_.require(!tiff_.failed());
    if (directories_.empty()) throw IoError("the TIFF holds thumbnails only");
  }

  void read_notes() {
    auto* tiff = tiff_.get();
    notes_.description = description_;
    notes_.x_resolution = tiff_field<float>(tiff, TIFFTAG_XRESOLUTION, 0);
    notes_.y_resolution = tiff_field<float>(tiff, TIFFTAG_YRESOLUTION, 0);
    notes_.resolution_unit = tiff_field<std::uint16_t>(tiff, TIFFTAG_RESOLUTIONUNIT, RESUNIT_INCH);
  }

  /// ImageJ and tifffile store a large stack under one directory that counts its images.
  void repeat_uncounted() {
    const auto images = counted_images(description_, directories_.front().samples);
    if (directories_.size() != 1 || images < 2) return;
    auto& first = directories_.front();
    const auto size = first.row_bytes() * first.form.height;
    const auto end =
        checked_add(static_cast<std::int64_t>(first.first_byte), checked_mul(images, size));
    if (images > limits_.max_pages || first.compression != COMPRESSION_NONE || first.tiled ||
        first.separate || end > input_.size()) {
      throw IoError(
          fmt::format("its description counts {} images in the TIFF, but it holds one", images));
    }
    first.block_height = first.form.height;
    raw_ = true;
    for (std::int64_t i = 1; i < images; ++i) {
      auto next = directories_.front();
      next.first_byte += static_cast<std::uint64_t>(i * size);
      next.number = i;
      directories_.push_back(next);
    }
  }

  PictureForm form_of(const std::vector<std::int64_t>& section) const {
    const auto& first = directories_[static_cast<std::size_t>(section.front())].form;
    for (const auto index : section) {
      const auto& other = directories_[static_cast<std::size_t>(index)].form;
      if (other == first) continue;
      throw IoError(fmt::format("the channels of a section differ: {} and {}", describe(first),
                                describe(other)));
    }
    auto form = first;
    form.channels *= std::ssize(section);
    form.colours = form.colours && section.size() == 1;
    if (form.channels > limits_.max_channels) {
      throw IoError(fmt::format("the TIFF has {} channels, at most {} can be read", form.channels,
                                limits_.max_channels));
    }
    return form;
  }

  void read_directory(const TiffDirectory& directory, const Rectangle& part, std::int64_t channel,
                      Picture& picture) {
    if (raw_) return read_raw(directory, part, channel, picture);
    auto* tiff = tiff_.get();
    tiff_.require(TIFFCurrentDirOffset(tiff) == directory.offset ||
                  TIFFSetSubDirectory(tiff, directory.offset) == 1);
    if (directory.decode == Decode::Rgba) return read_rgba(directory, part, channel, picture);
    if (tiff_field<std::uint16_t>(tiff, TIFFTAG_PHOTOMETRIC, 0) == PHOTOMETRIC_YCBCR) {
      TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    }
    const auto block = static_cast<std::size_t>(directory.row_bytes() * directory.block_height);
    if (block > block_.size()) memory_budget().require(block, "a strip or tile of the TIFF");
    block_.resize(block);
    const auto top = part.y / directory.block_height * directory.block_height;
    const auto left = part.x / directory.block_width * directory.block_width;
    colours_.clear();
    if (directory.decode == Decode::Colours) colours_ = tiff_colours(tiff_, directory);
    const auto planes = directory.separate ? directory.form.channels : 1;
    for (std::int64_t plane = 0; plane < planes; ++plane) {
      for (auto y = top; y < part.y + part.height; y += directory.block_height) {
        for (auto x = left; x < part.x + part.width; x += directory.block_width) {
          read_block(directory, x, y, plane);
          copy_block(directory, {x, y, directory.block_width, directory.block_height}, part,
                     channel + plane, picture);
        }
      }
    }
  }

  void read_block(const TiffDirectory& directory, std::int64_t x, std::int64_t y,
                  std::int64_t plane) {
    auto* tiff = tiff_.get();
    const auto rows = directory.tiled ? directory.block_height
                                      : std::min(directory.block_height, directory.form.height - y);
    const auto wanted = rows * directory.row_bytes();
    const auto column = static_cast<std::uint32_t>(x), row = static_cast<std::uint32_t>(y);
    const auto sample = static_cast<std::uint16_t>(plane);
    const auto got = directory.tiled
                         ? TIFFReadEncodedTile(tiff, TIFFComputeTile(tiff, column, row, 0, sample),
                                               block_.data(), wanted)
                         : TIFFReadEncodedStrip(tiff, TIFFComputeStrip(tiff, row, sample),
                                                block_.data(), wanted);
    tiff_.require(got == wanted && !tiff_.failed());
  }

  /// The samples of `block`, which lie in block_, that belong to `part`, from `channel` on.
  void copy_block(const TiffDirectory& directory, const Rectangle& block, const Rectangle& part,
                  std::int64_t channel, Picture& picture) const {
    const auto x0 = std::max(block.x, part.x),
               x1 = std::min(block.x + block.width, part.x + part.width);
    const auto y0 = std::max(block.y, part.y),
               y1 = std::min(block.y + block.height, part.y + part.height);
    const auto stored = directory.separate ? 1 : directory.samples;
    const auto channels =
        directory.decode == Decode::Colours || directory.separate ? 1 : directory.form.channels;
    const auto step = picture.form.channels;
    for (auto y = y0; y < y1; ++y) {
      const auto* row = block_.data() + (y - block.y) * directory.row_bytes();
      auto* into = picture.samples.data() + ((y - part.y) * part.width + x0 - part.x) * step;
      for (std::int64_t c = 0; c < channels; ++c) {
        copy_row(directory, row, (x0 - block.x) * stored + c, stored, x1 - x0, into + channel + c,
                 step);
      }
    }
  }

  void copy_row(const TiffDirectory& directory, const std::byte* row, std::int64_t first,
                std::int64_t stride, std::int64_t count, float* into, std::int64_t step) const {
    const auto bits = directory.stored_bits;
    const auto* begin = row + first * (bits / 8);
    if (bits % 8 != 0) {
      const auto scale =
          bits < 8 && (directory.decode == Decode::Samples || directory.decode == Decode::Inverted)
              ? 255.0F / static_cast<float>((1 << bits) - 1)
              : 1.0F;
      for (std::int64_t i = 0; i < count; ++i) {
        into[i * step] = scale * static_cast<float>(packed_sample(row, first + i * stride, bits));
      }
    } else if (directory.format == SAMPLEFORMAT_IEEEFP) {
      bits == 32 ? widen<float>(begin, stride, count, into, step)
                 : widen<double>(begin, stride, count, into, step);
    } else if (directory.format == SAMPLEFORMAT_INT) {
      bits == 8    ? widen<std::int8_t>(begin, stride, count, into, step)
      : bits == 16 ? widen<std::int16_t>(begin, stride, count, into, step)
                   : widen<std::int32_t>(begin, stride, count, into, step);
    } else {
      bits == 8    ? widen<std::uint8_t>(begin, stride, count, into, step)
      : bits == 16 ? widen<std::uint16_t>(begin, stride, count, into, step)
                   : widen<std::uint32_t>(begin, stride, count, into, step);
    }
    if (directory.decode == Decode::Inverted) {
      const auto white = static_cast<float>(directory.form.full_scale());
      for (std::int64_t i = 0; i < count; ++i) into[i * step] = white - into[i * step];
    }
    if (directory.decode == Decode::Colours) look_up(colours_, count, into, step);
  }

  static void look_up(const ColourTable& colours, std::int64_t count, float* into,
                      std::int64_t step) {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto& colour = colours[static_cast<std::size_t>(into[i * step])];
      for (std::size_t channel = 0; channel < colour.size(); ++channel)
        into[i * step + static_cast<std::int64_t>(channel)] = static_cast<float>(colour[channel]);
    }
  }

  void read_rgba(const TiffDirectory& directory, const Rectangle& part, std::int64_t channel,
                 Picture& picture) {
    const auto width = directory.form.width, height = directory.form.height;
    if (directory.form.pixels() > limits_.image.max_pixels ||
        directory.form.pixels() * kRgbaBytes > limits_.max_block_bytes) {
      throw IoError(fmt::format("the picture has {} x {} pixels, too many for its colour space",
                                width, height));
    }
    std::vector<std::uint32_t> pixels(static_cast<std::size_t>(directory.form.pixels()));
    tiff_.require(TIFFReadRGBAImageOriented(tiff_.get(), static_cast<std::uint32_t>(width),
                                            static_cast<std::uint32_t>(height), pixels.data(),
                                            ORIENTATION_TOPLEFT, 1) == 1);
    for (std::int64_t y = 0; y < part.height; ++y) {
      for (std::int64_t x = 0; x < part.width; ++x) {
        const auto pixel = pixels[static_cast<std::size_t>((y + part.y) * width + x + part.x)];
        auto* into =
            picture.samples.data() + (y * part.width + x) * picture.form.channels + channel;
        into[0] = static_cast<float>(TIFFGetR(pixel));
        into[1] = static_cast<float>(TIFFGetG(pixel));
        into[2] = static_cast<float>(TIFFGetB(pixel));
      }
    }
  }

  void read_raw(const TiffDirectory& directory, const Rectangle& part, std::int64_t channel,
                Picture& picture) {
    const auto row = directory.row_bytes();
    block_.resize(static_cast<std::size_t>(row * part.height));
    input_.read(static_cast<std::int64_t>(directory.first_byte) + part.y * row, block_);
    if (TIFFIsByteSwapped(tiff_.get()) != 0) {
      const auto size = static_cast<tmsize_t>(block_.size());
      if (directory.stored_bits == 16) {
        TIFFSwabArrayOfShort(reinterpret_cast<std::uint16_t*>(block_.data()), size / 2);
      }
      if (directory.stored_bits == 32) {
        TIFFSwabArrayOfLong(reinterpret_cast<std::uint32_t*>(block_.data()), size / 4);
      }
    }
    copy_block(directory, {0, part.y, directory.form.width, part.height}, part, channel, picture);
  }

  const InputFile& input_;
  TiffFile tiff_;
  Palette palette_;
  PictureLimits limits_;
  std::string description_;
  PictureNotes notes_;
  bool display_palette_ = false;
  bool raw_ = false;
  std::vector<TiffDirectory> directories_;
  TiffSections sections_;
  std::vector<PictureForm> forms_;
  std::vector<std::byte> block_;
  ColourTable colours_;  ///< of the palette that is being read
};

}  // namespace

std::unique_ptr<PictureSource> open_tiff(const InputFile& file, Palette palette,
                                         const PictureLimits& limits) {
  return std::make_unique<TiffSource>(file, palette, limits);
}

}  // namespace triptych::internal
