// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/picture_set.h"

#include <gmock/gmock.h>

#include "core/base/error.h"

namespace triptych::segmentation::picture_set_tests {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Colour kBlack = {0, 0, 0}, kRed = {255, 0, 0}, kBlue = {0, 0, 255},
                 kWhite = {255, 255, 255};

MaskValues mask(std::vector<std::uint16_t> values, ColourTable shown = {}) {
  return {.values = std::move(values), .shown = std::move(shown)};
}

std::vector<std::uint16_t> values_of(const MaskSummary& summary) {
  std::vector<std::uint16_t> values;
  for (const auto& cell : summary.cells) values.push_back(cell.value);
  return values;
}

/// The set of these masks, called "a", "b", ...
MaskSet set_of(const std::vector<MaskValues>& masks, MaskSetOptions options = {}) {
  MaskSet set(std::move(options));
  for (std::size_t i = 0; i < masks.size(); ++i)
    set.add(summarize(masks[i], std::string(1, static_cast<char>('a' + i))));
  set.decide();
  return set;
}

std::string refusal(const std::vector<MaskValues>& masks, MaskSetOptions options = {}) {
  try {
    set_of(masks, std::move(options));
    return "taken";
  } catch (const IoError& error) {
    return error.what();
  }
}

TEST(MaskSet, numbers_count_where_all_palettes_agree) {
  const auto set = set_of({mask({0, 1, 2}, {kBlack, kRed, kBlue}), mask({0, 1}, {kBlack, kRed})});
  EXPECT_EQ(set.note(), "");
  EXPECT_THAT(values_of(set.masks()[0]), ElementsAre(0, 1, 2));
  EXPECT_EQ(set.palette(), "0=000000,1=ff0000,2=0000ff");
  // Unused entries need not agree.
  EXPECT_EQ(set_of({mask({0, 1}, {kBlack, kRed, kBlue}), mask({0}, {kBlack, kBlue})}).note(), "");
  // One palette may show two numbers in one colour.
  const ColourTable twice = {kBlack, kRed, kBlack};
  EXPECT_EQ(set_of({mask({0, 1}, twice), mask({1, 2}, twice)}).note(), "");
}

TEST(MaskSet, colours_count_where_palettes_differ) {
  const auto set = set_of({mask({0, 1}, {kBlack, kWhite}), mask({0, 1}, {kWhite, kBlack})});
  EXPECT_THAT(set.note(),
              AllOf(HasSubstr("by the colours"), HasSubstr("\"a\""), HasSubstr("\"b\"")));
  EXPECT_THAT(values_of(set.masks()[0]), ElementsAre(0, 255));
  EXPECT_THAT(values_of(set.masks()[1]), ElementsAre(0, 255));
  EXPECT_EQ(set.masks()[1].cells[0].pixels, 1);
  EXPECT_EQ(set.meaning(0, {kBlack, kWhite}), 0);
  EXPECT_EQ(set.meaning(0, {kWhite, kBlack}), 255);
  EXPECT_EQ(set.meaning(128, {}), 128);
  EXPECT_EQ(set.palette(), "");
  // A palette and greys: number 1 is white here and nearly black there.
  const auto mixed = set_of({mask({0, 1}, {kBlack, kWhite}), mask({0, 255})});
  EXPECT_THAT(values_of(mixed.masks()[0]), ElementsAre(0, 255));
}

TEST(MaskSet, two_colours_of_one_luma_are_refused_across_files) {
  EXPECT_THAT(refusal({mask({0, 1}, {kBlack, kRed}), mask({0, 1}, {kBlack, {76, 76, 76}})}),
              AllOf(HasSubstr("\"a\""), HasSubstr("\"b\""), HasSubstr("grey value 76")));
  EXPECT_THAT(refusal({mask({0, 9}, {kBlack, kRed})}), HasSubstr("its palette has 2 colours"));
}

TEST(MaskSet, masks_of_another_set_are_read_by_the_palette_of_the_training) {
  const MaskSetOptions trained = {
      .labels = "0,1,2", .classes = 3, .palette = "0=000000,1=ff0000,2=0000ff"};
  const auto same = set_of({mask({0, 2}, {kBlack, kRed, kBlue})}, trained);
  EXPECT_THAT(values_of(same.masks()[0]), ElementsAre(0, 2));
  const auto other = set_of({mask({0, 1, 2}, {kBlue, kBlack, kRed})}, trained);
  EXPECT_THAT(values_of(other.masks()[0]), ElementsAre(0, 1, 2));
  EXPECT_EQ(other.meaning(0, {kBlue, kBlack, kRed}), 2);
  EXPECT_EQ(other.meaning(2, {kBlue, kBlack, kRed}), 1);
  EXPECT_EQ(other.meaning(2, {}), 2) << "numbers without a palette are numbers";
  EXPECT_THAT(refusal({mask({0, 1}, {kBlack, kWhite})}, trained),
              AllOf(HasSubstr("\"a\""), HasSubstr("(255, 255, 255)"), HasSubstr("lacks")));
  EXPECT_THROW(MaskSet({.palette = "0=12345"}), InvalidArgument);
  EXPECT_THROW(MaskSet({.palette = "x=123456"}), InvalidArgument);
}

TEST(MaskSet, given_labels_choose_the_reading_that_they_fit) {
  const std::vector<MaskValues> masks = {mask({0, 1}, {kBlack, kWhite})};
  EXPECT_THAT(values_of(set_of(masks, {.labels = "0,255"}).masks()[0]), ElementsAre(0, 255));
  EXPECT_THAT(values_of(set_of(masks, {.labels = "0,1"}).masks()[0]), ElementsAre(0, 1));
  EXPECT_THAT(values_of(set_of(masks, {.labels = "0,7"}).masks()[0]), ElementsAre(0, 1));
}

TEST(MaskSet, the_colour_of_ignored_pixels_does_not_count) {
  const MaskSetOptions options = {.ignored = 2};
  const auto set = set_of(
      {mask({0, 1, 2}, {kBlack, kRed, kBlue}), mask({0, 1, 2}, {kBlack, kRed, kWhite})}, options);
  EXPECT_EQ(set.note(), "");
  const auto swapped = set_of(
      {mask({0, 1, 2}, {kBlack, kRed, kBlue}), mask({0, 1, 2}, {kRed, kBlack, kBlue})}, options);
  EXPECT_THAT(values_of(swapped.masks()[0]), ElementsAre(0, 2, 76));
}

TEST(MaskSet, numbered_objects_need_one_background) {
  const MaskSetOptions objects = {.labels = "instances"};
  const auto set =
      set_of({mask({0, 1, 2}, {kBlack, kRed, kBlue}), mask({0, 1}, {kBlack, kBlue})}, objects);
  EXPECT_THAT(values_of(set.masks()[0]), ElementsAre(0, 1, 2));
  EXPECT_EQ(set.palette(), "0=000000");
  EXPECT_THAT(refusal({mask({0, 1}, {kBlack, kRed}), mask({0, 1}, {kWhite, kBlack})}, objects),
              HasSubstr("do not agree on their background"));
  EXPECT_THAT(
      refusal({mask({0, 1}, {kWhite, kBlack})}, {.labels = "instances", .palette = "0=000000"}),
      HasSubstr("the masks of the training"));
}

PictureForm form(int bits, bool floating = false, std::int64_t channels = 1, bool colours = false) {
  return {1, 1, channels, bits, floating, colours};
}

TEST(ImageSet, other_depths_and_signs_are_refused_unless_each_image_has_its_own_scale) {
  for (const auto& other : {form(16), form(12), form(16, true), form(32, true)}) {
    ImageSet together(false), alone(true);
    EXPECT_EQ(together.add("a", form(8), kAsStored), "");
    EXPECT_EQ(together.add("b", form(8), kAsStored), "");
    EXPECT_THAT(
        together.add("c", other, kAsStored),
        AllOf(HasSubstr("\"a\" has 8 bits"), HasSubstr("\"c\""), HasSubstr("normalize image")));
    EXPECT_EQ(alone.add("a", form(8), kAsStored) + alone.add("c", other, kAsStored), "");
  }
}

TEST(ImageSet, dyes_lie_beside_nothing_else) {
  for (const auto& other : {form(8), form(8, false, 3, true), form(8, false, 2)}) {
    ImageSet set(true);
    EXPECT_EQ(set.add("a", form(8, false, 3), kAsStored), "");
    EXPECT_THAT(set.add("b", other, kAsStored), HasSubstr("\"a\" has 3 channels and \"b\""));
  }
  ImageSet set(false);
  EXPECT_EQ(set.add("a", form(8), kAsStored) + set.add("b", form(8, false, 3, true), kAsStored),
            "");
}

TEST(ImageSet, turned_images_and_palettes_are_told_with_a_name_and_their_number) {
  ImageSet set(false);
  EXPECT_EQ(set.note(), "");
  auto palette = form(8, false, 3, true);
  palette.palette = true;
  set.add("a", form(8), 3);
  set.add("b", form(8), 6);
  set.add("c", palette, kAsStored);
  EXPECT_THAT(set.note(), AllOf(HasSubstr("\"a\" (and 1 more file likewise) is turned by 180"),
                                HasSubstr("the palette of \"c\" is taken")));
}

TEST(Shares, a_class_with_a_far_share_is_told) {
  EXPECT_EQ(share_warning({0.8, 0.2}, {0.9, 0.1}), "");
  EXPECT_EQ(share_warning({}, {0.9, 0.1}), "");
  EXPECT_EQ(share_warning({0.999, 0.001}, {1, 0}), "");
  EXPECT_THAT(share_warning({0.2, 0.8}, {0.78, 0.22}),
              AllOf(HasSubstr("class 1 has 80 %"), HasSubstr("22 % in training"),
                    HasSubstr("the option invert")));
  EXPECT_THAT(share_warning({0.7, 0.28, 0.02}, {0.7, 0.1, 0.2}),
              AllOf(HasSubstr("class 2"), HasSubstr("the option labels")));
}

TEST(Shares, labels_of_two_classes_can_be_exchanged) {
  EXPECT_EQ(exchanged_labels("0,255"), "255,0");
  EXPECT_EQ(exchanged_labels("above-half"), "below-half");
  EXPECT_EQ(exchanged_labels("below-half"), "above-half");
  EXPECT_THROW(exchanged_labels("instances"), InvalidArgument);
  EXPECT_THROW(exchanged_labels("0,1,2"), InvalidArgument);
}

}  // namespace
}  // namespace triptych::segmentation::picture_set_tests
