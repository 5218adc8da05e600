// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/metrics_log.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <boost/crc.hpp>
#include <cstring>

#include "events.pb.h"
#include "tests/unit/io/test_files.h"

namespace triptych::training {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

MetricsRow row_of(std::int64_t epoch, double dice) {
  MetricsRow row;
  row.step = 2 * epoch;
  row.learning_rate = 0.5F;
  row.report.epoch = epoch;
  row.report.steps = 2;
  row.report.loss = 0.25;
  row.report.validation_loss = 0.75;
  row.report.scores.images = 1;
  row.report.scores.mean_dice = dice;
  row.report.scores.mean_iou = 0.5;
  row.report.scores.pixel_accuracy = 0.875;
  row.report.scores.classes = {{.images = 1, .dice = dice, .iou = 0.5}};
  return row;
}

std::uint32_t unmasked(std::uint32_t crc) { return std::rotl(crc - 0xa282ead8U, 15); }

std::uint32_t crc32c(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

template <class T>
T take(std::string_view& bytes) {
  T value;
  std::memcpy(&value, bytes.substr(0, sizeof value).data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value;
}

/// The events of a file, with checked frames.
std::vector<tensorboard::Event> events_of(std::string_view file) {
  std::vector<tensorboard::Event> events;
  while (!file.empty()) {
    const auto head = file.substr(0, 8);
    const auto length = take<std::uint64_t>(file);
    EXPECT_EQ(unmasked(take<std::uint32_t>(file)), crc32c(head));
    const auto record = file.substr(0, length);
    file.remove_prefix(length);
    EXPECT_EQ(unmasked(take<std::uint32_t>(file)), crc32c(record));
    EXPECT_TRUE(events.emplace_back().ParseFromArray(record.data(), static_cast<int>(length)));
  }
  return events;
}

std::map<std::string, float> values_of(const tensorboard::Event& event) {
  std::map<std::string, float> values;
  for (const auto& value : event.summary().value())
    if (value.has_simple_value()) values[value.tag()] = value.simple_value();
  return values;
}

class MetricsFiles : public ::testing::Test {
 protected:
  std::string csv() const { return test::get_file(folder_.path() / "metrics.csv"); }
  std::vector<tensorboard::Event> events(int number) const {
    return events_of(
        test::get_file(folder_.path() / fmt::format("events.out.tfevents.{:06}.triptych", number)));
  }

  test::TemporaryFolder folder_;
};

TEST(MetricsCsv, crc_is_castagnolis) { EXPECT_EQ(crc32c("123456789"), 0xE3069283U); }

TEST(MetricsCsv, leaves_empty_what_nobody_knows) {
  auto unjudged = row_of(1, 0.5);
  unjudged.report.scores = {};
  auto absent = row_of(3, 0.5);
  absent.report.scores.classes.emplace_back();
  EXPECT_EQ(metrics_csv(std::vector{unjudged, absent}, {3}),
            "step,epoch,loss,validation_loss,dice,iou,accuracy,dice_1,iou_1,dice_2,iou_2,"
            "learning_rate,train_seconds,evaluate_seconds,images_per_second,time_kind\n"
            "2,1,0.25,,,,,,,,,0.5,0,0,0,measured\n"
            "6,3,0.25,0.75,0.5,0.5,0.875,0.5,0.5,,,0.5,0,0,0,measured\n");
  for (const auto& [name, value] : scalars_of(absent, {3}))
    EXPECT_EQ(name.find("class_2"), name.npos);
}

TEST_F(MetricsFiles, have_a_row_at_once_and_none_twice_when_a_run_goes_on) {
  const std::vector rows = {row_of(1, 0.5), row_of(2, 0.25)};
  {
    MetricsLog log(folder_.path(), {1});
    log.write(std::span(rows).first(1));
    EXPECT_EQ(csv(), metrics_csv(std::span(rows).first(1), {1}));
    log.write(rows);
  }
  MetricsLog again(folder_.path(), {1});  // of the checkpoint after the first epoch
  again.write(rows);
  EXPECT_EQ(csv(), metrics_csv(rows, {1}));
}

TEST_F(MetricsFiles, tell_tensorboard_the_same_and_where_a_run_went_on) {
  const std::vector rows = {row_of(1, 0.5), row_of(2, 0.25)};
  MetricsLog(folder_.path(), {1}).write(std::span(rows).first(1));
  MetricsLog(folder_.path(), {1}).write(rows);
  const auto first = events(1), second = events(2);
  ASSERT_EQ(first.size(), 3U);
  EXPECT_EQ(first[0].file_version(), "brain.Event:2");
  EXPECT_EQ(first[2].step(), 2);
  EXPECT_THAT(
      values_of(first[2]),
      ElementsAre(Pair("accuracy", 0.875F), Pair("dice/class_1", 0.5F), Pair("dice/mean", 0.5F),
                  Pair("images_per_second", 0.0F), Pair("iou/class_1", 0.5F),
                  Pair("iou/mean", 0.5F), Pair("learning_rate", 0.5F), Pair("loss/training", 0.25F),
                  Pair("loss/validation", 0.75F)));
  ASSERT_EQ(second.size(), 3U);
  EXPECT_EQ(second[1].session_log().status(), tensorboard::SessionLog::START);
  EXPECT_EQ(second[1].step(), 4);
  EXPECT_EQ(values_of(second[2]).at("dice/mean"), 0.25F);
}

TEST_F(MetricsFiles, of_others_stay) {
  MetricsLog(folder_.path(), {1}).write(std::vector{row_of(1, 0.5)});
  std::filesystem::remove(folder_.path() / ".triptych");
  EXPECT_THROW(MetricsLog(folder_.path(), {1}), InvalidArgument) << "not in the list";
  test::put_file(folder_.path() / "metrics.csv", "mine");
  test::put_file(folder_.path() / "events.out.tfevents.000001.triptych", "mine, too");
  EXPECT_THROW(MetricsLog(folder_.path(), {1}), InvalidArgument);
  EventFile(folder_.path(), 1).write(1, {});
  EXPECT_EQ(csv(), "mine");
  EXPECT_EQ(test::get_file(folder_.path() / "events.out.tfevents.000001.triptych"), "mine, too");
}

}  // namespace
}  // namespace triptych::training
