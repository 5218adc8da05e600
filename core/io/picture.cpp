// SPDX-License-Identifier: Apache-2.0
#include "core/io/picture.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "core/io/jpeg.h"

namespace triptych {
namespace {

constexpr std::int64_t kMaxTiffBytes = std::int64_t{1} << 42;
constexpr std::int64_t kHeadBytes = 33;  ///< of a PNG up to the end of its first chunk
constexpr std::size_t kPngDepth = 24, kPngColour = 25;
constexpr std::array kExtensions = {".png", ".tif", ".tiff", ".jpg", ".jpeg", ".btf", ".tf8"};

/// A file that is decoded as a whole: one page of integers, perhaps with alpha behind its channels.
/// Its form is the one that viewers show.
class WholeFile : public PictureSource {
 public:
  WholeFile(const InputFile& file, PictureForm stored, int orientation)
      : file_(file), form_(stored), orientation_(orientation) {
    if (swaps_sides(orientation)) std::swap(form_.width, form_.height);
  }

  const PictureForm& form(std::int64_t) const override { return form_; }
  int orientation() const override { return orientation_; }

  Picture read(std::int64_t, const Rectangle& part) override {
    const auto image = decoded();
    Picture picture = {form_, {}, image.palette};
    picture.form.width = part.width;
    picture.form.height = part.height;
    const auto count = static_cast<std::size_t>(part.width * part.height * form_.channels);
    memory_budget().require(count * sizeof(float), "the picture");
    picture.samples.resize(count);
    auto into = picture.samples.begin();
    for (auto y = part.y; y < part.y + part.height; ++y) {
      // Step between neighbours of a shown row.
      const auto first = stored_place(orientation_, {part.x, y}, image.width, image.height);
      const auto next = stored_place(orientation_, {part.x + 1, y}, image.width, image.height);
      const auto step = (next.y - first.y) * image.width + next.x - first.x;
      auto at = first.y * image.width + first.x;
      for (std::int64_t x = 0; x < part.width; ++x, at += step)
        into = std::copy_n(image.samples.data() + at * image.channels, form_.channels, into);
    }
    return picture;
  }

 private:
  virtual Image decode(std::span<const std::byte> content) const = 0;

  Image decoded() const {
    const auto content = file_.read_text(0, file_.size());
    auto image = decode(std::as_bytes(std::span(content)));
    if (image.orientation == orientation_) return image;
    throw IoError("its EXIF block lies behind its pixels; save it again by another program");
  }

  const InputFile& file_;
  PictureForm form_;
  int orientation_;
};

class PngFile final : public WholeFile {
 public:
  PngFile(const InputFile& file, std::string_view head, Palette palette, const ImageLimits& limits)
      : WholeFile(file, form_of(head, palette), orientation_in(file)),
        palette_(palette),
        limits_(limits) {}

 private:
  static PictureForm form_of(std::string_view head, Palette palette) {
    if (std::ssize(head) < kHeadBytes) throw IoError("the PNG is truncated");
    const auto big_endian = [head](std::size_t offset) {
      std::int64_t value = 0;
      for (const auto byte : head.substr(offset, 4)) {
        value = value * 256 + static_cast<unsigned char>(byte);
      }
      return value;
    };
    const int colour = static_cast<unsigned char>(head[kPngColour]);
    const bool grey = colour == 0 || colour == 4 || (colour == 3 && palette == Palette::Indices);
    return {.width = big_endian(16),
            .height = big_endian(20),
            .channels = grey ? 1 : 3,
            .bits = head[kPngDepth] == 16 ? 16 : 8,
            .colours = !grey};
  }
  /// By its EXIF chunk, when that lies before the pixels.
  static int orientation_in(const InputFile& file) {
    constexpr std::int64_t head_bytes = 8, frame_bytes = 12;
    constexpr std::int64_t most_chunks = 4096, most_exif_bytes = 1 << 16;
    std::int64_t at = head_bytes;
    for (int i = 0; i < most_chunks && at + frame_bytes <= file.size(); ++i) {
      const auto head = file.read_text(at, head_bytes);
      std::int64_t length = 0;
      for (const unsigned char byte : std::string_view(head).substr(0, 4))
        length = length * 256 + byte;
      const auto kind = std::string_view(head).substr(4);
      if (kind == "IDAT" || length > file.size() - at - frame_bytes) break;
      if (kind == "eXIf" && length <= most_exif_bytes) {
        const auto block = file.read_text(at + head_bytes, length);
        return exif_orientation(std::as_bytes(std::span(block)));
      }
      at += length + frame_bytes;
    }
    return kAsStored;
  }
  Image decode(std::span<const std::byte> content) const override {
    return decode_png(content, limits_, palette_);
  }

  Palette palette_;
  ImageLimits limits_;
};

class JpegFile final : public WholeFile {
 public:
  JpegFile(const InputFile& file, const ImageLimits& limits)
      : JpegFile(file, header_of(file, limits), limits) {}

 private:
  JpegFile(const InputFile& file, const Image& header, const ImageLimits& limits)
      : WholeFile(file, form_of(header), header.orientation), limits_(limits) {}

  static Image header_of(const InputFile& file, const ImageLimits& limits) {
    const auto content = file.read_text(0, file.size());
    return decode_jpeg_header(std::as_bytes(std::span(content)), limits);
  }
  static PictureForm form_of(const Image& image) {
    return {.width = image.width,
            .height = image.height,
            .channels = image.channels,
            .bits = image.bit_depth,
            .colours = image.channels == 3};
  }
  Image decode(std::span<const std::byte> content) const override {
    return decode_jpeg(content, limits_);
  }

  ImageLimits limits_;
};

bool is_tiff(std::string_view head) {
  using namespace std::string_view_literals;
  return head.starts_with("II*\0"sv) || head.starts_with("MM\0*"sv) ||
         head.starts_with("II+\0"sv) || head.starts_with("MM\0+"sv);
}

std::unique_ptr<PictureSource> open(const InputFile& file, Palette palette,
                                    const PictureLimits& limits) {
  if (file.size() == 0) throw IoError("the file is empty");
  const auto head = file.read_text(0, std::min(file.size(), kHeadBytes));
  if (is_tiff(head)) return internal::open_tiff(file, palette, limits);
  if (file.size() > limits.image.max_file_bytes) {
    throw IoError(fmt::format("the file has {} bytes, the limit is {} unless it is a TIFF",
                              file.size(), limits.image.max_file_bytes));
  }
  if (is_jpeg(std::as_bytes(std::span(head)))) {
    return std::make_unique<JpegFile>(file, limits.image);
  }
  if (head.starts_with("\x89PNG\r\n\x1A\n")) {
    return std::make_unique<PngFile>(file, head, palette, limits.image);
  }
  throw IoError("not a PNG, TIFF or JPEG");
}

void require_size(const PictureForm& form, const ImageLimits& limits) {
  if (form.width < 1 || form.height < 1) throw IoError("the picture has no pixels");
  if (std::max(form.width, form.height) <= limits.max_side) return;
  throw IoError(fmt::format("the picture has {} x {} pixels, the limit is {} a side", form.width,
                            form.height, limits.max_side));
}

/// The luma of image.h, for floating-point values with the same weights.
float luma_of(const float* pixel, bool floating) {
  if (floating) return (19595.0F * pixel[0] + 38470.0F * pixel[1] + 7471.0F * pixel[2]) / 65536.0F;
  const auto weighted = [pixel](std::size_t channel, std::uint64_t weight) {
    return weight * static_cast<std::uint64_t>(pixel[channel]);
  };
  return static_cast<float>(
      (weighted(0, 19595) + weighted(1, 38470) + weighted(2, 7471) + 0x8000) >> 16);
}

}  // namespace

double PictureForm::full_scale() const {
  return floating ? 1.0 : static_cast<double>((std::int64_t{1} << bits) - 1);
}

std::string describe(const PictureForm& form) {
  return fmt::format("{} x {} pixels, {} channel{}, {} bits{}", form.width, form.height,
                     form.channels, form.channels == 1 ? "" : "s", form.bits,
                     form.floating ? ", floating or signed" : "");
}

PictureFile::PictureFile(std::filesystem::path path, Palette palette, const PictureLimits& limits)
    : file_(std::move(path), kMaxTiffBytes), limits_(limits) {
  file_.named([&] {
    source_ = open(file_, palette, limits_);
    is_tiff_ = dynamic_cast<const WholeFile*>(source_.get()) == nullptr;
    for (std::int64_t page = 0; page < pages(); ++page) require_size(form(page), limits_.image);
    return 0;
  });
}

Picture PictureFile::read(std::int64_t page) {
  if (page < 0 || page >= pages()) throw InvalidArgument("the picture has no such page");
  return read(page, {0, 0, form(page).width, form(page).height});
}

Picture PictureFile::read(std::int64_t page, const Rectangle& part) {
  if (page < 0 || page >= pages()) throw InvalidArgument("the picture has no such page");
  const auto& whole = form(page);
  if (part.x < 0 || part.y < 0 || part.width < 1 || part.height < 1 ||
      part.width > whole.width - part.x || part.height > whole.height - part.y) {
    throw InvalidArgument("the part leaves the picture");
  }
  return file_.named([&] {
    if (part.width * part.height > limits_.image.max_pixels) {
      throw IoError(
          fmt::format("the picture has {} x {} pixels, the limit is {} in all; cut it into parts",
                      part.width, part.height, limits_.image.max_pixels));
    }
    return source_->read(page, part);
  });
}

bool has_picture_name(const std::filesystem::path& path) {
  auto extension = path.extension().string();
  std::ranges::transform(extension, extension.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  return std::ranges::find(kExtensions, extension) != kExtensions.end();
}

std::vector<float> luma(const Picture& picture) {
  if (!picture.form.colours) throw InvalidArgument("luma is of colours");
  std::vector<float> values(static_cast<std::size_t>(picture.form.pixels()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = luma_of(picture.samples.data() + 3 * i, picture.form.floating);
  }
  return values;
}

std::vector<float> to_planes(Picture picture, std::int64_t channels) {
  const auto& form = picture.form;
  const auto scale = static_cast<float>(form.full_scale());
  if (channels == 1 && form.colours) {
    auto values = luma(picture);
    for (auto& value : values) value /= scale;
    return values;
  }
  if (channels != form.channels && !(channels == 3 && form.channels == 1)) {
    throw InvalidArgument(fmt::format(
        "the picture has {0} channels, which are no colours, and {1} {2} asked for; the "
        "option in-channels {0} reads them all",
        form.channels, channels, channels == 1 ? "is" : "are"));
  }
  if (channels == 1) {
    for (auto& value : picture.samples) value /= scale;
    return std::move(picture.samples);
  }
  const auto pixels = static_cast<std::size_t>(form.pixels());
  const auto step = static_cast<std::size_t>(form.channels);
  std::vector<float> planes(static_cast<std::size_t>(channels) * pixels);
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
    const auto* from = picture.samples.data() + (c < step ? c : 0);
    auto* into = planes.data() + c * pixels;
    for (std::size_t i = 0; i < pixels; ++i) into[i] = from[i * step] / scale;
  }
  return planes;
}

}  // namespace triptych
