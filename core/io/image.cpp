// SPDX-License-Identifier: Apache-2.0
#include "core/io/image.h"

#include <fmt/core.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>

#include "core/base/checked_math.h"
#include "core/base/memory_budget.h"
#include "core/io/atomic_file.h"
#include "core/io/input_file.h"
#include "core/io/orientation.h"

namespace triptych {
namespace {

constexpr std::array<unsigned char, 8> kSignature = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
constexpr std::size_t kWidthOffset = 16;  // of the width in the file. The height follows

// libpng reports an error by longjmp. So that no destructor is jumped over, it is called only
// inside run_png, by callables that own nothing. All memory belongs to the callers of run_png.
struct PngFailure {
  std::array<char, 160> message = {};
  std::size_t refused_bytes = 0;  ///< that the memory budget did not have
};

void record_failure(png_structp png, png_const_charp message) {
  auto* failure = static_cast<PngFailure*>(png_get_error_ptr(png));
  std::strncpy(failure->message.data(), message, failure->message.size() - 1);
  png_longjmp(png, 1);
}

void ignore_warning(png_structp, png_const_charp) {}

/// Memory for libpng, which keeps tables, texts and profiles that a file brings.
png_voidp allocate(png_structp png, png_alloc_size_t bytes) {
  void* memory = allocate_counted(bytes);
  auto* failure = static_cast<PngFailure*>(png_get_mem_ptr(png));
  if (memory == nullptr) failure->refused_bytes = bytes;
  return memory;
}

void release(png_structp, png_voidp memory) { free_counted(memory); }

template <class Call>
bool run_png(png_structp png, const Call& call) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  call();
  return true;
}

struct ByteSource {
  std::span<const std::byte> rest;
  bool ended = false;
};

void read_bytes(png_structp png, png_bytep into, std::size_t count) {
  auto* source = static_cast<ByteSource*>(png_get_io_ptr(png));
  if (source->rest.size() < count) {
    source->ended = true;
    png_error(png, "the file ends early");
  }
  std::memcpy(into, source->rest.data(), count);
  source->rest = source->rest.subspan(count);
}

class PngReader {
 public:
  PngReader(std::span<const std::byte> file, const ImageLimits& limits, Palette palette)
      : limits_(limits), palette_(palette), source_{file} {
    png_ = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &failure_, record_failure,
                                    ignore_warning, &failure_, allocate, release);
    info_ = png_ == nullptr ? nullptr : png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      require_memory();
      throw std::bad_alloc();
    }
  }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }

  Image read() {
    require(run_png(png_, [this] { read_header(); }));
    Image image;
    image.width = png_get_image_width(png_, info_);
    image.height = png_get_image_height(png_, info_);
    if (image.pixels() > limits_.max_pixels) {
      throw IoError(
          fmt::format("the picture has {} x {} pixels, the limit is {} in all; cut it into parts",
                      image.width, image.height, limits_.max_pixels));
    }
    image.channels = png_get_channels(png_, info_);
    image.bit_depth = png_get_bit_depth(png_, info_);
    const auto row_bytes = png_get_rowbytes(png_, info_);
    const auto size = row_bytes * static_cast<std::size_t>(image.height);
    const bool wide = image.bit_depth == 16;
    internal::allocate_samples(image, wide ? size / 2 : size);
    auto* bytes = wide ? reinterpret_cast<unsigned char*>(image.samples.data())
                       : internal::bytes_within(image.samples);
    std::vector<png_bytep> rows(static_cast<std::size_t>(image.height));
    for (std::size_t y = 0; y < rows.size(); ++y) rows[y] = bytes + y * row_bytes;
    require(run_png(png_, [this, &rows] {
      png_read_image(png_, rows.data());
      png_read_end(png_, info_);
    }));
    take_notes(image);
    if (!wide) internal::widen_bytes(image.samples);
    return image;
  }

 private:
  void read_header() {
    const auto side = static_cast<png_uint_32>(limits_.max_side);
    png_set_user_limits(png_, side, side);
    png_set_chunk_malloc_max(png_, static_cast<png_alloc_size_t>(limits_.max_chunk_bytes));
    png_set_read_fn(png_, &source_, read_bytes);
    png_read_info(png_, info_);
    if (palette_ == Palette::Colours) {
      png_set_palette_to_rgb(png_);
    } else {
      png_set_packing(png_);  // an index has a byte. Grey is expanded below
    }
    if (png_get_color_type(png_, info_) == PNG_COLOR_TYPE_GRAY) {
      png_set_expand_gray_1_2_4_to_8(png_);
    }
    png_set_swap(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
  }

  void take_notes(Image& image) {
    png_colorp colours = nullptr;
    int count = 0;
    if (palette_ == Palette::Indices && image.channels == 1 &&
        png_get_PLTE(png_, info_, &colours, &count) != 0) {
      for (const auto& one : std::span(colours, static_cast<std::size_t>(count)))
        image.palette.push_back({one.red, one.green, one.blue});
    }
    png_bytep exif = nullptr;
    png_uint_32 size = 0;
    if (png_get_eXIf_1(png_, info_, &size, &exif) != 0)
      image.orientation = exif_orientation(std::as_bytes(std::span(exif, size)));
  }

  void require(bool succeeded) const {
    if (succeeded) return;
    require_memory();
    if (source_.ended) throw IoError("the PNG is truncated");
    throw IoError(fmt::format("the PNG cannot be read: {}", failure_.message.data()));
  }

  void require_memory() const {
    if (failure_.refused_bytes == 0) return;
    throw MemoryLimitError(memory_budget().refusal(failure_.refused_bytes, "a part of the PNG"));
  }

  ImageLimits limits_;
  Palette palette_;
  ByteSource source_;
  PngFailure failure_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

void append_bytes(png_structp png, png_bytep bytes, std::size_t count) {
  auto* output = static_cast<std::string*>(png_get_io_ptr(png));
  bool appended = true;
  try {
    output->append(reinterpret_cast<const char*>(bytes), count);
  } catch (const std::bad_alloc&) {
    appended = false;
  }
  if (!appended) png_error(png, "out of memory");
}

void keep_bytes(png_structp) {}

void write_image(png_structp png, png_infop info, const Image& image, const png_byte* bytes) {
  png_set_IHDR(png, info, static_cast<png_uint_32>(image.width),
               static_cast<png_uint_32>(image.height), image.bit_depth,
               image.channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  png_set_swap(png);
  const auto row_bytes = image.width * image.channels * (image.bit_depth / 8);
  for (std::int64_t y = 0; y < image.height; ++y) png_write_row(png, bytes + y * row_bytes);
  png_write_end(png, info);
}

std::string encode(const Image& image) {
  std::vector<png_byte> bytes(image.samples.size() * static_cast<std::size_t>(image.bit_depth / 8));
  if (image.bit_depth == 16) {
    std::memcpy(bytes.data(), image.samples.data(), bytes.size());
  } else {
    std::ranges::transform(image.samples, bytes.begin(),
                           [](std::uint16_t v) { return static_cast<png_byte>(v); });
  }
  PngFailure failure;
  std::string output;
  png_structp png =
      png_create_write_struct(PNG_LIBPNG_VER_STRING, &failure, record_failure, ignore_warning);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  const bool written = info != nullptr && run_png(png, [&] {
                         png_set_write_fn(png, &output, append_bytes, keep_bytes);
                         write_image(png, info, image, bytes.data());
                       });
  png_destroy_write_struct(&png, &info);
  if (!written) throw IoError(fmt::format("cannot encode a PNG: {}", failure.message.data()));
  return output;
}

void validate(const Image& image) {
  const bool form = image.width > 0 && image.height > 0 &&
                    (image.channels == 1 || image.channels == 3) &&
                    (image.bit_depth == 8 || image.bit_depth == 16);
  if (!form || checked_mul(checked_mul(image.width, image.height), image.channels) !=
                   std::ssize(image.samples)) {
    throw InvalidArgument(fmt::format(
        "cannot save {} samples as a PNG of {} x {}, {} channels, {} bits", image.samples.size(),
        image.width, image.height, image.channels, image.bit_depth));
  }
  if (std::ranges::max(image.samples) > image.max_value()) {
    throw InvalidArgument("a sample exceeds 8 bits");
  }
}

/// libpng refuses large pictures too, but only as "invalid".
void require_sides_within(std::span<const std::byte> file, std::int64_t max_side) {
  if (file.size() < kWidthOffset + 8) return;
  const auto big_endian = [file](std::size_t offset) {
    std::int64_t value = 0;
    for (const auto byte : file.subspan(offset, 4)) {
      value = value * 256 + std::to_integer<std::int64_t>(byte);
    }
    return value;
  };
  const auto width = big_endian(kWidthOffset), height = big_endian(kWidthOffset + 4);
  if (std::max(width, height) > max_side) {
    throw IoError(fmt::format("the picture has {} x {} pixels, the limit is {} a side", width,
                              height, max_side));
  }
}

}  // namespace

namespace internal {

void allocate_samples(Image& image, std::size_t count) {
  memory_budget().require(count * sizeof(std::uint16_t),
                          fmt::format("the picture of {} x {} pixels", image.width, image.height));
  image.samples.resize(count);
}

unsigned char* bytes_within(std::vector<std::uint16_t>& samples) {
  return reinterpret_cast<unsigned char*>(samples.data()) + samples.size();
}

void widen_bytes(std::vector<std::uint16_t>& samples) {
  const auto* bytes = bytes_within(samples);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = bytes[i];
}

}  // namespace internal

Image decode_png(std::span<const std::byte> file, const ImageLimits& limits, Palette palette) {
  if (file.empty()) throw IoError("the file is empty");
  const auto common = std::min(file.size(), kSignature.size());
  if (std::memcmp(file.data(), kSignature.data(), common) != 0) throw IoError("not a PNG");
  require_sides_within(file, limits.max_side);
  return PngReader(file, limits, palette).read();
}

Image load_png(const std::filesystem::path& path, const ImageLimits& limits, Palette palette) {
  const InputFile file(path, limits.max_file_bytes);
  const auto content = file.read_text(0, file.size());
  return file.named([&] { return decode_png(std::as_bytes(std::span(content)), limits, palette); });
}

std::string encode_png(const Image& image) {
  validate(image);
  return encode(image);
}

void save_png(const std::filesystem::path& path, const Image& image) {
  write_file_atomically(path, encode_png(image));
}

}  // namespace triptych
