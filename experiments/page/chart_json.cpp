// SPDX-License-Identifier: Apache-2.0
#include "experiments/page/chart_json.h"

#include <cmath>

namespace triptych::page {
namespace {

ChartForm form_from(const std::string& kind) {
  if (kind == "scatter") return ChartForm::Scatter;
  if (kind == "bars") return ChartForm::Bars;
  if (kind == "stack") return ChartForm::Stack;
  return ChartForm::Lines;
}

ChartAxis axis_from(const JsonView& json) {
  return {.label = json["label"].text(),
          .unit = json["unit"].text(),
          .scale = json["scale"].text() == "log" ? Scale::Log : Scale::Linear};
}

bool over_categories(const Chart& chart) {
  return chart.form == ChartForm::Bars || chart.form == ChartForm::Stack;
}

ChartSeries series_from(const JsonView& json, bool categories, std::size_t number) {
  ChartSeries series{.name = json["name"].text(), .kind = json["kind"].text()};
  series.colour = number;
  for (const auto& part : json["points"].items()) {
    if (part["y"].null() || (!categories && part["x"].null())) continue;
    ChartPoint point;
    point.y = part["y"].number();
    point.y_origin.path = part["y"].path();
    point.label = part["label"].text();
    if (categories) {
      point.category = part["x"].text();
    } else {
      point.x = part["x"].number();
      point.x_origin.path = part["x"].path();
    }
    series.points.push_back(std::move(point));
  }
  return series;
}

Cell value_cell(double value, const std::string& unit, const Origin& origin,
                const std::string& kind) {
  Cell cell;
  cell.number = true;
  if (std::isfinite(value)) cell.value = value;
  cell.unit = unit;
  cell.kind = kind;
  cell.origin = origin;
  return cell;
}

Cell cell_from(const JsonView& json, const std::string& unit) {
  if (json.is_object()) return figure_cell(json);
  if (json.is_string()) return text_cell(json.text());
  return number_cell(json, unit.empty() ? "1" : unit);
}

}  // namespace

Chart chart_from(const JsonView& json) {
  Chart chart{.id = json["id"].text(),
              .title = json["title"].text(),
              .form = form_from(json["kind"].text())};
  chart.x = axis_from(json["x"]);
  chart.y = axis_from(json["y"]);
  for (const auto& series : json["series"].items()) {
    chart.series.push_back(series_from(series, over_categories(chart), chart.series.size()));
  }
  for (const auto& line : json["lines"].items()) {
    ChartBound bound{.name = line["name"].text(), .label = line["name"].text()};
    bound.colour = kChartColours - 1;
    for (const auto& point : line["points"].items()) {
      if (point.size() == 2) bound.line.emplace_back(point[0].number(), point[1].number());
    }
    chart.bounds.push_back(std::move(bound));
  }
  return chart;
}

Table points_table(const Chart& chart) {
  const bool categories = over_categories(chart);
  Table table{.id = chart.id + "-points",
              .caption = chart.title,
              .columns = {"series", "point", chart.x.label, chart.y.label}};
  for (const auto& series : chart.series) {
    for (const auto& point : series.points) {
      table.rows.push_back({text_cell(series.name), text_cell(point.label),
                            categories ? text_cell(point.category)
                                       : value_cell(point.x, chart.x.unit, point.x_origin, ""),
                            value_cell(point.y, chart.y.unit, point.y_origin, series.kind)});
    }
  }
  return table;
}

Table table_from(const JsonView& json, std::string id) {
  Table table{.id = std::move(id), .caption = json["title"].text()};
  const auto columns = json["columns"];
  for (const auto& column : columns.items()) table.columns.push_back(column["name"].text());
  for (const auto& row : json["rows"].items()) {
    std::vector<Cell> cells;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      cells.push_back(row[c].null() ? text_cell("–")
                                    : cell_from(row[c], columns[c]["unit"].text()));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace triptych::page
