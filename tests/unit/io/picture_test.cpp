// SPDX-License-Identifier: Apache-2.0
#include "core/io/picture.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <limits>

#include "core/base/error.h"
#include "core/io/jpeg.h"
#include "tests/unit/io/jpeg_samples.h"
#include "tests/unit/io/test_files.h"
#include "tests/unit/io/tiff_samples.h"

namespace triptych::picture_tests {
namespace {

using test::put_tiff;
using test::sample_at;
using test::TiffLayout;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PictureTest : public ::testing::Test {
 protected:
  std::filesystem::path tiff(const std::vector<TiffLayout>& pages, const char* mode = "w") {
    put_tiff(folder / "a.tif", pages, mode);
    return folder / "a.tif";
  }
  std::string refusal(const std::filesystem::path& path, const PictureLimits& limits = {}) {
    try {
      PictureFile file(path, Palette::Colours, limits);
      for (std::int64_t page = 0; page < file.pages(); ++page) file.read(page);
      return "loaded";
    } catch (const IoError& error) {
      EXPECT_THAT(error.what(), HasSubstr(path.string()));
      return error.what();
    }
  }
  std::string refusal_of(const std::string& content, const PictureLimits& limits = {}) {
    test::put_file(folder / "b.tif", content);
    return refusal(folder / "b.tif", limits);
  }

  test::TemporaryFolder folder;
};

void expect_samples(const Picture& picture, const TiffLayout& layout, const Rectangle& part,
                    int page = 0) {
  ASSERT_EQ(picture.form.channels, layout.channels);
  ASSERT_EQ(std::ssize(picture.samples), part.width * part.height * layout.channels);
  const auto* value = picture.samples.data();
  for (std::int64_t y = part.y; y < part.y + part.height; ++y) {
    for (std::int64_t x = part.x; x < part.x + part.width; ++x) {
      for (int c = 0; c < layout.channels; ++c) {
        const auto wanted = sample_at(layout, static_cast<std::uint32_t>(x),
                                      static_cast<std::uint32_t>(y), c, page);
        ASSERT_EQ(*value++, wanted) << x << " " << y << " " << c;
      }
    }
  }
}

TEST_F(PictureTest, every_layout_of_a_tiff_is_read_whole_and_in_part) {
  const std::pair<int, int> types[] = {{8, SAMPLEFORMAT_UINT},    {12, SAMPLEFORMAT_UINT},
                                       {16, SAMPLEFORMAT_UINT},   {32, SAMPLEFORMAT_UINT},
                                       {32, SAMPLEFORMAT_IEEEFP}, {64, SAMPLEFORMAT_IEEEFP}};
  for (const auto& [bits, format] : types) {
    for (const int channels : {1, 2, 3, 4, 5}) {
      for (const bool separate : {false, true}) {
        for (const bool tiled : {false, true}) {
          const TiffLayout layout = {.channels = channels,
                                     .bits = bits,
                                     .format = format,
                                     .separate = separate,
                                     .tiled = tiled};
          SCOPED_TRACE(::testing::Message()
                       << bits << " bits, " << channels << " channels, " << separate << tiled);
          PictureFile file(tiff({layout}));
          EXPECT_EQ(file.pages(), 1);
          EXPECT_EQ(file.form().bits, bits);
          EXPECT_EQ(file.form().floating, format == SAMPLEFORMAT_IEEEFP);
          expect_samples(file.read(), layout, {0, 0, 37, 21});
          expect_samples(file.read(0, {15, 4, 3, 14}), layout, {15, 4, 3, 14});
          expect_samples(file.read(0, {36, 20, 1, 1}), layout, {36, 20, 1, 1});
        }
      }
    }
  }
}

TEST_F(PictureTest, every_lossless_compression_of_libtiff_is_read_in_either_byte_order) {
  for (const int compression :
       {COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE, COMPRESSION_DEFLATE,
        COMPRESSION_PACKBITS, COMPRESSION_LZMA, COMPRESSION_ZSTD, COMPRESSION_LERC}) {
    if (TIFFIsCODECConfigured(static_cast<std::uint16_t>(compression)) == 0) continue;
    for (const auto* mode : {"w", "w8", "wb", "w8b"}) {
      for (const int bits : {8, 16}) {
        SCOPED_TRACE(::testing::Message() << compression << mode << bits);
        const TiffLayout layout = {.channels = 2, .bits = bits, .compression = compression};
        PictureFile file(tiff({layout}, mode));
        expect_samples(file.read(), layout, {0, 0, 37, 21});
      }
    }
  }
}

TEST_F(PictureTest, few_bits_are_widened_and_white_can_be_zero) {
  const TiffLayout bilevel = {.width = 3, .height = 1, .bits = 1};
  EXPECT_THAT(PictureFile(tiff({bilevel})).read().samples, ElementsAre(0, 255, 0));
  const TiffLayout fax = {.width = 3,
                          .height = 1,
                          .bits = 1,
                          .photometric = PHOTOMETRIC_MINISWHITE,
                          .compression = COMPRESSION_CCITTFAX4};
  EXPECT_THAT(PictureFile(tiff({fax})).read().samples, ElementsAre(255, 0, 255));
  EXPECT_THAT(PictureFile(tiff({fax}), Palette::Indices).read().samples, ElementsAre(0, 255, 0));
  const TiffLayout four = {.width = 3, .height = 1, .bits = 4};
  EXPECT_THAT(PictureFile(tiff({four})).read().samples, ElementsAre(0, 119, 238));
  const TiffLayout inverted = {
      .width = 2, .height = 1, .bits = 16, .photometric = PHOTOMETRIC_MINISWHITE};
  EXPECT_THAT(PictureFile(tiff({inverted})).read().samples, ElementsAre(65535, 65535 - 399));
  EXPECT_THAT(PictureFile(tiff({inverted}), Palette::Indices).read().samples, ElementsAre(0, 399))
      << "a number of an object, say";
  const TiffLayout negative = {.width = 2, .height = 1, .format = SAMPLEFORMAT_INT};
  EXPECT_THAT(PictureFile(tiff({negative})).read().samples, ElementsAre(-50, -43));
}

TEST_F(PictureTest, a_palette_gives_colours_or_indices) {
  for (const int bits : {4, 8}) {
    const TiffLayout layout = {
        .width = 2, .height = 1, .bits = bits, .photometric = PHOTOMETRIC_PALETTE};
    const auto path = tiff({layout});
    PictureFile colours(path);
    EXPECT_EQ(colours.form().channels, 3);
    EXPECT_TRUE(colours.form().colours);
    EXPECT_THAT(colours.read().samples, ElementsAre(0, 255, 0x12, 7, 248, 0x12));
    EXPECT_THAT(PictureFile(path, Palette::Indices).read().samples, ElementsAre(0, 7));
  }
}

TEST_F(PictureTest, three_channels_are_colours_only_where_the_file_says_so) {
  for (const bool separate : {false, true}) {
    TiffLayout layout = {.width = 1, .height = 1, .channels = 3, .separate = separate};
    const auto dyes = PictureFile(tiff({layout})).read();
    EXPECT_FALSE(dyes.form.colours);
    EXPECT_THROW(luma(dyes), InvalidArgument);
    EXPECT_THROW(to_planes(dyes, 1), InvalidArgument);
    EXPECT_EQ(to_planes(dyes, 3).size(), 3);
    layout.photometric = PHOTOMETRIC_RGB;
    const auto colours = PictureFile(tiff({layout})).read();
    EXPECT_TRUE(colours.form.colours);
    EXPECT_EQ(to_planes(colours, 1).size(), 1);
  }
  // A channel in each directory: those of a fluorescence microscope.
  const TiffLayout page = {
      .width = 1, .height = 1, .description = "ImageJ=1.53t\nimages=3\nchannels=3\n"};
  EXPECT_EQ(PictureFile(tiff({page, page, page})).form(), (PictureForm{1, 1, 3, 8, false, false}));
}

TEST_F(PictureTest, alpha_is_not_read) {
  for (const bool separate : {false, true}) {
    const TiffLayout layout = {.width = 1,
                               .height = 1,
                               .channels = 4,
                               .photometric = PHOTOMETRIC_RGB,
                               .separate = separate,
                               .extra = EXTRASAMPLE_UNASSALPHA};
    EXPECT_THAT(PictureFile(tiff({layout})).read().samples, ElementsAre(0, 50, 100));
  }
}

TEST_F(PictureTest, lossy_and_subsampled_colours_are_read_as_rgb) {
  // libtiff writes YCbCr from RGB only on request. Flat colours survive any subsampling.
  auto* tiff = TIFFOpen((folder / "y.tif").c_str(), "w");
  for (const auto& [tag, value] :
       std::vector<std::pair<std::uint32_t, int>>{{TIFFTAG_IMAGEWIDTH, 16},
                                                  {TIFFTAG_IMAGELENGTH, 16},
                                                  {TIFFTAG_SAMPLESPERPIXEL, 3},
                                                  {TIFFTAG_BITSPERSAMPLE, 8},
                                                  {TIFFTAG_COMPRESSION, COMPRESSION_JPEG},
                                                  {TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_YCBCR},
                                                  {TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG},
                                                  {TIFFTAG_ROWSPERSTRIP, 16},
                                                  {TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB}}) {
    TIFFSetField(tiff, tag, value);
  }
  std::vector<std::uint8_t> red;
  for (int i = 0; i < 256; ++i) red.insert(red.end(), {200, 40, 60});
  TIFFWriteEncodedStrip(tiff, 0, red.data(), 768);
  TIFFClose(tiff);
  const auto picture = PictureFile(folder / "y.tif").read();
  const TiffLayout print = {
      .width = 1, .height = 1, .channels = 4, .photometric = PHOTOMETRIC_SEPARATED};
  EXPECT_THAT(PictureFile(this->tiff({print})).read().samples, ElementsAre(105, 84, 63));
  EXPECT_EQ(picture.form.channels, 3);
  EXPECT_NEAR(picture.samples[0], 200, 2);
  EXPECT_NEAR(picture.samples[1], 40, 2);
  EXPECT_NEAR(picture.samples[767], 60, 2);
}

TEST_F(PictureTest, pages_are_sections_and_thumbnails_are_none) {
  TiffLayout page = {.bits = 16, .compression = COMPRESSION_LZW}, thumbnail = page;
  thumbnail.thumbnail = true;
  thumbnail.width = 4;
  PictureFile file(tiff({page, thumbnail, page, page}));
  ASSERT_EQ(file.pages(), 3);
  expect_samples(file.read(2), page, {0, 0, 37, 21}, 3);
  expect_samples(file.read(0), page, {0, 0, 37, 21}, 0);
  EXPECT_THROW(file.read(3), InvalidArgument);
  EXPECT_THROW(file.read(0, {30, 0, 8, 1}), InvalidArgument);
  EXPECT_THROW(file.read(0, {0, 0, 0, 1}), InvalidArgument);
}

/// The first sample of each channel of each page.
std::vector<std::vector<float>> first_samples(const std::filesystem::path& path) {
  PictureFile file(path);
  std::vector<std::vector<float>> pages;
  for (std::int64_t page = 0; page < file.pages(); ++page) {
    pages.push_back(file.read(page, {0, 0, 1, 1}).samples);
  }
  return pages;
}

TEST_F(PictureTest, axes_of_imagej_and_ome_are_respected) {
  std::vector<TiffLayout> pages(6, {.width = 2, .height = 2});
  pages[0].description = "ImageJ=1.53t\nimages=6\nchannels=2\nslices=3\nhyperstack=true\n";
  EXPECT_THAT(first_samples(tiff(pages)),
              ElementsAre(ElementsAre(0, 3), ElementsAre(6, 9), ElementsAre(12, 15)));
  pages[0].description = "ImageJ=1.53t\nimages=6\n";
  EXPECT_EQ(first_samples(tiff(pages)).size(), 6u);
  pages[0].description =
      "<?xml version=\"1.0\"?><OME><Image><Pixels ID=\"p\" DimensionOrder=\"XYZCT\" SizeX=\"2\" "
      "SizeC=\"2\" SizeZ=\"3\" SizeT='1'><TiffData/></Pixels></Image></OME>";
  EXPECT_THAT(first_samples(tiff(pages)),
              ElementsAre(ElementsAre(0, 9), ElementsAre(3, 12), ElementsAre(6, 15)));
  pages[0].description =
      "<OME><Pixels DimensionOrder=\"XYCTZ\" SizeC=\"1\" SizeZ=\"2\" "
      "SizeT=\"3\"/></OME>";
  EXPECT_THAT(first_samples(tiff(pages)),
              ElementsAre(ElementsAre(0), ElementsAre(9), ElementsAre(3), ElementsAre(12),
                          ElementsAre(6), ElementsAre(15)));
  for (const auto* wrong :
       {"<OME><Pixels SizeC=\"2\" SizeZ=\"4\"/></OME>", "<OME><Pixels SizeC=\"x\"/></OME>",
        "<OME><Pixels DimensionOrder=\"XYCCZ\" SizeZ=\"6\"/></OME>",
        "<OME><Pixels SizeC=\"99999999999999999999\"/></OME>", "ImageJ=1\nchannels=4\nslices=2\n",
        "ImageJ=1\nslices=-6\n"}) {
    pages[0].description = wrong;
    EXPECT_THAT(refusal(tiff(pages)), HasSubstr("description")) << wrong;
  }
}

TEST_F(PictureTest, a_stack_of_imagej_under_one_directory_is_read) {
  for (const auto* mode : {"w", "wb"}) {
    const TiffLayout layout = {.bits = 16, .rows = 21, .description = "ImageJ=1.53t\nimages=3\n"};
    const auto path = tiff({layout}, mode);
    EXPECT_THAT(refusal(path), HasSubstr("counts 3 images"));
    // The directory lies behind the pixels of the first section, and any bytes may follow it.
    test::put_file(path, test::get_file(path) + std::string(2 * 37 * 21 * 2, '\1'));
    PictureFile file(path);
    ASSERT_EQ(file.pages(), 3);
    expect_samples(file.read(0), layout, {0, 0, 37, 21});
    expect_samples(file.read(0, {5, 6, 7, 8}), layout, {5, 6, 7, 8});
    EXPECT_THAT(file.read(2, {36, 20, 1, 1}).samples, ElementsAre(257));
  }
}

TEST_F(PictureTest, what_is_written_is_read_again) {
  for (const auto& [bits, floating] : {std::pair{8, false}, {16, false}, {32, true}}) {
    for (const int channels : {1, 2, 3, 4, 5}) {
      const bool colours = channels == 3 && bits == 16;
      std::vector<Picture> pages;
      for (int page = 0; page < 3; ++page) {
        auto& picture =
            pages.emplace_back(Picture{{300 + page, 70, channels, bits, floating, colours}, {}});
        for (int i = 0; i < picture.form.pixels() * channels; ++i) {
          const auto value = static_cast<float>((i * 31 + page) % (bits == 8 ? 256 : 60000));
          picture.samples.push_back(floating ? value / 7 - 100 : value);
        }
      }
      save_tiff(folder / "w.tif", pages, {.description = "made by a test"});
      PictureFile file(folder / "w.tif");
      ASSERT_EQ(file.pages(), 3);
      for (int page = 0; page < 3; ++page) {
        const auto& wanted = pages[static_cast<std::size_t>(page)];
        EXPECT_EQ(file.form(page), wanted.form);
        EXPECT_EQ(file.read(page).samples, wanted.samples);
      }
    }
  }
  const float infinite = std::numeric_limits<float>::infinity();
  EXPECT_THROW(encode_tiff({}), InvalidArgument);
  for (const Picture& wrong :
       {Picture{{1, 1, 1, 8, false}, {256}}, Picture{{1, 1, 1, 8, false}, {0.5F}},
        Picture{{1, 1, 1, 16, false}, {-1}}, Picture{{1, 1, 1, 16, false}, {infinite}},
        Picture{{2, 1, 1, 8, false}, {1}}, Picture{{1, 1, 1, 12, false}, {1}},
        Picture{{0, 1, 1, 8, false}, {}}}) {
    EXPECT_THROW(encode_tiff({&wrong, 1}), InvalidArgument);
  }
}

TEST_F(PictureTest, limits_are_stated) {
  const TiffLayout layout = {.channels = 5, .rows = 21};
  const auto path = tiff({layout, layout});
  EXPECT_EQ(refusal(path), "loaded");
  EXPECT_THAT(refusal(path, {.image = {.max_side = 36}}), HasSubstr("limit is 36 a side"));
  EXPECT_THAT(refusal(path, {.image = {.max_pixels = 776}}), HasSubstr("limit is 776 in all"));
  EXPECT_THAT(refusal(path, {.max_pages = 1}), HasSubstr("more than 1 pages"));
  EXPECT_THAT(refusal(path, {.max_channels = 4}), HasSubstr("5 channels, at most 4"));
  EXPECT_THAT(refusal(path, {.max_block_bytes = 3884}), HasSubstr("strips of 3885 bytes"));
  // A part of a picture that is too large as a whole can be read.
  PictureFile file(path, Palette::Colours, {.image = {.max_pixels = 4}});
  expect_samples(file.read(1, {3, 3, 2, 2}), layout, {3, 3, 2, 2}, 1);
  save_png(folder / "b.tif", {1, 1, 1, 8, {0}});
  auto png = test::get_file(folder / "b.tif");
  EXPECT_THAT(refusal_of(png.replace(16, 8, 8, '\0')), HasSubstr("no pixels"));
  EXPECT_THAT(refusal_of(png.replace(16, 8, 8, '\xFF')), HasSubstr("a side"));
  EXPECT_THAT(refusal_of(png.substr(0, 32)), HasSubstr("truncated"));
  EXPECT_THAT(refusal_of("II*"), HasSubstr("not a PNG, TIFF or JPEG"));
  EXPECT_THAT(refusal_of(""), HasSubstr("empty"));
  EXPECT_THAT(refusal(folder / "absent.tif"), HasSubstr("No such file"));
}

TEST_F(PictureTest, every_truncation_of_a_tiff_is_refused_and_every_flip_is_harmless) {
  for (const int compression : {COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE,
                                COMPRESSION_PACKBITS, COMPRESSION_JPEG}) {
    TiffLayout layout = {.width = 16, .height = 16, .compression = compression, .rows = 8};
    const auto whole = test::get_file(tiff({layout, layout}));
    ASSERT_EQ(refusal_of(whole), "loaded");
    for (std::size_t size = 0; size < whole.size(); size += 7) {
      EXPECT_NE(refusal_of(whole.substr(0, size)), "loaded") << compression << " " << size;
    }
    for (auto i = static_cast<std::size_t>(compression % 5); i < whole.size(); i += 5) {
      auto damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ (i % 2 == 0 ? 0x55 : 0xFF));
      refusal_of(damaged, {.image = {.max_pixels = 1 << 20}, .max_block_bytes = 1 << 22});
    }
  }
}

TEST_F(PictureTest, a_ring_of_directories_ends) {
  const TiffLayout layout = {.width = 1, .height = 1};
  auto content = test::get_file(tiff({layout}));
  // The last four bytes of the directory are the offset of the next: its own.
  std::uint32_t first = 0;
  std::uint16_t entries = 0;
  std::memcpy(&first, content.data() + 4, 4);
  std::memcpy(&entries, content.data() + first, 2);
  std::memcpy(content.data() + first + 2 + 12 * entries, &first, 4);
  EXPECT_NE(refusal_of(content), "");
}

TEST_F(PictureTest, jpeg_is_read_grey_and_in_colours) {
  for (const bool progressive : {false, true}) {
    test::put_file(folder / "g.JPG", test::jpeg_of(9, {100}, progressive));
    PictureFile grey(folder / "g.JPG");
    EXPECT_EQ(grey.form(), (PictureForm{9, 8, 1, 8, false}));
    EXPECT_THAT(grey.read(0, {8, 7, 1, 1}).samples, ElementsAre(100));
    test::put_file(folder / "c.jpeg", test::jpeg_of(9, {200, 40, 60}, progressive));
    const auto colours = PictureFile(folder / "c.jpeg").read();
    EXPECT_EQ(colours.form.channels, 3);
    EXPECT_NEAR(colours.samples[0], 200, 2);
    EXPECT_NEAR(colours.samples[1], 40, 2);
  }
  EXPECT_THAT(refusal_of(test::jpeg_of(9, {1, 2, 3, 4})), HasSubstr("4 channels"));
  EXPECT_THAT(refusal_of(test::jpeg_of(9, {1}), {.image = {.max_side = 8}}), HasSubstr("a side"));
  EXPECT_THAT(refusal_of(test::jpeg_of(9, {1}), {.image = {.max_pixels = 71}}),
              HasSubstr("in all"));
}

/// Bytes between two segments and an unknown transform of Adobe's lose no pixel.
TEST_F(PictureTest, what_libjpeg_warns_of_is_refused_only_where_pixels_are_made_up) {
  const auto whole = test::jpeg_of(9, {100});
  const std::string_view marker = "\xFF\xDB";  // of the first table
  const auto with = [&](const std::string& bytes) {
    auto jpeg = whole;
    return jpeg.insert(jpeg.find(marker), bytes);
  };
  EXPECT_EQ(refusal_of(with({})), "loaded");
  EXPECT_EQ(refusal_of(with("xy")), "loaded");
  EXPECT_EQ(refusal_of(with(std::string("\xFF\xEE\0\x0E"
                                        "Adobe\0\0\0\0\0\0\x07",
                                        16))),
            "loaded");
  auto damaged = whole;
  damaged.erase(damaged.size() - 3, 1);  // of the pixels
  EXPECT_NE(refusal_of(damaged), "loaded");
}

TEST_F(PictureTest, every_truncation_of_a_jpeg_is_refused_and_every_flip_is_harmless) {
  for (const bool progressive : {false, true}) {
    const auto whole = test::jpeg_of(24, {200, 40, 60}, progressive);
    for (std::size_t size = 0; size < whole.size(); size += 11) {
      EXPECT_NE(refusal_of(whole.substr(0, size)), "loaded") << size;
    }
    for (std::size_t i = 0; i < whole.size(); i += 7) {
      auto damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
      refusal_of(damaged, {.image = {.max_pixels = 1 << 20}});
    }
  }
}

TEST_F(PictureTest, png_is_read_as_before_without_its_alpha) {
  const Image image = {
      3, 2, 3, 16, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}};
  save_png(folder / "a.PNG", image);
  PictureFile file(folder / "a.PNG");
  EXPECT_EQ(file.form(), (PictureForm{3, 2, 3, 16, false, true}));
  EXPECT_THAT(file.read(0, {1, 1, 2, 1}).samples, ElementsAre(13, 14, 15, 16, 17, 18));
  EXPECT_EQ(to_planes(file.read(), 1), to_gray(image));
}

TEST(Picture, planes_are_channels_luma_or_repetition) {
  const Picture two = {{2, 1, 2, 8, false}, {0, 255, 51, 102}};
  EXPECT_THAT(to_planes(two, 2), ElementsAre(0, 0.2F, 1, 0.4F));
  EXPECT_THROW(to_planes(two, 1), InvalidArgument);
  EXPECT_THROW(to_planes(two, 3), InvalidArgument);
  const Picture real = {{1, 1, 1, 32, true}, {-7.5F}};
  EXPECT_THAT(to_planes(real, 3), ElementsAre(-7.5F, -7.5F, -7.5F));
  const Picture deep = {{1, 1, 1, 12, false}, {4095}};
  EXPECT_THAT(to_planes(deep, 1), ElementsAre(1));
  EXPECT_TRUE(has_picture_name("a.TIFF"));
  EXPECT_TRUE(has_picture_name("b.ome.tif"));
  EXPECT_FALSE(has_picture_name("Thumbs.db"));
}

}  // namespace
}  // namespace triptych::picture_tests
