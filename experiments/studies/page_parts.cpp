// SPDX-License-Identifier: Apache-2.0
#include "experiments/studies/page_parts.h"

#include <algorithm>
#include <iterator>

#include "experiments/page/json.h"

namespace triptych::studies {
namespace {

Json axis_json(const Axis& axis) {
  return {{"label", axis.label}, {"unit", axis.unit}, {"scale", axis.log ? "log" : "linear"}};
}

Json chart(std::string_view id, std::string_view title, const char* kind) {
  return {{"id", id}, {"title", title}, {"kind", kind}};
}

}  // namespace

Json figure(double value, std::string_view unit, TimeKind kind) {
  return page::figure_json(value, unit, kind);
}

Json figure(const machines::Figure& of, std::string_view unit) {
  return page::figure_json(of.value, unit, of.kind, of.source);
}

Json figure(Duration duration) { return page::time_json(duration); }

Json ratio(double value, TimeKind of, TimeKind over, std::string_view unit) {
  std::string kind(to_string(of));
  if (over != of) kind += "/" + std::string(to_string(over));
  return {{"value", value}, {"unit", unit}, {"kind", kind}};
}

Json table(std::string_view title, const std::vector<Column>& columns,
           std::vector<std::vector<Json>> rows) {
  Json json = {{"title", title}, {"columns", Json::array()}, {"rows", Json::array()}};
  for (const auto& column : columns)
    json["columns"].push_back({{"name", column.name}, {"unit", column.unit}});
  for (auto& row : rows) {
    Json cells = Json::array();
    for (auto& cell : row) cells.push_back(std::move(cell));
    json["rows"].push_back(std::move(cells));
  }
  return json;
}

Json line_chart(std::string_view id, std::string_view title, const Axis& x, const Axis& y,
                const std::vector<Series>& series) {
  auto json = chart(id, title, "line");
  json["x"] = axis_json(x);
  json["y"] = axis_json(y);
  json["series"] = Json::array();
  for (const auto& one : series) {
    Json points = Json::array();
    for (const auto& [at, value] : one.points) points.push_back({{"x", at}, {"y", value}});
    json["series"].push_back(
        {{"name", one.name}, {"kind", to_string(one.kind)}, {"points", std::move(points)}});
  }
  return json;
}

void add_bar(std::vector<Bars>& series, TimeKind kind, const std::string& name, double value) {
  auto found = std::ranges::find(series, kind, &Bars::kind);
  if (found == series.end()) {
    series.push_back({.name = std::string(to_string(kind)), .kind = kind, .bars = {}});
    found = std::prev(series.end());
  }
  found->bars.emplace_back(name, value);
}

Json bar_chart(std::string_view id, std::string_view title, const Axis& y,
               const std::vector<Bars>& series) {
  auto json = chart(id, title, "bars");
  json["x"] = axis_json({.label = "", .unit = ""});
  json["y"] = axis_json(y);
  json["series"] = Json::array();
  for (const auto& one : series) {
    Json points = Json::array();
    for (const auto& [name, value] : one.bars) points.push_back({{"x", name}, {"y", value}});
    json["series"].push_back(
        {{"name", one.name}, {"kind", to_string(one.kind)}, {"points", std::move(points)}});
  }
  return json;
}

}  // namespace triptych::studies
