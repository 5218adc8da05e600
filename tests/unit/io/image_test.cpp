// SPDX-License-Identifier: Apache-2.0
#include "core/io/image.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "tests/unit/io/test_files.h"

namespace triptych::image_tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kSignature = "\x89PNG\r\n\x1A\n";

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::string chunk(const std::string& type, const std::string& data) {
  const auto body = type + data;
  const auto sum =
      ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(static_cast<std::uint32_t>(data.size())) + body +
         big_endian(static_cast<std::uint32_t>(sum));
}

std::string header(std::uint32_t width, std::uint32_t height, char depth, char color) {
  return chunk("IHDR", big_endian(width) + big_endian(height) + std::string{depth, color, 0, 0, 0});
}

std::string compressed(const std::string& raw) {
  auto size = ::compressBound(raw.size());
  std::string packed(size, '\0');
  ::compress(reinterpret_cast<Bytef*>(packed.data()), &size,
             reinterpret_cast<const Bytef*>(raw.data()), raw.size());
  return packed.substr(0, size);
}

const std::string kEnd = chunk("IEND", "");

/// A PNG of one row. `row` comes without its filter byte.
std::string one_row(std::uint32_t width, char depth, char color, const std::string& row,
                    const std::string& extra = "") {
  return kSignature + header(width, 1, depth, color) + extra +
         chunk("IDAT", compressed(std::string(1, '\0') + row)) + kEnd;
}

Image decode(const std::string& file, const ImageLimits& limits = {}) {
  return decode_png(std::as_bytes(std::span(file)), limits);
}

TEST(Image, reads_every_kind_of_png) {
  const auto bits = decode(one_row(4, 1, 0, "\xA0"));
  EXPECT_EQ(bits.channels, 1);
  EXPECT_EQ(bits.bit_depth, 8);
  EXPECT_THAT(bits.samples, ElementsAre(255, 0, 255, 0));
  EXPECT_THAT(decode(one_row(2, 4, 0, "\x1F")).samples, ElementsAre(17, 255));

  const auto palette = decode(one_row(3, 2, 3, "\x18", chunk("PLTE", "abcdef")));
  EXPECT_EQ(palette.channels, 3);
  EXPECT_THAT(palette.samples, ElementsAre('a', 'b', 'c', 'd', 'e', 'f', 0, 0, 0));

  const auto deep = decode(one_row(2, 16, 0, std::string("\x01\x02\xFF\xFE", 4)));
  EXPECT_EQ(deep.bit_depth, 16);
  EXPECT_THAT(deep.samples, ElementsAre(0x0102, 0xFFFE));
  EXPECT_FLOAT_EQ(to_gray(deep)[0], 258.0F / 65535.0F);

  const auto rgba = decode(one_row(1, 8, 6, "\x0A\x14\x1E\x28"));
  EXPECT_EQ(rgba.channels, 4);
  EXPECT_THAT(rgba.samples, ElementsAre(10, 20, 30, 40));
  EXPECT_EQ(decode(one_row(1, 8, 4, "\x0A\x14")).channels, 2);
}

TEST(Image, luma_equals_pillow) {
  // Pillow's convert("L") of (130, 62, 165), (255, 255, 255), (255, 0, 0), (0, 255, 0), (0, 0,
  // 255).
  const Image image = {5, 1, 3, 8, {130, 62, 165, 255, 255, 255, 255, 0, 0, 0, 255, 0, 0, 0, 255}};
  EXPECT_THAT(luma(image), ElementsAre(94, 255, 76, 150, 29));
  const Image white = {1, 1, 4, 16, {65535, 65535, 65535, 0}};
  EXPECT_THAT(to_gray(white), ElementsAre(1.0F));
}

TEST(Image, round_trip_keeps_every_sample) {
  const test::TemporaryFolder folder;
  for (const int depth : {8, 16}) {
    for (const int channels : {1, 3}) {
      Image image = {7, 5, channels, depth, {}};
      image.samples.resize(static_cast<std::size_t>(35 * channels));
      std::iota(image.samples.begin(), image.samples.end(), depth == 16 ? 65000 : 0);
      save_png(folder / "a.png", image);
      const auto loaded = load_png(folder / "a.png");
      EXPECT_EQ(loaded.width, 7);
      EXPECT_EQ(loaded.height, 5);
      EXPECT_EQ(loaded.channels, channels);
      EXPECT_EQ(loaded.bit_depth, depth);
      EXPECT_EQ(loaded.samples, image.samples);
    }
  }
}

TEST(Image, refuses_to_save_what_is_no_picture) {
  const test::TemporaryFolder folder;
  for (const Image& image :
       {Image{2, 2, 1, 8, {1, 2, 3}}, Image{0, 0, 1, 8, {}}, Image{1, 1, 2, 8, {1, 2}},
        Image{1, 1, 1, 8, {256}}, Image{1, 1, 1, 4, {1}}, Image{-1, -1, 1, 8, {1}}}) {
    EXPECT_THROW(save_png(folder / "a.png", image), InvalidArgument);
  }
  EXPECT_EQ(test::files_in(folder.path()), 0);
}

std::string refusal(const std::string& file, const ImageLimits& limits = {}) {
  try {
    decode(file, limits);
    return "loaded";
  } catch (const IoError& error) {
    return error.what();
  }
}

TEST(Image, says_what_is_wrong_with_a_file) {
  const test::TemporaryFolder folder;
  EXPECT_THAT(refusal(""), HasSubstr("empty"));
  EXPECT_THAT(refusal("GIF89a"), HasSubstr("not a PNG"));
  EXPECT_THAT(refusal("\xFF\xD8\xFF\xE0 JFIF and more"), HasSubstr("not a PNG"));
  EXPECT_THAT(refusal(kSignature), HasSubstr("truncated"));
  const auto wide = one_row(64, 8, 0, std::string(64, 'x'));
  EXPECT_THAT(refusal(wide, {.max_pixels = 63}), HasSubstr("limit"));
  EXPECT_THAT(refusal(wide, {.max_side = 63}), HasSubstr("limit"));
  try {
    load_png(folder / "absent.png");
    FAIL();
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr("absent.png"));
    EXPECT_THAT(error.what(), HasSubstr("No such file"));
  }
  test::put_file(folder / "bad.png", "text");
  EXPECT_THROW(load_png(folder / "bad.png"), IoError);
  EXPECT_THROW(load_png(folder / "bad.png", {.max_file_bytes = 3}), IoError);
}

TEST(Image, every_truncation_is_refused) {
  const auto whole = one_row(64, 8, 2, std::string(192, 'x'));
  ASSERT_EQ(refusal(whole), "loaded");
  for (std::size_t size = 1; size < whole.size(); ++size) {
    EXPECT_NE(refusal(whole.substr(0, size)), "loaded") << size;
  }
}

TEST(Image, every_flipped_byte_is_refused_or_harmless) {
  const auto whole = one_row(16, 8, 3, std::string(16, '\1'), chunk("PLTE", "abcdef"));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    auto damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
    refusal(damaged);
  }
}

TEST(Image, hostile_files_are_refused) {
  const auto data = chunk("IDAT", compressed(std::string(10, '\0')));
  const std::string cases[] = {
      kSignature + kEnd,
      kSignature + data + kEnd,
      kSignature + header(3, 3, 8, 0) + kEnd,
      kSignature + header(0, 3, 8, 0) + data + kEnd,
      kSignature + header(3, 0, 8, 0) + data + kEnd,
      kSignature + header(0x7FFFFFFF, 0x7FFFFFFF, 16, 6) + data + kEnd,
      kSignature + header(0xFFFFFFFF, 1, 8, 0) + data + kEnd,
      kSignature + header(60000, 60000, 8, 0) + data + kEnd,
      kSignature + header(3, 3, 7, 0) + data + kEnd,
      kSignature + header(3, 3, 8, 5) + data + kEnd,
      kSignature + header(3, 3, 16, 3) + chunk("PLTE", "abc") + data + kEnd,
      kSignature + header(3, 3, 8, 3) + data + kEnd,
      kSignature + header(3, 3, 8, 3) + chunk("PLTE", "ab") + data + kEnd,
      kSignature + header(3, 3, 8, 0) + chunk("IDAT", "not deflate") + kEnd,
      kSignature + header(3, 3, 8, 0) + header(3, 3, 8, 0) + data + kEnd,
      kSignature + header(3, 4, 8, 0) + data + kEnd,
      kSignature + header(3, 3, 8, 0) + chunk("ABCD", "unknown critical") + data + kEnd,
      kSignature + header(3, 3, 8, 0) + big_endian(0xFFFFFFF0u) + "IDAT" + data,
      kSignature + header(3, 3, 8, 0).substr(0, 20) + "xxxxx" + data + kEnd};
  for (const auto& file : cases) EXPECT_NE(refusal(file), "loaded") << &file - cases;
}

TEST(Image, real_colour_nuclei_have_pillows_grey_values) {
  const auto folder = test::test_data(TRIPTYCH_SOURCE_DIR, "dsb2018");
  if (folder.empty()) GTEST_SKIP() << "dsb2018 is not there; set TRIPTYCH_TEST_DATA to its folder";
  const auto image = load_png(
      folder / "images/00ae65c1c6631ae6f2be1a449902976e6eb8483bf6b0740d00530220832c6d3e.png");
  EXPECT_EQ(image.channels, 4);
  const auto gray = luma(image);
  EXPECT_THAT(std::vector(gray.begin(), gray.begin() + 8),
              ElementsAre(94, 89, 87, 87, 85, 83, 83, 88));
  const auto row = gray.begin() + 100 * image.width + 100;
  EXPECT_THAT(std::vector(row, row + 8), ElementsAre(113, 105, 101, 93, 85, 81, 80, 81));
  EXPECT_EQ(std::accumulate(gray.begin(), gray.end(), std::int64_t{0}), 13561744);

  const auto nuclei = load_png(
      folder / "instances/00071198d059ba7f5914a526d124d28e6d010c92466da21d4a04cd5413362552.png");
  EXPECT_EQ(nuclei.bit_depth, 16);
  EXPECT_EQ(std::accumulate(nuclei.samples.begin(), nuclei.samples.end(), std::int64_t{0}), 77465);
}

TEST(Image, real_membranes_have_the_published_mean_and_deviation) {
  const auto folder = test::test_data(TRIPTYCH_SOURCE_DIR, "isbi2012");
  if (folder.empty()) GTEST_SKIP() << "isbi2012 is not there; set TRIPTYCH_TEST_DATA to its folder";
  double sum = 0;
  double squares = 0;
  double count = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder / "train/image")) {
    for (const auto value : luma(load_png(file.path()))) {
      sum += value;
      squares += double(value) * value;
      ++count;
    }
  }
  EXPECT_EQ(count, 30 * 512 * 512);
  EXPECT_NEAR(sum / count, 126.16, 0.005);
  EXPECT_NEAR(std::sqrt(squares / count - sum / count * sum / count), 44.02, 0.005);
}

}  // namespace
}  // namespace triptych::image_tests
