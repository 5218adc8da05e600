// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/dataset.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/error.h"
#include "core/io/image.h"
#include "experiments/training/data/normalization.h"
#include "tests/unit/io/test_files.h"

namespace triptych::segmentation {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// images/ and masks/ of 2 x 1 pixels.
class DatasetTest : public ::testing::Test {
 protected:
  DatasetTest() {
    std::filesystem::create_directory(folder / "images");
    std::filesystem::create_directory(folder / "masks");
    for (const auto* name : {"b", "a", "c"}) {
      put("images", name, {0, 255});
      put("masks", name, {127, 128});
    }
  }

  void put(const std::string& kind, const std::string& name, std::vector<std::uint16_t> samples) {
    save_png(folder / kind / (name + ".png"), {std::ssize(samples), 1, 1, 8, samples});
  }
  DatasetOptions options() const {
    DatasetOptions result;
    result.images = folder / "images";
    result.masks = folder / "masks";
    return result;
  }
  std::string refusal(const DatasetOptions& options) const {
    try {
      load_dataset(options);
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

TEST_F(DatasetTest, pairs_by_name_in_ascending_order) {
  test::put_file(folder / "images/.hidden", "x");
  const auto dataset = load_dataset(options());
  EXPECT_THAT(names(dataset), ElementsAre("a", "b", "c"));
  const auto& sample = dataset.samples[0];
  EXPECT_EQ(sample.height, 1);
  EXPECT_EQ(sample.width, 2);
  EXPECT_THAT(sample.image, ElementsAre(0, 1));
  EXPECT_THAT(sample.labels, ElementsAre(0, 1));
}

TEST_F(DatasetTest, masks_can_be_inverted_and_pictures_read_as_rgb) {
  auto wanted = options();
  wanted.invert = true;
  wanted.channels = 3;
  const auto dataset = load_dataset(wanted);
  EXPECT_THAT(dataset.samples[0].labels, ElementsAre(1, 0));
  EXPECT_THAT(dataset.samples[0].image, ElementsAre(0, 1, 0, 1, 0, 1));
}

TEST_F(DatasetTest, many_classes_are_distinct_values) {
  put("masks", "a", {10, 200});
  put("masks", "b", {90, 10});
  put("masks", "c", {200, 200});
  auto wanted = options();
  wanted.classes = 3;
  const auto dataset = load_dataset(wanted);
  EXPECT_EQ(dataset.labels, "10,90,200");
  EXPECT_THAT(dataset.labelling, HasSubstr("90 is class 1 (16.7 %)"));
  EXPECT_THAT(dataset.samples[0].labels, ElementsAre(0, 2));
  EXPECT_THAT(dataset.samples[1].labels, ElementsAre(1, 0));

  wanted.labels = "200,90,10";
  EXPECT_THAT(load_dataset(wanted).samples[0].labels, ElementsAre(2, 0));
  wanted.labels = "10,200,7";
  EXPECT_THAT(refusal(wanted), AllOf(HasSubstr("b.png"), HasSubstr("value 90")));
  wanted.labels = "10,200";
  EXPECT_THAT(refusal(wanted), HasSubstr("3 classes need 3"));
  put("masks", "c", {201, 202});
  wanted.labels = "";
  EXPECT_THAT(refusal(wanted), AllOf(HasSubstr("the option classes 5"), HasSubstr("\"c\"")));
}

TEST_F(DatasetTest, values_below_the_number_of_classes_are_the_classes) {
  put("masks", "a", {0, 2});
  put("masks", "b", {3, 0});
  put("masks", "c", {0, 0});
  auto wanted = options();
  wanted.classes = 4;
  const auto dataset = load_dataset(wanted);
  EXPECT_EQ(dataset.labels, "0,1,2,3");
  EXPECT_THAT(dataset.samples[0].labels, ElementsAre(0, 2));
  EXPECT_THAT(dataset.samples[1].labels, ElementsAre(3, 0));
}

TEST_F(DatasetTest, masks_of_zero_and_one_are_background_and_target) {
  for (const auto* name : {"a", "b", "c"}) put("masks", name, {0, 1});
  EXPECT_EQ(load_dataset(options()).labels, "0,1");
  EXPECT_THAT(load_dataset(options()).samples[0].labels, ElementsAre(0, 1));
  put("masks", "b", {0, 255});
  EXPECT_THAT(refusal(options()), AllOf(HasSubstr("files of 0 and 1 lie beside files of 0 and 255"),
                                        HasSubstr("\"b\""), Not(HasSubstr("ignore-label"))));
  put("images", "c", {0, 255, 9});
  put("masks", "c", {0, 1, 255});
  EXPECT_THAT(
      refusal(options()),
      AllOf(HasSubstr("hold 0 (42.9 %), 1 (28.6 %), 255 (28.6 %)"), Not(HasSubstr("beside")),
            HasSubstr("the option ignore-label 255"), HasSubstr("the option classes 3")));
}

TEST_F(DatasetTest, a_class_does_not_count_and_is_not_ignored_at_once) {
  for (const auto* name : {"a", "b", "c"}) put("masks", name, {0, 255});
  auto wanted = options();
  wanted.labels = "0,255";
  wanted.ignored = 255;
  EXPECT_THAT(refusal(wanted), AllOf(HasSubstr("255 class 1"), HasSubstr("ignore-label 255")));
  wanted.ignored = 7;
  EXPECT_EQ(refusal(wanted), "loaded");
}

TEST_F(DatasetTest, each_sample_says_which_classes_its_mask_has) {
  put("masks", "a", {0, 0});
  put("masks", "b", {255, 7});
  put("masks", "c", {7, 0});
  auto wanted = options();
  wanted.labels = "0,255";
  wanted.ignored = 7;
  for (const std::int64_t cache : {0, 1}) {
    wanted.cache_bytes = cache;
    const auto dataset = load_dataset(wanted);
    EXPECT_THAT(dataset.samples[0].classes, ElementsAre(0));
    EXPECT_THAT(dataset.samples[1].classes, ElementsAre(1));
    EXPECT_THAT(dataset.samples[2].classes, ElementsAre(0));
  }
}

TEST_F(DatasetTest, numbered_objects_are_one_target_when_that_is_stated) {
  put("masks", "a", {0, 7});
  put("masks", "b", {130, 9});
  put("masks", "c", {0, 0});
  EXPECT_THAT(refusal(options()), AllOf(HasSubstr("instances"), HasSubstr("above-half")));
  auto wanted = options();
  wanted.labels = "instances";
  EXPECT_THAT(load_dataset(wanted).samples[1].labels, ElementsAre(1, 1));
  EXPECT_THAT(load_dataset(wanted).labelling, HasSubstr("everything else is class 1 (50 %)"));
  wanted.labels = "above-half";
  EXPECT_THAT(load_dataset(wanted).samples[1].labels, ElementsAre(1, 0));
  wanted.labels = "below-half";
  EXPECT_THAT(load_dataset(wanted).samples[1].labels, ElementsAre(0, 1));
  wanted.labels = "bright";
  EXPECT_THAT(refusal(wanted), HasSubstr("\"bright\""));
}

TEST_F(DatasetTest, masks_that_are_all_alike_are_refused) {
  for (const auto* name : {"a", "b", "c"}) put("masks", name, {0, 0});
  EXPECT_THAT(refusal(options()), HasSubstr("every pixel of every mask is 0"));
}

TEST_F(DatasetTest, a_list_selects_and_splits) {
  test::put_file(folder / "plain", "c\r\na\n\n");
  test::put_file(folder / "table", "id,split,width\na,train,2\nb,test,2\nc,train,2\n");
  auto wanted = options();
  wanted.list = folder / "plain";
  EXPECT_THAT(names(load_dataset(wanted)), ElementsAre("c", "a"));
  wanted.list = folder / "table";
  auto dataset = load_dataset(wanted);
  const auto test = take_split(dataset, "test");
  EXPECT_THAT(names(test), ElementsAre("b"));
  EXPECT_THAT(names(dataset), ElementsAre("a", "c"));
  wanted.splits = {"train"};
  EXPECT_THAT(names(load_dataset(wanted)), ElementsAre("a", "c"));
  wanted.splits = {"odd"};
  EXPECT_THAT(refusal(wanted), HasSubstr("no images"));
}

TEST_F(DatasetTest, refuses_broken_lists) {
  const std::pair<const char*, const char*> cases[] = {
      {"a\n../b\n", "plain"},
      {"a\n.b\n", "plain"},
      {"a\na\n", "line 1 (\"a\") and line 2 (\"a\")"},
      {"id,split\na\n", "1 field, expected 2"},
      {"# mine\nid,split\na,train\n", "begins with their names"},
      {"id,split\n,train\n", "plain"},
      {"a,b\n", "columns \"a\", \"b\""},
      {"id\na/b\n", "plain"},
      {"id\n\"a\"b\n", "quote"},
      {"id\n\"a", "quote"},
      {"id,mask\na,../b.png\n", "plain"},
      {"\n\nid,split\n\na\n", "line 5"},
      {"id\nodd\n", "no picture \"odd\", which line 2"},
      {"file name\na\n", "were it a header"},
      {"\xFF\xFE"
       "i",
       "UTF-16"}};
  for (const auto& [text, reason] : cases) {
    test::put_file(folder / "list", text);
    auto wanted = options();
    wanted.list = folder / "list";
    EXPECT_THAT(refusal(wanted), HasSubstr(reason)) << text;
    EXPECT_THAT(refusal(wanted), HasSubstr((folder / "list").string())) << text;
  }
}

TEST_F(DatasetTest, says_which_file_is_wrong) {
  auto missing = options();
  missing.images = folder / "absent";
  EXPECT_THAT(refusal(missing), HasSubstr("absent"));

  put("masks", "b", {0, 0, 0});
  EXPECT_THAT(refusal(options()), HasSubstr("3 x 1 pixels, its image has 2 x 1"));
  std::filesystem::remove(folder / "masks/b.png");
  EXPECT_THAT(refusal(options()), HasSubstr("has no mask"));
  test::put_file(folder / "masks/b.png", "text");
  EXPECT_THAT(refusal(options()), HasSubstr("not a PNG, TIFF or JPEG"));

  std::filesystem::remove_all(folder / "images");
  std::filesystem::create_directory(folder / "images");
  EXPECT_THAT(refusal(options()), HasSubstr("no images"));
}

TEST_F(DatasetTest, the_case_of_png_is_free_and_other_files_are_skipped_with_a_note) {
  EXPECT_EQ(load_dataset(options()).note, "");
  const auto all = load_dataset(options()).samples.size();
  std::filesystem::rename(folder / "images/a.png", folder / "images/a.PNG");
  std::filesystem::rename(folder / "masks/b.png", folder / "masks/b.PNG");
  for (const auto* name : {"Thumbs.db", "notes.txt"}) {
    test::put_file(folder.path() / "images" / name, "x");
  }
  const auto dataset = load_dataset(options());
  EXPECT_EQ(dataset.samples.size(), all);
  EXPECT_THAT(dataset.note, HasSubstr("Thumbs.db, notes.txt"));
  std::filesystem::create_directories(folder / "images/empty");
  EXPECT_THAT(load_dataset(options()).note, Not(HasSubstr("empty")));
  std::filesystem::create_directories(folder / "images/more");
  put("images/more", "a", {0, 1});
  EXPECT_THAT(load_dataset(options()).note, HasSubstr("folders below are not looked for: more"));
  put("images", "a", {0, 1});
  EXPECT_THAT(refusal(options()), HasSubstr("have the same name"));
}

TEST_F(DatasetTest, refuses_options_without_sense) {
  auto wanted = options();
  wanted.channels = 6;
  EXPECT_THROW(load_dataset(wanted), InvalidArgument);
  wanted = options();
  wanted.classes = 256;
  EXPECT_THROW(load_dataset(wanted), InvalidArgument);
  wanted.classes = 3;
  wanted.invert = true;
  EXPECT_THROW(load_dataset(wanted), InvalidArgument);
}

TEST(Dataset, a_fraction_is_drawn_by_seed_and_leaves_the_rest) {
  std::set<std::vector<std::string>> drawn;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Dataset dataset;
    for (int i = 0; i < 10; ++i) dataset.samples.push_back({.name = std::to_string(i)});
    const auto part = take_fraction(dataset, 0.3, seed);
    EXPECT_EQ(part.samples.size(), 3u);
    EXPECT_EQ(dataset.samples.size(), 7u);
    std::set<std::string> all;
    std::vector<std::string> chosen;
    for (const auto& sample : part.samples) chosen.push_back(sample.name);
    for (const auto& sample : part.samples) all.insert(sample.name);
    for (const auto& sample : dataset.samples) all.insert(sample.name);
    EXPECT_EQ(all.size(), 10u);
    drawn.insert(chosen);
  }
  EXPECT_GT(drawn.size(), 10u);
  Dataset dataset;
  EXPECT_THROW(take_fraction(dataset, 1.5, 0), InvalidArgument);
}

Dataset mixed_set() {
  Dataset dataset;
  for (int i = 0; i < 10; ++i) dataset.samples.push_back({.name = std::to_string(i)});
  for (int i = 0; i < 20; ++i)
    dataset.samples.push_back({.name = "s" + std::to_string(i), .stack = i < 15 ? "a" : "b"});
  return dataset;
}

TEST(Dataset, of_stacks_a_fraction_is_a_row_of_neighbours) {
  std::set<std::string> texts;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto dataset = mixed_set();
    const auto part = take_fraction(dataset, 0.2, seed);
    ASSERT_EQ(part.samples.size(), 6u);
    EXPECT_TRUE(part.samples[1].stack.empty());
    const auto first = std::stoi(part.samples[2].name.substr(1));
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(part.samples[static_cast<std::size_t>(2 + i)].name,
                "s" + std::to_string(first + i));
    EXPECT_EQ(drawn_text(part), "2 images and 4 sections in a row, s" + std::to_string(first) +
                                    " to s" + std::to_string(first + 3));
    texts.insert(drawn_text(part));
    auto singles = mixed_set(), apart = mixed_set();
    for (auto& sample : singles.samples) sample.stack.clear();
    std::vector<std::string> expected, found;
    for (const auto& sample : take_fraction(singles, 0.2, seed).samples)
      expected.push_back(sample.name);
    for (const auto& sample : take_fraction(apart, 0.2, seed, Sections::Apart).samples)
      found.push_back(sample.name);
    EXPECT_EQ(found, expected);
  }
  EXPECT_GT(texts.size(), 5u);
}

TEST(Dataset, each_sample_is_in_one_fold) {
  std::multiset<std::string> all;
  std::set<std::string> first_folds;
  for (std::int64_t fold = 0; fold < 4; ++fold) {
    auto dataset = mixed_set();
    const auto part = take_fold(dataset, 4, fold, 3);
    EXPECT_NEAR(part.samples.size(), 30 / 4.0, 1);
    EXPECT_EQ(part.samples.size() + dataset.samples.size(), 30u);
    for (const auto& sample : part.samples) all.insert(sample.name);
    int rows = 0;  // of neighbours
    for (std::size_t i = 0; i < part.samples.size(); ++i) {
      const auto& name = part.samples[i].name;
      if (part.samples[i].stack.empty()) continue;
      const bool follows =
          i > 0 && part.samples[i - 1].name == "s" + std::to_string(std::stoi(name.substr(1)) - 1);
      rows += follows ? 0 : 1;
    }
    EXPECT_LE(rows, 1);
  }
  EXPECT_EQ(all.size(), 30u);
  EXPECT_EQ((std::set<std::string>(all.begin(), all.end()).size()), 30u);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto dataset = mixed_set();
    const auto part = take_fold(dataset, 4, 0, seed);
    std::string text;
    for (const auto& sample : part.samples) text += sample.name + " ";
    first_folds.insert(text);
  }
  EXPECT_GT(first_folds.size(), 10u);
  auto few = mixed_set();
  try {
    take_fold(few, 31, 0, 0);
    ADD_FAILURE() << "cut";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
                 "the option folds 31 wants as many images, and there are 30; give from 2 to 30");
  }
  EXPECT_THROW(take_fold(few, 4, 4, 0), InvalidArgument);
}

TEST(Dataset, normalization_weighs_images_equally) {
  Dataset dataset;
  dataset.samples.push_back({.height = 1, .width = 1, .image = {1}});
  dataset.samples.push_back({.height = 1, .width = 3, .image = {0, 0, 0}});
  const auto normalization = normalization_of(dataset);
  EXPECT_FLOAT_EQ(normalization.mean[0], 0.5F);
  EXPECT_FLOAT_EQ(normalization.deviation[0], 0.5F);
  EXPECT_THAT(normalized(dataset.samples[1], normalization), ElementsAre(-1, -1, -1));
  dataset.samples.pop_back();
  EXPECT_EQ(normalization_of(dataset).deviation[0], 1);
  EXPECT_THROW(normalization_of({}), InvalidArgument);
}

// The figures below are those of NumPy and Pillow on the same files.
TEST(Dataset, real_nuclei_load_with_the_figures_of_numpy) {
  const auto data = test::test_data(TRIPTYCH_SOURCE_DIR, "dsb2018");
  if (data.empty()) GTEST_SKIP() << "dsb2018 is not there; set TRIPTYCH_TEST_DATA to its folder";
  DatasetOptions options;
  options.images = data / "images";
  options.masks = data / "masks";
  options.list = data / "list.csv";
  auto dataset = load_dataset(options);
  EXPECT_EQ(dataset.samples.size(), 387u);
  EXPECT_EQ(take_split(dataset, "test").samples.size(), 73u);
  EXPECT_EQ(take_split(dataset, "odd").samples.size(), 53u);
  EXPECT_EQ(dataset.samples.size(), 261u);
  const auto normalization = normalization_of(dataset);
  EXPECT_NEAR(normalization.mean[0], 0.0490729491, 1e-8);
  EXPECT_NEAR(normalization.deviation[0], 0.0688039421, 1e-8);
  const auto& first = dataset.samples[0];
  EXPECT_EQ(first.name, "00071198d059ba7f5914a526d124d28e6d010c92466da21d4a04cd5413362552");
  EXPECT_EQ(std::ranges::count(first.labels, 1), 5714);
}

TEST(Dataset, real_membranes_load_with_the_figures_of_numpy) {
  const auto data = test::test_data(TRIPTYCH_SOURCE_DIR, "isbi2012/train");
  if (data.empty()) GTEST_SKIP() << "isbi2012 is not there; set TRIPTYCH_TEST_DATA to its folder";
  DatasetOptions options;
  options.images = data / "image";
  options.masks = data / "label";
  options.invert = true;
  auto dataset = load_dataset(options);
  double membrane = 0;
  for (const auto& sample : dataset.samples) {
    membrane += static_cast<double>(std::ranges::count(sample.labels, 1));
  }
  EXPECT_NEAR(membrane / (30 * 512 * 512), 0.2196, 5e-5);
  dataset.samples.resize(24);
  const auto normalization = normalization_of(dataset);
  EXPECT_NEAR(normalization.mean[0], 0.4907879165, 1e-7);
  EXPECT_NEAR(normalization.deviation[0], 0.1708254552, 1e-7);
}

}  // namespace
}  // namespace triptych::segmentation
