// SPDX-License-Identifier: Apache-2.0
#include "core/io/orientation.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include "core/base/error.h"
#include "core/io/picture.h"
#include "tests/unit/io/jpeg_samples.h"
#include "tests/unit/io/test_files.h"
#include "tests/unit/io/tiff_samples.h"

namespace triptych::orientation_tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// An EXIF block that states `orientation` behind another entry.
std::string exif_of(int orientation, bool big_endian) {
  const auto number = [big_endian](std::uint32_t value, std::size_t bytes) {
    std::string text;
    for (std::size_t i = 0; i < bytes; ++i)
      text += static_cast<char>(value >> 8 * (big_endian ? bytes - 1 - i : i));
    return text;
  };
  const auto entry = [&](std::uint32_t tag, std::uint32_t value) {
    return number(tag, 2) + number(3, 2) + number(1, 4) + number(value, 2) + number(0, 2);
  };
  return std::string(big_endian ? "MM" : "II") + number(42, 2) + number(8, 4) + number(2, 2) +
         entry(0x0100, 7) + entry(0x0112, static_cast<std::uint32_t>(orientation)) + number(0, 4);
}

std::string big(std::uint32_t value, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * (bytes - 1 - i));
  return text;
}

/// `png` with an EXIF chunk behind its header, or behind its pixels.
std::string with_exif(std::string png, const std::string& exif, bool last = false) {
  const auto body = "eXIf" + exif;
  const auto crc =
      crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  const auto chunk = big(static_cast<std::uint32_t>(exif.size()), 4) + body +
                     big(static_cast<std::uint32_t>(crc), 4);
  return png.insert(last ? png.size() - 12 : 33, chunk);
}

std::string jpeg_with_exif(std::string jpeg, const std::string& exif) {
  const auto body = std::string("Exif\0\0", 6) + exif;
  return jpeg.insert(2, "\xFF\xE1" + big(static_cast<std::uint32_t>(body.size() + 2), 2) + body);
}

class OrientationTest : public ::testing::Test {
 protected:
  std::filesystem::path put(const std::string& content) const {
    test::put_file(folder / "a", content);
    return folder / "a";
  }

  test::TemporaryFolder folder;
  /// 0 1 2
  /// 3 4 5
  const std::string png = encode_png({3, 2, 1, 8, {0, 1, 2, 3, 4, 5}});
};

TEST_F(OrientationTest, pixels_come_as_viewers_show_them) {
  // The tables of the EXIF standard: which stored row is the visual top, which column the left.
  const std::vector<std::vector<float>> shown = {
      {0, 1, 2, 3, 4, 5}, {2, 1, 0, 5, 4, 3}, {5, 4, 3, 2, 1, 0}, {3, 4, 5, 0, 1, 2},
      {0, 3, 1, 4, 2, 5}, {3, 0, 4, 1, 5, 2}, {5, 2, 4, 1, 3, 0}, {2, 5, 1, 4, 0, 3}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    SCOPED_TRACE(orientation);
    for (const bool big_endian : {false, true}) {
      PictureFile file(put(with_exif(png, exif_of(orientation, big_endian))));
      EXPECT_EQ(file.orientation(), orientation);
      EXPECT_EQ(file.form().width, orientation < 5 ? 3 : 2);
      EXPECT_EQ(file.form().height, orientation < 5 ? 2 : 3);
      const auto& all = shown[static_cast<std::size_t>(orientation - 1)];
      EXPECT_EQ(file.read().samples, all);
      const auto width = static_cast<std::size_t>(file.form().width);
      EXPECT_THAT(file.read(0, {1, 1, 1, 1}).samples, ElementsAre(all[width + 1]));
    }
  }
}

TEST_F(OrientationTest, a_jpeg_is_turned_as_its_camera_noted) {
  const auto flat = test::jpeg_of(24, {90});
  EXPECT_EQ(PictureFile(put(flat)).orientation(), kAsStored);
  PictureFile turned(put(jpeg_with_exif(flat, exif_of(6, true))));
  EXPECT_EQ(turned.orientation(), 6);
  EXPECT_EQ(turned.form().width, 8);
  EXPECT_EQ(turned.form().height, 24);
  EXPECT_EQ(turned.read().samples.size(), 192U);
}

TEST_F(OrientationTest, exif_behind_the_pixels_of_a_png_is_refused) {
  PictureFile late(put(with_exif(png, exif_of(3, false), true)));
  try {
    late.read();
    ADD_FAILURE() << "read";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr("EXIF block lies behind its pixels"));
  }
  PictureFile harmless(put(with_exif(png, exif_of(1, false), true)));
  EXPECT_EQ(harmless.read().samples.size(), 6U);
}

TEST_F(OrientationTest, an_exif_block_that_says_nothing_leaves_the_picture_as_it_is) {
  const auto whole = exif_of(3, false);
  for (std::size_t size = 0; size < whole.size() - 8; ++size)
    EXPECT_EQ(exif_orientation(std::as_bytes(std::span(whole).first(size))), kAsStored) << size;
  for (const int wrong : {0, 9, 65535}) {
    const auto exif = exif_of(wrong, true);
    EXPECT_EQ(exif_orientation(std::as_bytes(std::span(exif))), kAsStored);
  }
}

TEST_F(OrientationTest, a_tiff_with_an_orientation_is_refused) {
  for (const auto orientation : {ORIENTATION_BOTRIGHT, ORIENTATION_LEFTBOT}) {
    auto* tiff = TIFFOpen((folder / "a.tif").c_str(), "w");
    TIFFSetField(tiff, TIFFTAG_ORIENTATION, orientation);
    test::put_tiff_page(tiff, {.width = 4, .height = 3}, 0);
    TIFFClose(tiff);
    try {
      PictureFile(folder / "a.tif");
      ADD_FAILURE() << "read";
    } catch (const IoError& error) {
      EXPECT_THAT(error.what(), HasSubstr("tag Orientation is"));
      EXPECT_THAT(error.what(), HasSubstr("a.tif"));
    }
  }
}

}  // namespace
}  // namespace triptych::orientation_tests
