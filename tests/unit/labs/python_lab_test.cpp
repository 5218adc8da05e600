// Labs with a grader in Python: their files, and every way in which a grader may end.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/python_lab.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/io/temporary_folder.h"
#include "experiments/labs/lab.h"

namespace triptych::labs {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr const char* kDescription = R"({"schema": 1, "number": 12, "version": 1, "slug": "mine",
  "title": "Mine", "question": "why?", "yes_or_no": [],
  "explanations": [{"id": "q", "points": 20, "key": "none", "hint": "look again"}]})";
constexpr const char* kPredictions =
    "def predictions(bench):\n    return [('p', 20, 2 * 21, 0.1)]\n";

class PythonLabTest : public ::testing::Test {
 protected:
  PythonLabTest() {
    write("labs/graders/12-mine.json", kDescription);
    write("labs/handouts/12-mine/answers.json", R"({"predictions": {"p": null}})");
    write("mine/.lab.json", R"({"schema": 1, "lab": 12, "version": 1})");
    write("mine/sheet.json", R"({"twice": "2 * n", "four": 4, "half": "n +", "true": true})");
  }
  void write(const fs::path& name, std::string_view text) const {
    fs::create_directories((folder_.path() / name).parent_path());
    std::ofstream(folder_.path() / name) << text;
  }
  /// The report of a lab whose grade() has this body.
  Report graded(const std::string& body) const {
    write("labs/graders/12-mine.py", "from grading import *\nimport os, sys\n" +
                                         std::string(kPredictions) +
                                         "def grade(submission, bench, report, hidden):\n" + body);
    Bench bench;
    return check(labs_in(folder_.path() / "labs").at(0),
                 Submission::to_grade(folder_.path() / "mine", {12, 1}, 5), bench);
  }
  std::string refusal() const {
    try {
      labs_in(folder_.path() / "labs");
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }

  TemporaryFolder folder_{"labs"};
};

TEST_F(PythonLabTest, grades_with_files_commands_and_formulas) {
  const auto report = graded(R"(
    sheet = Sheet(submission, "sheet.json")
    report.exact("value", 10, sheet.problem_of_value("four", 4, "count"))
    report.exact("wrong", 10, sheet.problem_of_value("four", 5, "count"))
    report.exact("truth", 5, sheet.problem_of_value("true", 1, "count"))
    samples = [({"n": n}, 2 * n) for n in (1, 2.5)]
    report.exact("formula", 10, sheet.problem_of_formula("twice", samples, "double"))
    report.exact("broken", 5, sheet.problem_of_formula("half", samples, "double"))
    report.exact("absent", 5, sheet.problem_of_formula("none", samples, "double"))
    bench.put("text", "words")
    ending = bench.run("cat", "text")
    report.exact("command", 15, "" if ending.good and ending.output == "words" else ending.why())
)");
  EXPECT_EQ(report.points(Kind::Exact), 60);
  EXPECT_EQ(report.earned(Kind::Exact), 35);
  EXPECT_EQ(report.items.at(1).said, "four says 4, which is not what the machine gives; count");
  EXPECT_THAT(report.items.at(4).said, HasSubstr("ends too early"));
  EXPECT_EQ(report.items.at(5).said, "not answered yet: \"none\" in sheet.json");
  EXPECT_EQ(report.points(Kind::Prediction), 20);
}

TEST_F(PythonLabTest, a_grader_that_fails_costs_the_points_that_are_left) {
  const std::pair<const char*, const char*> cases[] = {
      {"raise Refused('no such file')", "no such file"},
      {"return 1 / 0", "division by zero"},
      {"os._exit(0)", "ended before its end"},
      {"sys.exit(3)", "ended before its end"},
      {"submission.text('absent')", "absent"},
      {"submission.text('../labs/graders/12-mine.py')", "12-mine.py"},
      {"report.program.call('launch')", "no request \"launch\""},
      {"report.program.call('put')", "not found"},
      {"report.exact('a', 'b', 'c')", "type"}};
  for (const auto& [line, words] : cases) {
    const auto report = graded(fmt::format("    report.exact('first', 15, '')\n    {}\n", line));
    EXPECT_EQ(report.earned(), 15) << line;
    EXPECT_EQ(report.points(), 100) << line;
    EXPECT_THAT(report.items.at(1).said, HasSubstr(words)) << line;
  }
  EXPECT_THROW(graded("    raise CannotGrade('no tool')\n"), DeviceError);
}

TEST_F(PythonLabTest, hidden_cases_are_those_of_the_seed) {
  const auto report = graded(
      "    values = [hidden.below(100) for _ in range(4)] + hidden.shuffled(range(4))\n"
      "    report.exact('values', 60, str(values))\n");
  EXPECT_EQ(report.items.at(0).said, "[51, 50, 50, 86, 0, 1, 2, 3]");
}

TEST_F(PythonLabTest, a_folder_of_labs_is_checked_when_it_is_read) {
  write("labs/graders/12-mine.py", kPredictions);
  EXPECT_EQ(refusal(), "");
  for (const auto& [from, to, words] : std::vector<std::array<const char*, 3>>{
           {"\"schema\": 1, ", "", "no whole number \"schema\""},
           {"\"schema\": 1", "\"schema\": 2", "schema 2"},
           {"\"version\"", "\"edition\"", "version"},
           {"\"number\": 12", "\"number\": 13", "are not those of its name"},
           {"\"points\": 20", "\"points\": \"x\"", "number"}}) {
    std::string text = kDescription;
    text.replace(text.find(from), std::string_view(from).size(), to);
    write("labs/graders/12-mine.json", text);
    EXPECT_THAT(refusal(), testing::AllOf(HasSubstr("graders/12-mine.json"), HasSubstr(words)));
  }
  write("labs/graders/12-mine.json", kDescription);
  fs::remove(folder_.path() / "labs/handouts/12-mine/answers.json");
  EXPECT_THAT(refusal(), HasSubstr("there is no \"handouts/12-mine/answers.json\""));
  fs::remove(folder_.path() / "labs/graders/12-mine.py");
  EXPECT_THAT(refusal(), HasSubstr("there is no \"graders/12-mine.py\""));
  fs::remove_all(folder_.path() / "labs/graders");
  EXPECT_THAT(refusal(), HasSubstr("name a folder of labs"));
}

}  // namespace
}  // namespace triptych::labs
