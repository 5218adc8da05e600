// A sheet of formulas and measured values that a student fills in: one JSON object, in a file
// beside answers.json.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "experiments/labs/formula.h"
#include "experiments/labs/submission.h"

namespace triptych::labs {

/// A value that a formula should give.
struct Sample {
  Variables at;
  double value = 0;
};

class Sheet {
 public:
  /// A file that is missing or broken is the problem of all that is asked of it.
  Sheet(const Submission& submission, std::string file);

  /// The problem of the formula of that name: empty when it gives every sample's value, within a
  /// relative `tolerance`. Else what it is, in words, and `hint`.
  std::string problem_of_formula(const std::string& name, const std::vector<Sample>& samples,
                                 const std::string& hint, double tolerance = 1e-9) const;
  /// The same of a number or word, which must be `expected`.
  std::string problem_of_value(const std::string& name, const Json& expected,
                               const std::string& hint) const;
  /// The whole number of that name, if it is one. `problem` says why it is none.
  bool read_whole(const std::string& name, std::int64_t& value, std::string& problem) const;

 private:
  /// Why there is nothing of that name. Empty: there is.
  std::string missing(const std::string& name) const;

  std::string file_, broken_;
  Json json_;
};

}  // namespace triptych::labs
