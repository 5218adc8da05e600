// Data sets of TIFF and JPEG files, stacks, lists of every kind and masks of every kind.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/picture_files.h"

#include <gmock/gmock.h>

#include <limits>

#include "core/base/error.h"
#include "experiments/training/data/labels.h"
#include "tests/unit/io/test_files.h"

namespace triptych::segmentation::picture_files_tests {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr PictureForm kGrey = {2, 1, 1, 8, false};

class PictureFilesTest : public ::testing::Test {
 protected:
  PictureFilesTest() {
    std::filesystem::create_directory(folder / "images");
    std::filesystem::create_directory(folder / "masks");
  }

  void put(const std::string& name, const PictureForm& form,
           const std::vector<std::vector<float>>& pages) {
    std::vector<Picture> pictures;
    for (const auto& samples : pages) pictures.push_back({form, samples});
    save_tiff(folder / name, pictures);
  }
  void put_pair(const std::string& name) {
    put("images/" + name + ".tif", kGrey, {{0, 255}});
    put("masks/" + name + ".tif", kGrey, {{0, 255}});
  }
  DatasetOptions options(const std::string& list = "") {
    DatasetOptions result;
    result.images = folder / "images";
    result.masks = folder / "masks";
    if (list.empty()) return result;
    test::put_file(folder / "list.csv", list);
    result.list = folder / "list.csv";
    return result;
  }
  std::string refusal(const DatasetOptions& wanted) {
    try {
      load_dataset(wanted);
      return "loaded";
    } catch (const Error& error) {
      return error.what();
    }
  }
  static std::vector<std::string> names(const Dataset& dataset) {
    std::vector<std::string> result;
    for (const auto& sample : dataset.samples) result.push_back(sample.name);
    return result;
  }

  test::TemporaryFolder folder;
};

TEST_F(PictureFilesTest, stacks_give_a_sample_a_section) {
  put("images/s.TIFF", kGrey, {{0, 255}, {51, 0}, {1, 2}});
  put("masks/s.tif", kGrey, {{0, 255}, {255, 0}, {0, 0}});
  put_pair("a");
  const auto dataset = load_dataset(options());
  EXPECT_THAT(names(dataset), ElementsAre("a", "s_000", "s_001", "s_002"));
  EXPECT_THAT(dataset.samples[2].image, ElementsAre(0.2F, 0));
  EXPECT_THAT(dataset.samples[2].labels, ElementsAre(1, 0));
  EXPECT_THAT(names(load_dataset(options("id,split\ns_002,x\na,y\n"))), ElementsAre("s_002", "a"));
  EXPECT_THAT(names(load_dataset(options("s"))), ElementsAre("s_000", "s_001", "s_002"));
  EXPECT_THAT(refusal(options("s_003")), HasSubstr("has 3 sections"));
  put("masks/s.tif", kGrey, {{0, 255}, {255, 0}});
  EXPECT_THAT(refusal(options()), AllOf(HasSubstr("masks/s.tif"), HasSubstr("has 2 sections")));
}

TEST_F(PictureFilesTest, an_ome_tiff_finds_the_mask_of_its_plain_name_and_the_reverse) {
  put("images/a.ome.tif", kGrey, {{0, 255}});
  put("masks/a.tif", kGrey, {{0, 255}});
  put("images/b.tif", kGrey, {{1, 254}});
  put("masks/b.ome.tif", kGrey, {{255, 0}});
  const auto dataset = load_dataset(options());
  EXPECT_THAT(names(dataset), ElementsAre("a.ome", "b"));
  EXPECT_THAT(dataset.samples[0].labels, ElementsAre(0, 1));
  EXPECT_THAT(dataset.samples[1].labels, ElementsAre(1, 0));
}

TEST_F(PictureFilesTest, masks_and_images_have_the_same_sections) {
  put("images/a.tif", kGrey, {{0, 255}, {1, 254}});
  put("masks/a.tif", kGrey, {{0, 255}, {0, 255}, {255, 0}});
  EXPECT_THAT(refusal(options()),
              AllOf(HasSubstr("masks/a.tif\" has 3 sections"), HasSubstr("images/a.tif\" 2")));
  // Three sections that were saved as red, green and blue.
  put("images/a.tif", {2, 1, 3, 8, false, true}, {{0, 1, 2, 3, 4, 5}});
  EXPECT_THAT(refusal(options()), HasSubstr("of red, green and blue"));
}

TEST_F(PictureFilesTest, names_of_masks_follow_a_pattern_even_among_the_images) {
  put("images/a.tif", kGrey, {{0, 255}});
  put("images/b.tif", kGrey, {{0, 255}});
  for (const auto* place : {"images/a_mask.tif", "images/b_mask.tif", "masks/M-a.tif"}) {
    put(place, kGrey, {{0, 255}});
  }
  auto wanted = options();
  wanted.masks = wanted.images;
  for (const auto* pattern : {"{name}_mask.tif", "{name}_mask"}) {
    wanted.mask_pattern = pattern;
    EXPECT_THAT(names(load_dataset(wanted)), ElementsAre("a", "b")) << pattern;
  }
  wanted = options("a");
  wanted.mask_pattern = "M-{name}";
  EXPECT_EQ(load_dataset(wanted).samples.size(), 1u);
  wanted = options("image,mask\na.tif,M-a.tif\n");
  EXPECT_EQ(load_dataset(wanted).samples.size(), 1u);
  for (const auto* wrong : {"mask", "{name}{name}", "../{name}"}) {
    wanted.mask_pattern = wrong;
    EXPECT_THAT(refusal(wanted), HasSubstr("{name}")) << wrong;
  }
}

TEST_F(PictureFilesTest, lists_come_as_programs_write_them) {
  for (const auto* name : {"a", "b", "c d"}) put_pair(name);
  for (const auto* list :
       {"\xEF\xBB\xBFid,split\na,train\nb,test\nc d,train\n",
        "id, split\r\na , train\r\nb, test\r\n\"c d\",\"train\"\r\n",
        "Image,Subset,width\na.tif,train,2\nb.TIF,test,2\n\"c d.tif\",train,\"2,5\"\n",
        "split,name\ntrain,a\ntest,b\ntrain,c d"}) {
    auto wanted = options(list);
    wanted.splits = {"train"};
    EXPECT_THAT(names(load_dataset(wanted)), ElementsAre("a", "c d")) << list;
  }
  EXPECT_THAT(refusal(options("picture,split\na,train\n")),
              AllOf(HasSubstr("\"picture\", \"split\""), HasSubstr("id, image, name, file")));
}

TEST_F(PictureFilesTest, lists_have_the_separator_of_their_first_line) {
  for (const auto* name : {"a", "b", "c;d", "e,f"}) put_pair(name);
  for (const auto* list :
       {"\xEF\xBB\xBFid;split\r\n\"a\";train\r\nb.tif;test\r\n\"c;d\";train\r\ne,f;x\r\n",
        "id\tsplit\na\ttrain\nb\ttest\nc;d\ttrain\n",
        "\n\nname;\"a,b,c,d\";set\na;;train\n\"c;d\";1;train", "id,split\na,train\nc;d,train\n"}) {
    auto wanted = options(list);
    wanted.splits = {"train"};
    EXPECT_THAT(names(load_dataset(wanted)), ElementsAre("a", "c;d")) << list;
  }
  EXPECT_THAT(refusal(options("id;split\na,train\n")), HasSubstr("line 2 has 1 field, expected 2"));
  EXPECT_THAT(refusal(options("picture;split\na;train\n")), HasSubstr("\"picture\", \"split\""));
}

TEST_F(PictureFilesTest, two_rows_never_name_one_picture) {
  put("images/s.tif", kGrey, {{0, 255}, {255, 0}, {1, 2}});
  put("masks/s.tif", kGrey, {{0, 255}, {255, 0}, {0, 0}});
  put_pair("a");
  put_pair("b");
  const std::pair<const char*, const char*> cases[] = {
      {"id,split\na,train\nb,train\na.tif,validation\n", "line 2 (\"a\") and line 4 (\"a.tif\")"},
      {"id,split\ns,train\ns_002,validation\n", "line 2 (\"s\") and line 3 (\"s_002\")"},
      {"id,split\ns_002,train\ns.tif,validation\n", "line 2 (\"s_002\") and line 3 (\"s.tif\")"},
      {"id,split\ns,train\ns.tif,validation\n", "line 2 (\"s\") and line 3 (\"s.tif\")"},
      {"id,split\ns_001,train\ns_0001,validation\n", "line 2 (\"s_001\") and line 3 (\"s_0001\")"},
      {"id,split\na,train\na,test\n", "line 2 (\"a\") and line 3 (\"a\")"},
      {"id,split\na,train\nb,test\na_000,test\n", "line 2 (\"a\") and line 4 (\"a_000\")"}};
  for (const auto& [list, says] : cases) {
    auto wanted = options(list);
    wanted.splits = {"train", "validation"};
    EXPECT_THAT(refusal(wanted), AllOf(HasSubstr(says), HasSubstr("list.csv"))) << list;
  }
  EXPECT_EQ(load_dataset(options("s_002\na\ns_000\n")).samples.size(), 3u);
}

TEST_F(PictureFilesTest, two_pictures_never_have_one_name) {
  put("images/y.tif", kGrey, {{0, 255}, {255, 0}});
  put("masks/y.tif", kGrey, {{0, 255}, {255, 0}});
  put_pair("y_002");
  put_pair("a");
  put_pair("a_000");
  EXPECT_THAT(names(load_dataset(options())), ElementsAre("a", "a_000", "y_000", "y_001", "y_002"));
  put_pair("y_001");
  for (const auto* list : {"", "y_001\ny_000\n"}) {
    EXPECT_THAT(refusal(options(list)),
                AllOf(HasSubstr("images/y_001.tif\""),
                      HasSubstr("images/y.tif\" have the same name, y_001")));
  }
}

TEST_F(PictureFilesTest, channels_are_those_of_the_network) {
  put("images/a.tif", {2, 1, 5, 8, false}, {{0, 51, 102, 153, 204, 255, 0, 0, 0, 51}});
  put("masks/a.tif", kGrey, {{0, 255}});
  auto wanted = options();
  EXPECT_THAT(
      refusal(wanted),
      AllOf(HasSubstr("a.tif"), HasSubstr("5 channels, which are no colours, and 1 is asked")));
  wanted.channels = 5;
  EXPECT_THAT(load_dataset(wanted).samples[0].image,
              ElementsAre(0, 1, 0.2F, 0, 0.4F, 0, 0.6F, 0, 0.8F, 0.2F));
}

TEST_F(PictureFilesTest, floating_values_stay_as_they_are_within_bounds) {
  put("masks/a.tif", {2, 1, 1, 32, true}, {{0, 1}});
  put("images/a.tif", {2, 1, 1, 32, true}, {{-3.5F, 1000}});
  EXPECT_THAT(load_dataset(options()).samples[0].image, ElementsAre(-3.5F, 1000));
  for (const float value :
       {2e6F, std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    put("images/a.tif", {2, 1, 1, 32, true}, {{0, value}});
    EXPECT_THAT(refusal(options()), AllOf(HasSubstr("images/a.tif"), HasSubstr("finite")));
  }
}

TEST_F(PictureFilesTest, masks_of_any_samples_hold_whole_numbers) {
  put_pair("a");
  auto wanted = options();
  wanted.labels = "instances";
  for (const float value : {1.0F, 40000.0F}) {
    put("masks/a.tif", {2, 1, 1, 32, true}, {{0, value}});
    EXPECT_THAT(load_dataset(wanted).samples[0].labels, ElementsAre(0, 1));
  }
  for (const float value : {0.5F, -1.0F, 65536.0F}) {
    put("masks/a.tif", {2, 1, 1, 32, true}, {{0, value}});
    EXPECT_THAT(refusal(wanted), AllOf(HasSubstr("masks/a.tif"), HasSubstr("whole numbers")));
  }
  put("masks/a.tif", {2, 1, 2, 8, false}, {{0, 1, 0, 1}});
  EXPECT_THAT(refusal(wanted), HasSubstr("2 channels, a mask has one"));
}

TEST_F(PictureFilesTest, colours_of_one_luma_are_told_apart_or_refused) {
  put_pair("a");
  auto wanted = options();
  wanted.labels = "instances";
  put("masks/a.tif", {2, 1, 3, 8, false, true}, {{0, 0, 0, 255, 0, 0}});
  EXPECT_THAT(load_dataset(wanted).samples[0].labels, ElementsAre(0, 1));
  put("masks/a.tif", {2, 1, 3, 8, false, true}, {{0, 130, 0, 255, 0, 0}});
  EXPECT_THAT(refusal(wanted),
              AllOf(HasSubstr("masks/a.tif"), HasSubstr("(0, 130, 0) and (255, 0")));
  wanted.labels = "above-half";  // which drawings of soft edges have, with many colours of a luma
  EXPECT_THAT(load_dataset(wanted).samples[0].labels, ElementsAre(0, 0));
}

TEST_F(PictureFilesTest, pixels_of_the_value_to_be_ignored_have_no_class) {
  put("images/a.tif", {4, 1, 1, 8, false}, {{0, 1, 2, 3}});
  put("masks/a.tif", {4, 1, 1, 8, false}, {{0, 1, 255, 1}});
  EXPECT_THAT(refusal(options()), HasSubstr("the option ignore-label 255"));
  auto wanted = options();
  wanted.ignored = 255;
  wanted.class_names = {"background", "nucleus"};
  const auto dataset = load_dataset(wanted);
  EXPECT_EQ(dataset.labels, "0,1");
  EXPECT_EQ(dataset.labelling,
            "0 is class 0, background (25 % of the pixels), 1 is class 1, nucleus (50 %), 25 % "
            "ignored");
  EXPECT_THAT(dataset.samples[0].labels, ElementsAre(0, 1, kIgnored, 1));
  put("masks/a.tif", {4, 1, 1, 8, false}, {{255, 255, 255, 255}});
  EXPECT_THAT(refusal(wanted), HasSubstr("every pixel of every mask is to be ignored"));
  auto counted = options();
  counted.labels = "instances";
  EXPECT_THAT(load_dataset(counted).labelling, HasSubstr("no pixel is of class 0"));
}

TEST_F(PictureFilesTest, pictures_of_one_pixel_and_thin_ones_load) {
  put("images/a.tif", {1, 1, 1, 8, false}, {{7}});
  put("masks/a.tif", {1, 1, 1, 8, false}, {{0}});
  put("images/b.tif", {1, 300, 1, 8, false}, {std::vector<float>(300, 9)});
  put("masks/b.tif", {1, 300, 1, 8, false}, {std::vector<float>(300, 1)});
  EXPECT_EQ(load_dataset(options()).samples[1].height, 300);
}

TEST(ClassNames, there_is_one_for_each_class) {
  EXPECT_THAT(parse_class_names("background, nucleus", 1), ElementsAre("background", "nucleus"));
  for (const auto* wrong : {"a", "a,b,c", "a,a", "a,", " ,b"}) {
    EXPECT_THROW(parse_class_names(wrong, 2), InvalidArgument) << wrong;
  }
}

}  // namespace
}  // namespace triptych::segmentation::picture_files_tests
