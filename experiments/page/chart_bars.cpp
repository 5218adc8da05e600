// Horizontal bars over categories, in groups or stacked.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/page/chart_canvas.h"

namespace triptych::page {
namespace {

constexpr double kBar = 15, kGap = 3, kBetween = 12;
constexpr double kNarrow = 500;  ///< pixels. Below, a category's name stands above its bars

class Bars {
 public:
  Bars(Canvas& canvas, const Chart& chart, double top)
      : canvas_(canvas),
        chart_(chart),
        stacked_(chart.form == ChartForm::Stack),
        dots_(chart.y.scale == Scale::Log),
        narrow_(canvas.width() < kNarrow),
        categories_(categories(chart)),
        scale_(chart.y, ends(), narrow_ ? 4 : 7, true),
        top_(top + 8) {
    double names = 0, values = 0;
    for (const auto& name : categories_) names = std::max(names, text_width(name));
    for (const auto& series : chart.series) {
      for (const auto& point : series.points) values = std::max(values, text_width(value(point)));
    }
    left_ = narrow_ ? 2 : std::min(names + 12, 0.36 * canvas.width());
    right_ = canvas.width() - (stacked_ ? 16 : values + 12);
  }

  double draw() {
    const double below = bottom();
    for (const double tick : scale_.ticks()) {
      const auto label = scale_.tick_label(tick);
      const double at = x(tick);
      canvas_.rule("grid", at, top_, at, below);
      const double half = text_width(label) / 2;
      canvas_.text(std::clamp(at, half, canvas_.width() - half), below + 16, "middle", "", label);
    }
    double y = top_ + kBetween / 2;
    for (const auto& category : categories_) y = draw_category(category, y);
    if (!dots_) canvas_.rule("axis", x(0), top_, x(0), below);
    canvas_.text((left_ + right_) / 2, below + 35, "middle", "", scale_.title());
    return below + 42;
  }

 private:
  static std::vector<std::string> categories(const Chart& chart) {
    std::vector<std::string> names;
    for (const auto& series : chart.series) {
      for (const auto& point : series.points) {
        if (std::ranges::find(names, point.category) == names.end())
          names.push_back(point.category);
      }
    }
    return names;
  }

  /// Where bars end.
  std::vector<double> ends() const {
    std::vector<double> values;
    std::map<std::string, double> sums;
    for (const auto& series : chart_.series) {
      for (const auto& point : series.points) {
        values.push_back(stacked_ ? sums[point.category] += point.y : point.y);
      }
    }
    return values;
  }

  double x(double value) const { return left_ + (right_ - left_) * scale_.place(value); }
  std::string value(const ChartPoint& point) const {
    return format_quantity(point.y, chart_.y.unit);
  }

  std::size_t rows(const std::string& category) const {
    if (stacked_) return 1;
    std::size_t count = 0;
    for (const auto& series : chart_.series) {
      count += static_cast<std::size_t>(
          std::ranges::count(series.points, category, &ChartPoint::category));
    }
    return count;
  }

  double height(const std::string& category) const {
    return static_cast<double>(rows(category)) * (kBar + kGap) - kGap + (narrow_ ? 17 : 0);
  }

  double bottom() const {
    double y = top_;
    for (const auto& category : categories_) y += height(category) + kBetween;
    return y;
  }

  double draw_category(const std::string& category, double y) {
    const double all = height(category);
    if (narrow_) {
      canvas_.text(left_, y + 11, "start", "name halo", fitted(category, canvas_.width()));
      y += 17;
    } else {
      canvas_.text(left_ - 8, y + all / 2 + 4, "end", "name", fitted(category, left_ - 10));
    }
    double sum = 0, row = y;
    for (const auto& series : chart_.series) {
      for (const auto& point : series.points) {
        if (point.category != category) continue;
        draw_one(series, point, stacked_ ? sum : 0, row);
        sum += point.y;
        if (!stacked_) row += kBar + kGap;
      }
    }
    return y + all - (narrow_ ? 17 : 0) + kBetween;
  }

  void draw_one(const ChartSeries& series, const ChartPoint& point, double from, double y) {
    const auto kind = series.kind.empty() ? "" : " · " + series.kind;
    const auto label = point.label.empty() ? point.category : point.label;
    canvas_.open_mark(series, point,
                      fmt::format("{}\n{}{}\n{}", label, series.name, kind, value(point)));
    const double end = x(from + point.y);
    if (dots_) {
      canvas_.rule("grid", left_, y + kBar / 2, right_, y + kBar / 2);
      canvas_.raw(fmt::format("<circle class=\"hit\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"9\"/>", end,
                              y + kBar / 2));
      canvas_.shape(end, y + kBar / 2, series.colour, series.kind);
    } else {
      canvas_.bar(std::min(x(from), end), y, std::fabs(end - x(from)), kBar, series.kind);
    }
    if (!stacked_) {
      const double beside = point.y < 0 ? x(0) : end;
      canvas_.text(beside + (dots_ ? 10 : 6), y + kBar / 2 + 4, "start", dots_ ? "halo" : "",
                   value(point));
    }
    canvas_.close();
  }

  Canvas& canvas_;
  const Chart& chart_;
  bool stacked_, dots_, narrow_;
  std::vector<std::string> categories_;
  AxisScale scale_;
  double top_, left_ = 0, right_ = 0;
};

}  // namespace

double draw_bars(Canvas& canvas, const Chart& chart, double top) {
  return Bars(canvas, chart, top).draw();
}

}  // namespace triptych::page
