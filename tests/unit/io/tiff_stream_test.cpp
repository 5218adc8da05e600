// TIFF files that are written while their rows arrive, and the pixel sizes in TIFF files.
// SPDX-License-Identifier: Apache-2.0
#include "core/io/tiff_stream.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/io/output_ledger.h"
#include "tests/unit/io/test_files.h"

namespace triptych::tiff_stream_tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<float> ramp(const PictureForm& form) {
  std::vector<float> samples;
  for (std::int64_t i = 0; i < form.pixels() * form.channels; ++i) {
    const auto value = static_cast<float>(i * 31 % (form.bits == 8 ? 256 : 60000));
    samples.push_back(form.floating ? value / 7 - 100 : value);
  }
  return samples;
}

TEST(TiffStream, is_the_picture_whose_rows_came) {
  const test::TemporaryFolder folder;
  OutputLedger own(folder.path());
  for (const auto& form :
       {PictureForm{300, 600, 1, 8, false}, PictureForm{256, 256, 3, 16, false, true},
        PictureForm{70, 513, 1, 32, true}}) {
    const auto samples = ramp(form);
    const auto row = form.width * form.channels;
    for (const std::int64_t rows : {1, 100, 256, 1000}) {
      const auto file = own.begin("s.tif");
      TiffStream stream(*file, form, {.x_resolution = 4, .y_resolution = 5});
      for (std::int64_t y = 0; y < form.height; y += rows) {
        const auto count = std::min(rows, form.height - y) * row;
        stream.write_rows({samples.data() + y * row, static_cast<std::size_t>(count)});
      }
      own.finish("s.tif", *file, stream.finish());
      PictureFile read(folder / "s.tif");
      EXPECT_EQ(read.form(), form);
      EXPECT_EQ(read.read().samples, samples);
      EXPECT_EQ(read.notes().y_resolution, 5);
      EXPECT_NO_THROW(own.require("s.tif")) << "it is known as the program's own";
    }
  }
}

TEST(TiffStream, that_is_not_finished_leaves_nothing) {
  const test::TemporaryFolder folder;
  {
    OutputLedger own(folder.path());
    const auto file = own.begin("s.tif");
    TiffStream stream(*file, {2, 2, 1, 8, false});
    stream.write_rows(std::vector<float>{1, 2});
    EXPECT_THROW(stream.finish(), InvalidArgument);
    EXPECT_THROW(stream.write_rows(std::vector<float>(6)), InvalidArgument);
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "s.tif"));
  EXPECT_EQ(test::files_in(folder.path()), 0);
}

PictureNotes carried(const std::string& description, const PictureForm& form, std::int64_t pages) {
  const test::TemporaryFolder folder;
  const std::vector<Picture> input(1, {{2, 1, 1, 16, false}, {1, 2}});
  save_tiff(folder / "in.tif", input, {100, 50, 3, description});
  const auto notes = notes_for(PictureFile(folder / "in.tif").notes(), form, pages);
  const std::vector<Picture> output(static_cast<std::size_t>(pages), {form, ramp(form)});
  save_tiff(folder / "out.tif", output, notes);
  PictureFile file(folder / "out.tif");
  EXPECT_EQ(file.pages() * file.form().channels, pages * form.channels);
  return file.notes();
}

TEST(PictureNotes, are_carried_with_the_axes_of_the_output) {
  const PictureForm mask = {2, 1, 1, 8, false}, colours = {2, 1, 3, 8, false};
  const auto plain = carried("slide 7", mask, 1);
  EXPECT_EQ(plain.description, "slide 7");
  EXPECT_EQ(carried("{\"shape\": [3, 1, 2]}", mask, 1).description, "");
  EXPECT_EQ(plain.x_resolution, 100);
  EXPECT_EQ(plain.y_resolution, 50);
  EXPECT_EQ(plain.resolution_unit, 3);
  const std::string imagej = "ImageJ=1.53t\nimages=1\nslices=1\nunit=micron\nspacing=0.5\nmin=3\n";
  EXPECT_EQ(carried(imagej, mask, 1).description, "ImageJ=1.53t\nunit=micron\nspacing=0.5\n");
  EXPECT_THAT(carried(imagej, mask, 3).description, HasSubstr("channels=3\n"));
  const std::string ome =
      "<OME><Image><Pixels DimensionOrder=\"XYZCT\" Type=\"uint16\" SizeX=\"2\" SizeY=\"1\" "
      "SizeC=\"1\" SizeZ=\"1\" SizeT=\"1\" PhysicalSizeX=\"0.25\" PhysicalSizeXUnit=\"nm\"/>"
      "</Image></OME>";
  for (const auto& form : {mask, colours}) {
    EXPECT_THAT(carried(ome, form, 1).description,
                AllOf(HasSubstr("PhysicalSizeX=\"0.25\" PhysicalSizeXUnit=\"nm\""),
                      HasSubstr("Type=\"uint8\""), Not(HasSubstr("PhysicalSizeY"))));
  }
  EXPECT_THAT(carried(ome, {2, 1, 1, 32, true}, 3).description,
              AllOf(HasSubstr("SizeC=\"3\""), HasSubstr("Type=\"float\""),
                    HasSubstr("<Channel ID=\"Channel:0:2\" SamplesPerPixel=\"1\"/>")));
  EXPECT_THAT(carried(ome, colours, 1).description,
              HasSubstr("<Channel ID=\"Channel:0:0\" SamplesPerPixel=\"3\"/><TiffData/>"));
}

}  // namespace
}  // namespace triptych::tiff_stream_tests
