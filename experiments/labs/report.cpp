// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/report.h"

#include <fmt/format.h>

#include <numeric>
#include <optional>
#include <utility>

#include "core/base/file_text.h"

namespace triptych::labs {
namespace {

int sum(const std::vector<Item>& items, int Item::*number, std::optional<Kind> kind) {
  return std::accumulate(items.begin(), items.end(), 0, [&](int total, const Item& item) {
    return total + (!kind || item.kind == *kind ? item.*number : 0);
  });
}

}  // namespace

void Report::add(Item item) {
  item.said = escaped(shortened(item.said));
  items.push_back(std::move(item));
}

void Report::exact(const std::string& id, int points, const std::string& problem) {
  const bool right = problem.empty();
  add({id, Kind::Exact, points, right ? points : 0, right ? "right" : problem});
}

void Report::not_graded(Kind kind, int points, const std::string& why) {
  const int missing = points - this->points(kind);
  if (missing > 0) add({"not graded", kind, missing, 0, why});
}

int Report::points() const { return sum(items, &Item::points, {}); }
int Report::earned() const { return sum(items, &Item::earned, {}); }
int Report::points(Kind kind) const { return sum(items, &Item::points, kind); }
int Report::earned(Kind kind) const { return sum(items, &Item::earned, kind); }

Json autograder_json(const Report& report, const std::string& title) {
  Json tests = Json::array(), standings = Json::array();
  for (const auto& item : report.items) {
    tests.push_back({{"name", fmt::format("{}: {}", name_of(item.kind), item.id)},
                     {"score", item.earned},
                     {"max_score", item.points},
                     {"status", item.earned == item.points ? "passed" : "failed"},
                     {"output", item.said},
                     {"visibility", "visible"}});
  }
  for (const auto& each : report.standings)
    standings.push_back({{"name", each.name}, {"value", each.value}, {"order", "asc"}});
  return {{"score", report.earned()},
          {"output", fmt::format("{}: {} of {} points", title, report.earned(), report.points())},
          {"visibility", "visible"},
          {"stdout_visibility", "hidden"},
          {"tests", std::move(tests)},
          {"leaderboard", std::move(standings)}};
}

}  // namespace triptych::labs
