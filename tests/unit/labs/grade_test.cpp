// Any failure while a submission is graded becomes missing points with a reason. Only a machine
// that cannot grade is an error.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <fstream>
#include <new>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/io/temporary_folder.h"
#include "experiments/labs/lab.h"

namespace triptych::labs {
namespace {

using ::testing::HasSubstr;
using Grade = void (*)(const Submission&, Bench&, Report&);

constexpr Explanation kQuestion = {"q", 20, "no key", "look again"};

Lab lab_with(Grade grade) {
  return {.number = 7,
          .slug = "bandwidth",
          .title = "A lab",
          .grade = grade,
          .predictions =
              [](Bench&) {
                return std::vector<Prediction>{{"p", 20, 1, 0}};
              },
          .explanations = {&kQuestion, 1}};
}

class GradeTest : public ::testing::Test {
 protected:
  Submission submission() const { return Submission::to_grade(folder_.path(), {7, 1}, 1); }
  Report graded(Grade grade) const {
    Bench bench;
    return check(lab_with(grade), submission(), bench);
  }
  void put(const char* name, std::string_view text) const {
    std::ofstream(folder_.path() / name) << text;
  }

  TemporaryFolder folder_{"grade"};
};

TEST_F(GradeTest, every_exception_costs_the_points_that_are_left) {
  const Grade grades[] = {
      [](const Submission&, Bench&, Report&) { throw IoError("no file"); },
      [](const Submission&, Bench&, Report&) { throw InvalidArgument("no file"); },
      [](const Submission&, Bench&, Report&) { throw std::out_of_range("no file"); },
      [](const Submission&, Bench&, Report&) {
        static_cast<void>(Json::parse("[1]").at("no file"));
      },
  };
  for (const auto grade : grades) {
    const auto report = graded(grade);
    EXPECT_EQ(report.points(), 100);
    EXPECT_EQ(report.earned(), 0);
    EXPECT_EQ(report.items.front().id, "not graded");
    EXPECT_EQ(report.items.front().points, 60);
    EXPECT_FALSE(report.items.front().said.empty());
  }
}

TEST_F(GradeTest, what_was_graded_before_keeps_its_points) {
  const auto report = graded([](const Submission&, Bench&, Report& own) {
    own.exact("first", 15, "");
    throw std::bad_alloc();
  });
  EXPECT_EQ(report.earned(), 15);
  EXPECT_EQ(report.items[1].points, 45);
  EXPECT_THAT(report.items[1].said, HasSubstr("memory"));
}

TEST_F(GradeTest, a_signal_is_a_reason_too) {
  const auto report = graded([](const Submission&, Bench&, Report& own) {
    own.exact("first", 15, "");
    throw Interrupted();
  });
  EXPECT_TRUE(report.interrupted);
  EXPECT_EQ(report.earned(), 15);
  EXPECT_EQ(report.points(), 100);
  EXPECT_THAT(report.items.back().said, HasSubstr("signal"));
}

TEST_F(GradeTest, a_machine_that_cannot_grade_is_an_error) {
  EXPECT_THROW(graded([](const Submission&, Bench&, Report&) { throw DeviceError("no tool"); }),
               DeviceError);
}

TEST_F(GradeTest, reasons_are_valid_text_of_a_readable_length) {
  const auto report = graded([](const Submission&, Bench&, Report& own) {
    own.exact("bytes", 30, "\x1b[2J\x9b" + std::string(100'000, '\xff'));
    own.exact("cut", 30, "\xc3");
  });
  EXPECT_LT(report.items[0].said.size(), 40'000);
  EXPECT_THAT(report.items[0].said, HasSubstr("\\u001b[2J\\x9b\\xff"));
  EXPECT_NO_THROW(static_cast<void>(autograder_json(report, "lab 7").dump()));
}

TEST_F(GradeTest, files_of_a_submission_cost_their_points) {
  const auto fine = [](const Submission&, Bench&, Report& report) { report.exact("all", 60, ""); };
  EXPECT_EQ(graded(fine).earned(), 60);
  EXPECT_THAT(graded(fine).items[1].said, HasSubstr("lab start 7")) << "no .lab.json";
  EXPECT_THAT(graded(fine).items[2].said, HasSubstr("answers.json"));
  put(".lab.json", R"({"lab": 3})");
  EXPECT_THAT(graded(fine).items[1].said, HasSubstr("is of lab 3, not of lab 7"));
  put(".lab.json", R"({"schema": 1, "lab": 7, "version": 2})");
  EXPECT_THAT(graded(fine).items[1].said,
              HasSubstr("has version 2 of lab 7, and this program has version 1"));
  EXPECT_EQ(graded(fine).earned(), 60) << "the code counts";
  put("answers.json", R"({"explanations": {"q": "b"}})");
  EXPECT_THAT(graded(fine).items[2].said, HasSubstr("look again"));
  EXPECT_THROW(Submission(folder_.path(), {7, 1}, 1), InvalidArgument)
      << "for a student it is an error";
  EXPECT_THROW(Submission::to_grade(folder_.path() / "none", {7, 1}, 1), InvalidArgument);
}

}  // namespace
}  // namespace triptych::labs
