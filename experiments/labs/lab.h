// The labs: lessons with a folder to complete, graded by deterministic quantities alone. Each gives
// 60 points for exact counters, 20 for predictions that were committed beforehand, 20 for
// explanations.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/labs/bench.h"
#include "experiments/labs/lab_texts.h"
#include "experiments/labs/report.h"
#include "experiments/labs/submission.h"

namespace triptych::labs {

/// A value that the student predicted.
struct Prediction {
  std::string id;
  int points = 0;
  Json value;            ///< that came: a number, "yes" or "no"
  double tolerance = 0;  ///< of a number, relative
};

/// A question with one right answer, a letter from a to d.
struct Explanation {
  std::string_view id;
  int points = 0;
  std::string_view key;   ///< answer_key() of the right answer
  std::string_view hint;  ///< where to look, for those who were wrong
};

struct Lab {
  int number = 0;
  int version = 1;  ///< of the handout. Increases when the questions change
  std::string_view slug, title, question;
  /// Tries the submission on the bench and adds the exact items.
  std::function<void(const Submission& submission, Bench& bench, Report& report)> grade;
  std::function<std::vector<Prediction>(Bench& bench)> predictions;
  std::span<const std::string_view> yes_or_no;  ///< yes or no. All others are numbers
  std::span<const Explanation> explanations;
  std::span<const LabText> files = lab_texts();  ///< handouts and graders
  std::shared_ptr<const void> owner = nullptr;   ///< of the texts, if it is not the program

  /// "7-bandwidth"
  std::string name() const { return std::to_string(number) + "-" + std::string(slug); }
};

/// All labs, in their order.
std::span<const Lab> labs();
/// From now on the labs of `folder` take the place of the program's. Throws as labs_in does.
void use_labs_in(const std::filesystem::path& folder);
/// Throws InvalidArgument that names those that there are.
const Lab& find_lab(int number);

/// SHA-256 of "NUMBER.ID.ANSWER".
std::string answer_key(int number, std::string_view id, std::string_view answer);

enum class HandoutForm { Text, Notebook };
/// Copies the lab's handout to `folder`, which must not be there or be empty. A lab in notebook
/// form also has kNotebookFile. `seed` draws the order of the options of its questions, 0 leaves
/// them as they are. Throws InvalidArgument.
void start(const Lab& lab, const std::filesystem::path& folder,
           HandoutForm form = HandoutForm::Text, std::uint64_t seed = 0);
inline constexpr const char* kNotebookFile = "lab.ipynb";
/// The default folder of `start`: "lab-1-array".
std::string default_folder(const Lab& lab);

/// Commits the submission's predictions. Throws InvalidArgument when one that the handout asks for
/// is missing or no number (no "yes" or "no") where it should be one, and as commit_predictions
/// does.
void predict(const Lab& lab, Submission& submission);

/// The points of a submission: of the exact items, then of predictions and explanations. Every
/// failure due to the submission costs points, and the report has the reason. Throws DeviceError
/// when this machine cannot grade: a tool is missing, or code of others cannot be confined.
Report check(const Lab& lab, const Submission& submission, Bench& bench);
/// The report of a check that did not come to its end: no points, and `why`.
Report not_graded(const std::string& why);

}  // namespace triptych::labs
