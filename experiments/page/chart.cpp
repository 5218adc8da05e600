// SPDX-License-Identifier: Apache-2.0
#include "experiments/page/chart.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/error.h"
#include "experiments/page/chart_canvas.h"

namespace triptych::page {
namespace {

constexpr double kFileWidth = 760;  ///< CSS pixels of the picture in a file of its own
constexpr double kMargin = 20;      ///< around it
constexpr double kTitle = 28;       ///< height of its title

double draw(Canvas& canvas, const Chart& chart) {
  if (!has_points(chart)) throw InvalidArgument("there is nothing to draw");
  const double top = canvas.legend(chart, 0);
  const bool bars = chart.form == ChartForm::Bars || chart.form == ChartForm::Stack;
  return bars ? draw_bars(canvas, chart, top) : draw_points(canvas, chart, top);
}

}  // namespace

bool has_points(const Chart& chart) {
  return std::ranges::any_of(chart.series,
                             [](const auto& series) { return !series.points.empty(); });
}

std::string inline_svg(const Chart& chart, double width) {
  Canvas canvas(fmt::format("{}-{:g}", chart.id, width), width);
  const double height = draw(canvas, chart);
  return canvas.svg({0, 0}, height, chart.title, "");
}

std::string to_svg(const Chart& chart) {
  Canvas canvas("chart", kFileWidth);
  const double height = draw(canvas, chart);
  Canvas file("chart", kFileWidth + 2 * kMargin);
  const double top = kMargin + kTitle;
  file.raw(
      fmt::format("<rect class=\"back\" x=\"{:g}\" y=\"{:g}\" width=\"100%\" height=\"100%\"/>\n",
                  -kMargin, -top));
  file.text(0, -16, "start", "title", chart.title);
  file.take(canvas);
  return file.svg({-kMargin, -top}, height + top + kMargin, chart.title,
                  fmt::format("<style>{}.chart{{font-family:sans-serif}}</style>\n", chart_css()));
}

}  // namespace triptych::page
