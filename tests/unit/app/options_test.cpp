// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/options.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/base/list_text.h"
#include "core/base/nearest_name.h"
#include "experiments/app/message.h"
#include "experiments/app/progress.h"
#include "experiments/app/training_report.h"
#include "experiments/app/unit_text.h"

namespace triptych::app {
namespace {

using Numbers = std::vector<std::int64_t>;

TEST(Lists, nouns_are_counted) {
  EXPECT_EQ(counted(0, "mask"), "0 masks");
  EXPECT_EQ(counted(1, "more image"), "1 more image");
  EXPECT_EQ(counted(12, "mask"), "12 masks");
  EXPECT_EQ(counted(1, "process"), "1 process");
  EXPECT_EQ(counted(2, "process"), "2 processes");
  EXPECT_EQ(counted(3, "batch"), "3 batches");
}

TEST(Lists, parts_are_trimmed) {
  EXPECT_EQ(split_list(" cpu , systolic "), (std::vector<std::string>{"cpu", "systolic"}));
  EXPECT_EQ(split_list(" "), std::vector<std::string>{""});
  EXPECT_EQ(parse_numbers("1, 2 ,4..8"), (Numbers{1, 2, 4, 8}));
}

TEST(NearestName, counts_a_transposition_as_one_edit) {
  const std::vector<std::string> options = {"--mode", "--model", "--momentum"};
  EXPECT_EQ(nearest_name("--modle", options), "--model");
  EXPECT_EQ(nearest_name("--mdoe", options), "--mode");
  EXPECT_EQ(nearest_name("--momentun", options), "--momentum");
  EXPECT_EQ(nearest_name("--x", options), "");
  EXPECT_EQ(nearest_name("--lt", {"--lr", "--to"}), "--lr");
  EXPECT_EQ(nearest_name("cup", {"cuda", "cpu"}), "cpu");
}

TEST(NearestName, ignores_case_and_underscores_and_prefers_the_shortest_beginning) {
  EXPECT_EQ(nearest_name("Train", {"trace", "train"}), "train");
  EXPECT_EQ(nearest_name("--synthetic_images", {"--synthetic-images"}), "--synthetic-images");
  EXPECT_EQ(nearest_name("--step", {"--steps-per-epoch", "--steps"}), "--steps");
}

TEST(NearestName, knows_the_words_of_other_programs) {
  EXPECT_EQ(nearest_name("--learning-rate", {"--lr", "--data"}), "--lr");
  EXPECT_EQ(nearest_name("--device", {"--device-file", "--backend"}), "--backend");
  EXPECT_EQ(nearest_name("gpu", {"cpu", "cuda"}), "cuda");
  EXPECT_EQ(nearest_name("gpu", {"cpu"}), "cpu")
      << "a synonym of an unknown name counts for nothing";
  EXPECT_EQ(suggestion("gpu", {"cuda"}), "; did you mean \"cuda\"?");
  EXPECT_EQ(suggestion("abacus", {"cuda"}), "");
}

TEST(Units, are_converted_to_the_unit_of_the_option) {
  using training::Unit;
  EXPECT_EQ(number_in(Unit::Mebibytes, "2GiB"), "2048");
  EXPECT_EQ(number_in(Unit::Mebibytes, "1.5 GiB"), "1536");
  EXPECT_EQ(number_in(Unit::Mebibytes, "2GB"), "1907");
  EXPECT_EQ(number_in(Unit::Mebibytes, "1KiB"), "1") << "0 would mean no limit";
  EXPECT_EQ(number_in(Unit::Mebibytes, "64"), "64");
  EXPECT_EQ(number_in(Unit::Seconds, "1us"), "1e-06");
  EXPECT_EQ(number_in(Unit::Seconds, "5min"), "300");
  EXPECT_EQ(number_in(Unit::BytesPerSecond, "10GB/s"), "10000000000");
  for (const auto* text : {"2XB", "GiB", "", "1e400GiB", "2GiB3"})
    EXPECT_EQ(number_in(Unit::Mebibytes, text), text);
}

TEST(ParseNumbers, doubles_from_the_begin_of_a_range_to_its_end) {
  EXPECT_EQ(parse_numbers("3"), Numbers{3});
  EXPECT_EQ(parse_numbers("7,1..8,5..5"), (Numbers{7, 1, 2, 4, 8, 5}));
  EXPECT_EQ(parse_numbers("3..11"), (Numbers{3, 6}));
  EXPECT_EQ(parse_numbers("1..9223372036854775807").size(), 63U);
}

TEST(ParseNumbers, refuses_what_is_no_list_of_positive_numbers) {
  for (const char* text :
       {"", "0", "-1", "a", "1..", "..4", "4..2", "1..2..3", "9223372036854775808"})
    EXPECT_THROW(parse_numbers(text), InvalidArgument) << text;
}

/// The line about an epoch that took so long to train.
std::string line_of(double seconds) {
  Progress silent(true);
  std::vector<training::EpochReport> epochs;
  training::EpochReport report = {
      .epoch = 3, .steps = 2, .images_per_second = seconds > 0 ? 8.0 : 0.0};
  report.train_time.seconds = seconds;
  ::testing::internal::CaptureStderr();
  observer_of({}, silent, epochs, true).on_epoch(report);
  return ::testing::internal::GetCapturedStderr();
}

TEST(EpochLine, has_no_rate_where_all_steps_ran_before_the_resume) {
  EXPECT_NE(line_of(1).find("8.0 images/s (measured)"), std::string::npos);
  EXPECT_EQ(line_of(0).find("images/s"), std::string::npos);
}

TEST(Message, of_a_library_gets_the_dashes_of_its_options) {
  EXPECT_EQ(with_dashes("the option size 60 is too large; change the option in-channels"),
            "--size 60 is too large; change --in-channels");
  EXPECT_EQ(with_dashes("the backend has no option \"x\", the options are two"),
            "the backend has no option \"x\", the options are two");
}

}  // namespace
}  // namespace triptych::app
