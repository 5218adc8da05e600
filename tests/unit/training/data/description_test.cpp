// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/description.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/io/picture.h"
#include "experiments/training/data/lettering.h"
#include "experiments/training/data/unicode_form.h"
#include "tests/unit/io/test_files.h"

namespace triptych::segmentation::description_tests {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

using Colour = std::array<std::uint16_t, 3>;

Colour pixel_of(const Image& image, std::int64_t x, std::int64_t y) {
  const auto first = image.samples.begin() + 3 * (y * image.width + x);
  return {first[0], first[1], first[2]};
}

class DescriptionTest : public ::testing::Test {
 protected:
  DescriptionTest() {
    std::filesystem::create_directory(folder / "images");
    std::filesystem::create_directory(folder / "masks");
    put("images/a.tif", {0, 10});
    put("images/b.tif", {20, 30});
    for (const auto* name : {"a", "b"}) put(std::string("masks/") + name + ".tif", {0, 255});
  }

  void put(const std::string& name, const std::vector<float>& samples) {
    const Picture page = {{std::ssize(samples), 1, 1, 8, false}, samples};
    save_tiff(folder / name, {&page, 1});
  }
  DatasetOptions options() const {
    DatasetOptions result;
    result.images = folder / "images";
    result.masks = folder / "masks";
    return result;
  }

  test::TemporaryFolder folder;
};

TEST_F(DescriptionTest, a_set_in_order_needs_nothing) {
  const auto said = describe_dataset(options());
  EXPECT_EQ(said.images, 2);
  EXPECT_EQ(said.masks, 2);
  EXPECT_THAT(said.forms, ElementsAre(Pair("2 x 1 pixels, 1 channel, 8 bits", 2)));
  EXPECT_EQ(said.values.least, 0);
  EXPECT_EQ(said.values.greatest, 30);
  EXPECT_EQ(said.values.mean, 15);
  EXPECT_NEAR(said.values.deviation, 11.18, 0.01);
  EXPECT_THAT(said.labels, ElementsAre(Pair(0, 2), Pair(255, 2)));
  EXPECT_THAT(said.suggestions, IsEmpty());
  EXPECT_THAT(said.damaged, IsEmpty());
}

TEST_F(DescriptionTest, what_is_wrong_is_all_listed) {
  put("images/c.tif", {0, 10});
  put("images/d.tif", {1, 2});
  put("masks/d.tif", {0, 1, 1});
  put("masks/lone.tif", {0});
  test::put_file(folder / "images/e.png", "text");
  test::put_file(folder / "images/Thumbs.db", "x");
  const auto said = describe_dataset(options());
  EXPECT_THAT(said.note, HasSubstr("Thumbs.db"));
  EXPECT_THAT(said.without_mask, ElementsAre("c", "e"));
  EXPECT_THAT(said.without_image, ElementsAre("lone.tif"));
  ASSERT_EQ(said.duplicates.size(), 1u);
  EXPECT_EQ(said.duplicates[0].first + said.duplicates[0].second, "ac");
  EXPECT_THAT(said.damaged, ElementsAre(HasSubstr("d.tif\" has 3 x 1 pixels, its image has 2"),
                                        HasSubstr("e.png\": not a PNG")));
  EXPECT_THAT(said.suggestions, Contains(HasSubstr("masks that are missing")));
}

TEST_F(DescriptionTest, duplicates_across_splits_and_labels_lead_to_suggestions) {
  put("images/b.tif", {0, 10});
  put("masks/b.tif", {0, 128});
  test::put_file(folder / "list.csv", "id,split\na,train\nb,validation\n");
  auto wanted = options();
  wanted.list = folder / "list.csv";
  const auto said = describe_dataset(wanted);
  EXPECT_THAT(said.splits, UnorderedElementsAre(Pair("train", 1), Pair("validation", 1)));
  EXPECT_THAT(said.suggestions,
              ElementsAre(HasSubstr("into one split"), HasSubstr("the option labels 0,128,255")));
  wanted.ignored = 255;
  EXPECT_THAT(describe_dataset(wanted).labels, ElementsAre(Pair(0, 2), Pair(128, 1)));
  EXPECT_EQ(describe_dataset(wanted).ignored, 1);
  put("masks/a.tif", {0, 0});
  put("masks/b.tif", {0, 0});
  EXPECT_THAT(describe_dataset(wanted).suggestions,
              Contains(HasSubstr("every pixel of every mask is 0")));
}

TEST_F(DescriptionTest, values_that_training_refuses_are_damage_and_said_once) {
  const Picture huge = {{2, 1, 1, 32, true}, {0, 2e6F}};
  save_tiff(folder / "images/a.tif", {&huge, 1});
  test::put_file(folder / "images/b.tif", "text");
  test::put_file(folder / "masks/a.tif", "text");
  const auto said = describe_dataset(options());
  EXPECT_THAT(said.damaged,
              ElementsAre(AllOf(HasSubstr("images/a.tif\": it has a value of 2000000"),
                                HasSubstr("within 1000000")),
                          HasSubstr("masks/a.tif\": not a PNG"), HasSubstr("images/b.tif")));
}

TEST_F(DescriptionTest, what_to_do_about_labels_is_what_training_says) {
  for (const auto& [a, b] : {std::pair(std::vector<float>{0, 1}, std::vector<float>{1, 255}),
                             std::pair(std::vector<float>{0, 1}, std::vector<float>{0, 255}),
                             std::pair(std::vector<float>{3, 1}, std::vector<float>{9, 27})}) {
    put("masks/a.tif", a);
    put("masks/b.tif", b);
    const auto suggestions = describe_dataset(options()).suggestions;
    ASSERT_EQ(suggestions.size(), 1u);
    try {
      load_dataset(options());
      ADD_FAILURE() << "loaded";
    } catch (const IoError& error) {
      EXPECT_THAT(error.what(), HasSubstr(suggestions[0]));
    }
  }
}

TEST_F(DescriptionTest, images_alone_are_described_and_shown) {
  auto wanted = options();
  wanted.masks.clear();
  const auto said = describe_dataset(wanted);
  EXPECT_THAT(said.without_mask, ElementsAre("a", "b"));
  EXPECT_EQ(contact_sheet(wanted, 1).width, 2 * 128 + 4);

  const auto sheet = contact_sheet(options(), 24);
  EXPECT_EQ(sheet.width, 4 * 128 + 3 * 4);
  EXPECT_EQ(sheet.height, 128 + 4 + 7 + 4);
  EXPECT_EQ(pixel_of(sheet, 0, 0), (Colour{0, 0, 0}));
  EXPECT_EQ(pixel_of(sheet, 1, 0), (Colour{255, 255, 255}));
  EXPECT_EQ(pixel_of(sheet, 132, 0), (Colour{0, 0, 0})) << "its mask";
}

TEST_F(DescriptionTest, a_contact_sheet_has_names_and_colours) {
  const Picture colours = {{2, 1, 3, 8, false, true}, {0, 255, 0, 255, 0, 0}};
  save_tiff(folder / "images/a.tif", {&colours, 1});
  put("masks/a.tif", {1, 2});
  put("masks/b.tif", {1, 2});
  const auto sheet = contact_sheet(options(), 24);
  EXPECT_EQ(pixel_of(sheet, 0, 0), (Colour{0, 255, 0}));
  EXPECT_EQ(pixel_of(sheet, 1, 0), (Colour{255, 0, 0}));
  EXPECT_EQ(pixel_of(sheet, 133, 0), (Colour{255, 255, 255}));
  Image lettered = {.width = sheet.width, .height = sheet.height, .channels = 3};
  lettered.samples.assign(sheet.samples.size(), 255);
  draw_text("a", 0, 132, 260, lettered);
  draw_text("b", 264, 132, 260, lettered);
  const auto names = 3 * 132 * sheet.width;
  EXPECT_TRUE(std::equal(sheet.samples.begin() + names, sheet.samples.end(),
                         lettered.samples.begin() + names));
  EXPECT_NE(std::ranges::count(lettered.samples, 0), 0);
}

TEST_F(DescriptionTest, a_name_in_another_unicode_form_is_reported) {
  std::filesystem::rename(folder / "images/a.tif", folder / "images/caf\xc3\xa9.tif");
  std::filesystem::rename(folder / "masks/a.tif", folder / "masks/cafe\xcc\x81.tif");
  EXPECT_THAT(describe_dataset(options()).suggestions, Contains(HasSubstr("(NFC or NFD)")));
  try {
    load_dataset(options());
    ADD_FAILURE() << "loaded";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("has no mask"), HasSubstr("(NFC or NFD)")));
  }
  auto listed = options();
  listed.list = folder / "list.csv";
  test::put_file(listed.list, "cafe\xcc\x81\n");
  EXPECT_THAT([&] { load_dataset(listed); },
              ::testing::ThrowsMessage<IoError>(HasSubstr("(NFC or NFD)")));
}

TEST(UnicodeForm, texts_differ_by_it_alone) {
  const char *composed = "\xc3\xa9t\xc3\xa9", *decomposed = "e\xcc\x81te\xcc\x81";
  EXPECT_TRUE(differ_in_unicode_form(composed, decomposed));
  EXPECT_FALSE(differ_in_unicode_form(composed, composed));
  EXPECT_FALSE(differ_in_unicode_form(composed, "ete"));
  EXPECT_FALSE(differ_in_unicode_form(composed, "\xc3\xa4t\xc3\xa4")) << "one form";
  EXPECT_FALSE(differ_in_unicode_form(composed, "e\xcc\x81ta\xcc\x81x"));
  EXPECT_TRUE(differ_in_unicode_form("\xed\x95\x9c", "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab"))
      << "Hangul";
  EXPECT_FALSE(differ_in_unicode_form("\xff\xc3", "a"));
}

TEST(Lettering, long_names_lose_their_middle) {
  EXPECT_EQ(fitting("image_012", 60), "image_012");
  EXPECT_EQ(fitting("image_of_cells_012", 59), "imag.._012");
  EXPECT_EQ(fitting("caf\xc3\xa9", 60), "caf?");
  EXPECT_EQ(fitting("image", 6), "i");
}

}  // namespace
}  // namespace triptych::segmentation::description_tests
