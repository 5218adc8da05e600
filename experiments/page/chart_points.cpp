// Lines and scattered points over two axes.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "experiments/page/chart_canvas.h"

namespace triptych::page {
namespace {

constexpr std::size_t kManyPoints = 32;  ///< above, only some of a line's marks show. Half as many
                                         ///< on narrow screens
constexpr double kNarrow = 500;          ///< pixels

std::vector<double> values_of(const Chart& chart, bool vertical) {
  std::vector<double> values;
  const auto take = [&](const ChartLine& line) {
    for (const auto& [x, y] : line) values.push_back(vertical ? y : x);
  };
  for (const auto& series : chart.series) {
    for (const auto& point : series.points) values.push_back(vertical ? point.y : point.x);
    take(series.line);
  }
  for (const auto& bound : chart.bounds) take(bound.line);
  return values;
}

/// A line starts at 0 unless its values are all far from it.
bool from_zero(const std::vector<double>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return least >= 0 && least < 0.5 * most;
}

class Plane {
 public:
  Plane(Canvas& canvas, const Chart& chart, double top)
      : canvas_(canvas),
        chart_(chart),
        narrow_(canvas.width() < kNarrow),
        xs_(values_of(chart, false)),
        ys_(values_of(chart, true)),
        x_scale_(chart.x, xs_, narrow_ ? 4 : 8, false),
        y_scale_(chart.y, ys_, 5, from_zero(ys_)),
        top_(top + 34 + (narrow_ ? 17 * named_bounds() : 0)) {
    for (const double tick : y_scale_.ticks()) {
      left_ = std::max(left_, 10 + text_width(y_scale_.tick_label(tick)));
    }
    right_ = canvas.width() - 14;
    for (const auto& bound : chart.bounds) {
      if (narrow_ || bound.label.empty()) continue;
      right_ = std::min(right_, canvas.width() - 8 - text_width(bound.label));
    }
    bottom_ = top_ + (narrow_ ? 230 : 320);
  }

  double draw() {
    grid();
    for (const auto& bound : chart_.bounds) {
      canvas_.raw(fmt::format("<g><title>{}</title>", escape(bound.name)));
      draw_line(to_the_edge(bound), bound.colour, bound.label.empty() ? "bound thin" : "bound", "");
      canvas_.close();
    }
    for (const auto& series : chart_.series) draw_lines(series);
    for (const auto& series : chart_.series) draw_marks(series);
    name_bounds();
    return bottom_ + 44;
  }

 private:
  double x(double value) const { return left_ + (right_ - left_) * x_scale_.place(value); }
  double y(double value) const { return bottom_ - (bottom_ - top_) * y_scale_.place(value); }

  void grid() {
    canvas_.text(0, top_ - 13, "start", "", y_scale_.title());
    for (const double tick : y_scale_.ticks()) {
      canvas_.rule("grid", left_, y(tick), right_, y(tick));
      canvas_.text(left_ - 7, y(tick) + 4, "end", "", y_scale_.tick_label(tick));
    }
    double free_from = 0;  // labels that would touch are left out
    for (const double tick : x_scale_.ticks()) {
      const auto label = x_scale_.tick_label(tick);
      const double half = text_width(label) / 2;
      canvas_.rule(chart_.x.scale == Scale::Log ? "grid" : "axis", x(tick),
                   chart_.x.scale == Scale::Log ? top_ : bottom_, x(tick), bottom_ + 4);
      if (x(tick) - half < free_from) continue;
      free_from = x(tick) + half + 4;
      const double at = std::min(x(tick), canvas_.width() - half);
      canvas_.text(at, bottom_ + 18, "middle", "", label);
    }
    canvas_.rule("axis", left_, bottom_, right_, bottom_);
    canvas_.text((left_ + right_) / 2, bottom_ + 37, "middle", "", x_scale_.title());
  }

  /// A bound with a label and a level end continues to the right edge.
  ChartLine to_the_edge(const ChartBound& bound) const {
    auto line = bound.line;
    if (bound.label.empty() || line.size() < 2) return line;
    if (line.back().second == line[line.size() - 2].second) line.back().first = x_scale_.high();
    return line;
  }

  void draw_line(const ChartLine& line, std::size_t colour, std::string_view css,
                 const std::string& attributes) {
    std::vector<std::pair<double, double>> places;
    places.reserve(line.size());
    for (const auto& [px, py] : line) places.emplace_back(x(px), y(py));
    canvas_.raw(fmt::format("<g class=\"s{}\">", colour % kChartColours));
    canvas_.polyline(css, attributes, places);
    canvas_.close();
  }

  void draw_lines(const ChartSeries& series) {
    if (!series.line.empty()) {
      draw_line(series.line, series.colour, "join", dash_attribute(series.colour));
    }
    if (chart_.form != ChartForm::Lines || series.points.size() < 2) return;
    ChartLine through;
    for (const auto& point : series.points) through.emplace_back(point.x, point.y);
    draw_line(through, series.colour, "join", dash_attribute(series.colour));
  }

  std::string tip(const ChartSeries& series, const ChartPoint& point) const {
    const auto number = [](const ChartAxis& axis, double value) {
      return fmt::format("{}: {}", axis.label, format_quantity(value, axis.unit));
    };
    auto text = point.label.empty() ? "" : point.label + "\n";
    text += series.name + (series.kind.empty() ? "" : " · " + series.kind) + "\n";
    return text + number(chart_.y, point.y) + "\n" + number(chart_.x, point.x);
  }

  void draw_marks(const ChartSeries& series) {
    const auto count = series.points.size();
    const bool many = chart_.form == ChartForm::Lines && count > kManyPoints / (narrow_ ? 2 : 1);
    const auto stride = many ? count / 8 : 1;
    for (std::size_t i = 0; i < count; ++i) {
      const auto& point = series.points[i];
      canvas_.open_mark(series, point, tip(series, point));
      canvas_.raw(fmt::format("<circle class=\"hit\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"9\"/>",
                              x(point.x), y(point.y)));
      const bool quiet = many && i % stride != series.colour % stride;
      canvas_.shape(x(point.x), y(point.y), series.colour, series.kind, quiet);
      canvas_.close();
    }
  }

  double named_bounds() const {
    return static_cast<double>(std::ranges::count_if(
        chart_.bounds, [](const auto& bound) { return !bound.label.empty(); }));
  }

  /// At the right ends, moved apart to avoid overlaps. Where it is narrow, above the plane.
  void name_bounds() {
    auto bounds = chart_.bounds;
    std::erase_if(bounds,
                  [](const auto& bound) { return bound.line.empty() || bound.label.empty(); });
    std::ranges::stable_sort(bounds, std::greater(),
                             [](const auto& bound) { return bound.line.back().second; });
    double lowest = narrow_ ? top_ - 38 - 17 * named_bounds() : top_ - 20;
    for (const auto& bound : bounds) {
      const double level = y(bound.line.back().second) + 4;
      lowest = narrow_ ? lowest + 17 : std::max(level, lowest + 14);
      canvas_.raw(fmt::format("<g class=\"s{}\">", bound.colour % kChartColours));
      if (narrow_) canvas_.polyline("bound", "", {{0, lowest - 4}, {22, lowest - 4}});
      canvas_.text(narrow_ ? 28 : x(to_the_edge(bound).back().first) + 6, lowest, "start",
                   "bound-name", fitted(bound.label, canvas_.width() - (narrow_ ? 28 : right_)));
      canvas_.close();
    }
  }

  Canvas& canvas_;
  const Chart& chart_;
  bool narrow_;
  std::vector<double> xs_, ys_;
  AxisScale x_scale_, y_scale_;
  double left_ = 24, right_ = 0, top_, bottom_ = 0;
};

}  // namespace

double draw_points(Canvas& canvas, const Chart& chart, double top) {
  return Plane(canvas, chart, top).draw();
}

}  // namespace triptych::page
