// Findings of a check: points, and errors in plain words.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/choice.h"
#include "experiments/page/json.h"

namespace triptych::labs {

using page::Json;

enum class Kind : std::uint8_t {
  Exact,        ///< bits, cycles, bytes, counts: 60 points of a lab
  Prediction,   ///< committed before anything was measured: 20
  Explanation,  ///< questions with keys: 20
};

struct Item {
  std::string id;
  Kind kind = Kind::Exact;
  int points = 0, earned = 0;
  std::string said;  ///< "right", or expected value, actual value and place
};

/// A number for the class ranking. Less is better.
struct Standing {
  std::string name;
  double value = 0;
};

struct Report {
  std::vector<Item> items;
  std::vector<Standing> standings;  ///< empty: the lab has none, or it is not reached yet
  std::string printed;              ///< first lines of the output of the student's code
  bool interrupted = false;         ///< a signal stopped the check

  /// Adds an item. Its text becomes valid UTF-8 of readable length.
  void add(Item item);
  /// All points when `problem` is empty. Otherwise none, and the report has the problem.
  void exact(const std::string& id, int points, const std::string& problem);
  /// One item without points in the place of those of `kind` that are missing to `points`.
  void not_graded(Kind kind, int points, const std::string& why);
  int points() const;
  int earned() const;
  int points(Kind kind) const;
  int earned(Kind kind) const;
};

/// The report as autograders read it (Gradescope's results.json). `title` stands above it.
Json autograder_json(const Report& report, const std::string& title);

}  // namespace triptych::labs

namespace triptych {

template <>
inline constexpr auto kNamesOf<labs::Kind> =
    std::to_array<std::pair<labs::Kind, std::string_view>>({
        {labs::Kind::Exact, "exact"},
        {labs::Kind::Prediction, "prediction"},
        {labs::Kind::Explanation, "explanation"},
    });

}  // namespace triptych
