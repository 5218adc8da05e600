// The folder of a student: the original files with the student's changes.
//   answers.json {"predictions": {name: value}, "explanations": {name: value}}. Null: none yet
//   .lab.json which lab and version it is. When which predictions were committed, and their
//                    hash, which decides. The time at which a check first showed the results. The
//                    order of the options of each question
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "experiments/page/json.h"

namespace triptych::labs {

using page::Json;

/// A lab and the version of its questions (Lab::version).
struct LabVersion {
  int number = 0;
  int version = 1;
};

class Submission {
 public:
  /// Throws IoError or InvalidArgument when `folder` is none of this version of the lab, or its
  /// answers are no JSON of this form. `seed` chooses the hidden cases.
  Submission(std::filesystem::path folder, LabVersion lab, std::uint64_t seed);
  /// The same folder for a grader: a file of the student that is missing, damaged or of another lab
  /// costs its points and is no error. Throws InvalidArgument when `folder` is no folder.
  static Submission to_grade(std::filesystem::path folder, LabVersion lab, std::uint64_t seed);

  const std::filesystem::path& folder() const { return folder_; }
  std::uint64_t seed() const { return seed_; }
  /// A text file of the folder, of at most a MiB. Throws IoError with its name, also for links.
  /// Root reads with the rights of the folder's owner.
  std::string text(const std::string& name) const;
  /// True when it is there. Throws IoError for links.
  bool has(const std::string& name) const;
  /// Why answers.json cannot be read. Empty: it can.
  const std::string& answers_problem() const { return answers_problem_; }
  /// null: not answered.
  Json prediction(const std::string& name) const;
  Json explanation(const std::string& name) const;

  /// The reason for which predictions do not count. Empty: they do.
  std::string why_predictions_do_not_count() const;
  /// True while none are committed and no check has shown the results. The next check does.
  bool can_still_predict() const;
  /// Commits the predictions as they are now (labs::predict looks at them first). Throws
  /// InvalidArgument if a check has shown the results.
  void commit_predictions();
  /// Records in the folder that a check has shown the results. Nothing where they were committed
  /// before, or the folder cannot be written. Throws as write_own_file() does.
  void note_that_results_were_seen();

  /// The letter that the handout gives to the option that this student knows as `letter`.
  std::string handout_letter(const std::string& question, const std::string& letter) const;

  /// Makes a folder one of the lab. By question the handout's letters in its own order, where
  /// that differs.
  static void begin(const std::filesystem::path& folder, LabVersion lab,
                    const std::map<std::string, std::string>& option_orders = {});

 private:
  Submission(std::filesystem::path folder, std::uint64_t seed);
  void read_state(LabVersion lab);
  void read_answers();
  std::string predictions_hash() const;
  std::string changed_prediction() const;
  void write_state() const;

  std::filesystem::path folder_;
  std::uint64_t seed_ = 0;
  Json answers_ = Json::object(), state_ = Json::object();
  std::string answers_problem_, state_problem_;  ///< of a grader's submission
};

}  // namespace triptych::labs
