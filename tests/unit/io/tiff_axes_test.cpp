// SPDX-License-Identifier: Apache-2.0
#include "core/io/tiff_axes.h"

#include <gmock/gmock.h>

#include <numeric>

#include "core/base/error.h"
#include "core/io/picture.h"
#include "tests/unit/io/test_files.h"
#include "tests/unit/io/tiff_samples.h"

namespace triptych::tiff_axes_tests {
namespace {

using internal::counted_images;
using internal::tiff_sections;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::int64_t> numbers(std::int64_t count) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(count));
  std::iota(result.begin(), result.end(), 0);
  return result;
}

std::string refusal(const std::string& description, std::int64_t directories) {
  try {
    tiff_sections(description, numbers(directories), 1);
    return "read";
  } catch (const IoError& error) {
    return error.what();
  }
}

std::string ome(const std::string& sizes, const std::string& data) {
  return "<OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\"><Image><Pixels " +
         sizes + ">" + data + "</Pixels></Image></OME>";
}

TEST(TiffAxes, planes_of_ome_lie_where_tiff_data_say) {
  std::string reversed;
  for (int z = 0; z < 3; ++z)
    reversed +=
        "<TiffData FirstZ=\"" + std::to_string(z) + "\" IFD=\"" + std::to_string(2 - z) + "\"/>";
  const std::string sizes = "DimensionOrder=\"XYZCT\" SizeC=\"1\" SizeZ=\"3\" SizeT=\"1\"";
  EXPECT_THAT(tiff_sections(ome(sizes, reversed), numbers(3), 1),
              ElementsAre(ElementsAre(2), ElementsAre(1), ElementsAre(0)));
  EXPECT_THAT(
      tiff_sections(ome(sizes, "<TiffData IFD=\"0\" PlaneCount=\"3\"></TiffData>"), numbers(3), 1),
      ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
  const std::string channels = "DimensionOrder=\"XYCZT\" SizeC=\"2\" SizeZ=\"2\" SizeT=\"1\"";
  const std::string parts =
      "<TiffData FirstC=\"0\" FirstZ=\"1\" IFD=\"0\" PlaneCount=\"2\"/>"
      "<TiffData FirstC=\"1\" FirstZ=\"0\" IFD=\"2\"/><TiffData IFD=\"3\" PlaneCount=\"1\"/>";
  EXPECT_THAT(tiff_sections(ome(channels, parts), numbers(4), 1),
              ElementsAre(ElementsAre(3, 2), ElementsAre(0, 1)));
  // Directories are numbered with the thumbnails, which are no planes.
  EXPECT_THAT(tiff_sections(ome(sizes,
                                "<TiffData FirstZ=\"0\" IFD=\"0\"/><TiffData FirstZ=\"1\" "
                                "IFD=\"2\"/><TiffData FirstZ=\"2\" IFD=\"3\"/>"),
                            std::vector<std::int64_t>{0, 2, 3}, 1),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
}

TEST(TiffAxes, tiff_data_that_do_not_fit_are_refused) {
  const std::string sizes = "SizeC=\"1\" SizeZ=\"2\" SizeT=\"1\"";
  EXPECT_THAT(refusal(ome(sizes, "<TiffData IFD=\"0\"/>"), 2), HasSubstr("plane 1 no directory"));
  EXPECT_THAT(refusal(ome(sizes, "<TiffData IFD=\"2\"/>"), 2), HasSubstr("directory 2"));
  EXPECT_THAT(refusal(ome(sizes, "<TiffData IFD=\"0\"/><TiffData IFD=\"1\"/>"), 2),
              HasSubstr("plane 0 twice"));
  EXPECT_THAT(refusal(ome(sizes, "<TiffData IFD=\"0\"/><TiffData FirstZ=\"1\" IFD=\"0\"/>"), 2),
              HasSubstr("plane 1 no directory of its own"));
  EXPECT_THAT(refusal(ome(sizes, "<TiffData FirstZ=\"-1\"/>"), 2), HasSubstr("\"-1\""));
  EXPECT_THAT(refusal(ome(sizes,
                          "<TiffData IFD=\"0\"><UUID FileName=\"a.tif\">u</UUID></TiffData>"
                          "<TiffData FirstZ=\"1\" IFD=\"0\"><UUID FileName=\"b.tif\"/></TiffData>"),
                      2),
              HasSubstr("\"a.tif\" and \"b.tif\""));
  EXPECT_THAT(
      refusal("<OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\"><BinaryOnly "
              "MetadataFile=\"x.companion.ome\"/></OME>",
              2),
      HasSubstr("lies in \"x.companion.ome\""));
}

TEST(TiffAxes, axes_of_tifffile_are_respected) {
  EXPECT_THAT(tiff_sections(R"({"shape": [3, 8, 9], "axes": "CYX"})", numbers(3), 1),
              ElementsAre(ElementsAre(0, 1, 2)));
  EXPECT_THAT(tiff_sections(R"({"shape": [2, 3, 8, 9], "axes": "ZCYX"})", numbers(6), 1),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5)));
  EXPECT_THAT(
      tiff_sections(R"({"shape": [2, 2, 2, 8, 9], "axes": "TCZYX"})", numbers(8), 1),
      ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3), ElementsAre(4, 6), ElementsAre(5, 7)));
  EXPECT_THAT(tiff_sections(R"({"shape": [8, 9, 3], "axes": "YXC"})", numbers(1), 3),
              ElementsAre(ElementsAre(0)));
  EXPECT_THAT(tiff_sections(R"({"shape": [3, 8, 9], "axes": "CYX"})", numbers(1), 3),
              ElementsAre(ElementsAre(0)));
  EXPECT_EQ(tiff_sections(R"({"shape": [3, 8, 9]})", numbers(3), 1).size(), 3U);
  EXPECT_EQ(tiff_sections(R"({"shape": [3, 8, 9], "axes": "ZYX"})", numbers(3), 1).size(), 3U);
  EXPECT_THAT(refusal(R"({"shape": [3, 8, 9], "axes": "CYX"})", 4), HasSubstr("of 3 planes"));
  EXPECT_THAT(refusal(R"({"shape": [3, 8], "axes": "CYX"})", 3), HasSubstr("2 lengths"));
  EXPECT_THAT(refusal(R"({"shape": ["x"]})", 3), HasSubstr("length"));
  EXPECT_THAT(refusal(R"({"shape": [)", 3), HasSubstr("JSON"));
}

TEST(TiffAxes, images_behind_one_directory_are_counted) {
  EXPECT_EQ(counted_images("ImageJ=1.5\nimages=7\n", 1), 7);
  EXPECT_EQ(counted_images(R"({"shape": [2, 5, 8, 9], "truncated": true})", 1), 10);
  EXPECT_EQ(counted_images(R"({"shape": [5, 8, 9, 3], "truncated": true})", 3), 5);
  EXPECT_EQ(counted_images(R"({"shape": [5, 8, 9]})", 1), 0);
  EXPECT_EQ(counted_images("anything", 1), 0);
}

/// A look-up table that ImageJ or tifffile stored with the numbers.
TEST(TiffAxes, palettes_of_imagej_and_tifffile_are_for_display) {
  const test::TemporaryFolder folder;
  test::TiffLayout layout = {.width = 2, .height = 1, .photometric = PHOTOMETRIC_PALETTE};
  for (const auto* description : {"ImageJ=1.53t\n", R"({"shape": [1, 2]})"}) {
    layout.description = description;
    test::put_tiff(folder / "a.tif", {layout});
    for (const auto palette : {Palette::Colours, Palette::Indices}) {
      const auto read = PictureFile(folder / "a.tif", palette).read();
      EXPECT_FALSE(read.form.palette);
      EXPECT_THAT(read.samples, ElementsAre(0, 7));
      EXPECT_TRUE(read.shown.empty());
    }
    auto white = layout;
    white.photometric = PHOTOMETRIC_MINISWHITE;
    test::put_tiff(folder / "b.tif", {white});
    EXPECT_THAT(PictureFile(folder / "b.tif").read().samples, ElementsAre(0, 7));
  }
  layout.description.clear();
  test::put_tiff(folder / "a.tif", {layout});
  EXPECT_TRUE(PictureFile(folder / "a.tif").form().palette);
  const auto indices = PictureFile(folder / "a.tif", Palette::Indices).read();
  ASSERT_EQ(indices.shown.size(), 256U);
  EXPECT_THAT(indices.shown[7], ElementsAre(7, 248, 0x12));
}

}  // namespace
}  // namespace triptych::tiff_axes_tests
