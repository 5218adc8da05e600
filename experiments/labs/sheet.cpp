// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/sheet.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/base/file_text.h"
#include "core/io/strict_json.h"

namespace triptych::labs {
namespace {

std::string shown(const Variables& variables) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : variables) parts.push_back(fmt::format("{} = {}", name, value));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

Sheet::Sheet(const Submission& submission, std::string file) : file_(std::move(file)) {
  try {
    json_ = parse_strict<Json>(submission.text(file_));
    if (!json_.is_object()) broken_ = fmt::format("{} is no object {{...}}", file_);
  } catch (const Error& error) {
    broken_ = fmt::format("{} cannot be read: {}", file_, error.what());
  }
}

std::string Sheet::missing(const std::string& name) const {
  if (!broken_.empty()) return broken_;
  if (json_.value(name, Json()).is_null())
    return fmt::format("not answered yet: \"{}\" in {}", name, file_);
  return {};
}

std::string Sheet::problem_of_formula(const std::string& name, const std::vector<Sample>& samples,
                                      const std::string& hint, double tolerance) const {
  if (auto problem = missing(name); !problem.empty()) return problem;
  const auto& given = json_.at(name);
  const auto formula = given.is_string() ? given.get<std::string>() : given.dump();
  for (const auto& sample : samples) {
    double value = 0;
    try {
      value = evaluate(formula, sample.at);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    if (std::abs(value - sample.value) <= tolerance * std::abs(sample.value)) continue;
    return fmt::format("\"{}\" gives {:.9g} with {}, and {:.9g} came; {}", triptych::shown(formula),
                       value, shown(sample.at), sample.value, hint);
  }
  return {};
}

std::string Sheet::problem_of_value(const std::string& name, const Json& expected,
                                    const std::string& hint) const {
  if (auto problem = missing(name); !problem.empty()) return problem;
  const auto& given = json_.at(name);
  if (given == expected) return {};
  return fmt::format("{} says {}, which is not what the machine gives; {}", name,
                     triptych::shown(given.dump()), hint);
}

bool Sheet::read_whole(const std::string& name, std::int64_t& value, std::string& problem) const {
  problem = missing(name);
  if (problem.empty() && !json_.at(name).is_number_integer())
    problem = fmt::format("\"{}\" in {} is no whole number", name, file_);
  if (problem.empty()) value = json_.at(name).get<std::int64_t>();
  return problem.empty();
}

}  // namespace triptych::labs
