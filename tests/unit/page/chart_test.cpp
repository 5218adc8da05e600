// Charts: their content, its place, and refusals.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/page/chart.h"

#include <gmock/gmock.h>

#include <limits>
#include <regex>

#include "core/base/error.h"

namespace triptych::page {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

ChartPoint point(double x, double y) {
  ChartPoint result;
  result.x = x;
  result.y = y;
  return result;
}

ChartSeries series(std::string name, std::string kind, std::vector<ChartPoint> points,
                   std::size_t colour = 0) {
  ChartSeries result;
  result.name = std::move(name);
  result.kind = std::move(kind);
  result.points = std::move(points);
  result.colour = colour;
  return result;
}

Chart times() {
  Chart chart{.id = "times", .title = "Times"};
  chart.x = {.label = "size", .unit = "byte", .scale = Scale::Log};
  chart.y = {.label = "time", .unit = "s"};
  chart.series.push_back(series("cpu", "measured", {point(1e3, 0.001), point(1e6, 0.004)}));
  chart.series.push_back(series("array", "simulated", {point(1e3, 0.002)}, 1));
  return chart;
}

Chart bars(ChartForm form) {
  Chart chart{.id = "bars", .title = "Bars", .form = form};
  chart.y = {.label = "time", .unit = "s"};
  for (const char* name : {"forward", "backward"}) {
    auto one = series(name, "simulated", {point(0, 0.25), point(0, 0.5)});
    one.points[0].category = "down1";
    one.points[1].category = "up1";
    chart.series.push_back(std::move(one));
  }
  return chart;
}

/// Numbers of an attribute of all <rect class="bar">.
std::vector<double> of_bars(const std::string& svg, const std::string& attribute) {
  std::vector<double> values;
  const std::regex pattern("<rect class=\"bar\"[^>]*\\b" + attribute + "=\"([-0-9.]+)\"");
  for (std::sregex_iterator it(svg.begin(), svg.end(), pattern), end; it != end; ++it) {
    values.push_back(std::stod((*it)[1]));
  }
  return values;
}

TEST(Chart, says_units_on_both_axes_and_kinds_in_the_legend) {
  const auto svg = inline_svg(times(), 600);
  EXPECT_THAT(svg, HasSubstr("time (ms)"));
  EXPECT_THAT(svg, HasSubstr("size (B)"));
  EXPECT_THAT(svg, HasSubstr("cpu · measured"));
  EXPECT_THAT(svg, HasSubstr("array · simulated"));
}

TEST(Chart, breaks_a_long_name_of_the_legend_into_lines) {
  auto chart = times();
  chart.series[0].name = "reads of the unified buffer by the systolic array";
  const auto svg = inline_svg(chart, 240);
  EXPECT_THAT(svg, Not(HasSubstr("…")));
  for (const char* words : {">reads of the unified buffer", "systolic array", "measured</text>"})
    EXPECT_THAT(svg, HasSubstr(words));
  EXPECT_EQ(count_of(inline_svg(times(), 240), "class=\"name\""),
            count_of(svg, "class=\"name\"") - 1)
      << "the name has a second line";
}

TEST(Chart, draws_each_point_with_a_tooltip_of_its_numbers) {
  const auto svg = inline_svg(times(), 600);
  EXPECT_EQ(count_of(svg, "class=\"mark"), 3);
  EXPECT_THAT(svg,
              HasSubstr("<title>cpu · measured\ntime: 4.00\u00A0ms\nsize: 1.00\u00A0MB</title>"));
}

TEST(Chart, fills_marks_by_kind) {
  const auto svg = inline_svg(times(), 600);
  EXPECT_EQ(count_of(svg, "class=\"hollow\""), 2) << "the simulated point and its legend";
  EXPECT_EQ(count_of(svg, "class=\"full\""), 3) << "the measured points and their legend";
}

TEST(Chart, numbers_carry_their_place_in_the_report) {
  auto chart = times();
  chart.series[0].points[0].y_origin = {"/results/0/flops", "/results/0/time/value"};
  const auto svg = inline_svg(chart, 600);
  EXPECT_THAT(svg, HasSubstr("data-value=\"0.001\" data-path=\"/results/0/flops\" "
                             "data-over=\"/results/0/time/value\""));
}

TEST(Chart, a_file_of_its_own_brings_its_colours_and_its_title) {
  const auto svg = to_svg(times());
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_THAT(svg, HasSubstr("<style>"));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(svg, HasSubstr(">Times</text>"));
  EXPECT_THAT(inline_svg(times(), 600), Not(HasSubstr("<style>")));
}

TEST(Chart, escapes_names) {
  auto chart = times();
  chart.title = "<b>\"&'";
  chart.series[0].name = "</svg><script>";
  for (const auto& svg : {inline_svg(chart, 600), to_svg(chart)}) {
    EXPECT_THAT(svg, Not(HasSubstr("<b>")));
    EXPECT_THAT(svg, Not(HasSubstr("<script>")));
    EXPECT_THAT(svg, HasSubstr("&lt;/svg&gt;&lt;script&gt;"));
  }
}

TEST(Chart, refuses_what_has_no_place) {
  auto chart = times();
  chart.series[0].points[0].x = 0;
  EXPECT_THROW(inline_svg(chart, 600), InvalidArgument) << "0 on a logarithmic axis";
  chart.series[0].points[0].x = 1;
  chart.series[0].points[0].y = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(inline_svg(chart, 600), InvalidArgument);
  chart.series.clear();
  EXPECT_FALSE(has_points(chart));
  EXPECT_THROW(to_svg(chart), InvalidArgument);
}

TEST(Chart, draws_one_value_and_all_zeros) {
  auto chart = times();
  chart.series = {series("cpu", "", {point(8, 0)})};
  EXPECT_THAT(inline_svg(chart, 600), Not(HasSubstr("nan")));
  chart.x.scale = Scale::Linear;
  EXPECT_THAT(inline_svg(chart, 600), Not(HasSubstr("nan")));
}

TEST(Chart, whole_axes_have_whole_labels) {
  auto chart = times();
  chart.x = {.label = "epoch", .unit = "count", .whole = true};
  chart.series = {series("cpu", "", {point(1, 0.1), point(2, 0.2)})};
  EXPECT_EQ(count_of(inline_svg(chart, 600), ">1.2<"), 0);
}

TEST(Chart, stacked_bars_follow_each_other) {
  const auto svg = inline_svg(bars(ChartForm::Stack), 600);
  const auto xs = of_bars(svg, "x"), widths = of_bars(svg, "width");
  // Two in the legend, then forward and backward of each category.
  ASSERT_EQ(xs.size(), 6);
  EXPECT_NEAR(xs[2] + widths[2], xs[3], 0.02);
  EXPECT_NEAR(xs[4] + widths[4], xs[5], 0.02);
  EXPECT_NEAR(widths[4], 2 * widths[2], 0.02) << "0.5 s beside 0.25 s";
  EXPECT_THAT(svg, HasSubstr("url(#bars-600-simulated)"));
}

TEST(Chart, grouped_bars_start_at_zero_beside_each_other) {
  const auto svg = inline_svg(bars(ChartForm::Bars), 600);
  const auto xs = of_bars(svg, "x"), ys = of_bars(svg, "y");
  ASSERT_EQ(xs.size(), 6);
  EXPECT_EQ(xs[2], xs[3]);
  EXPECT_GT(ys[3], ys[2]);
  EXPECT_THAT(svg, HasSubstr(">250\u00A0ms</text>"));
}

TEST(Chart, bars_on_a_logarithmic_axis_are_dots) {
  auto chart = bars(ChartForm::Bars);
  chart.y.scale = Scale::Log;
  const auto svg = inline_svg(chart, 600);
  EXPECT_TRUE(of_bars(svg, "x").empty()) << "the length of a bar means nothing there";
  EXPECT_EQ(count_of(svg, "class=\"hollow\""), 6);
}

}  // namespace
}  // namespace triptych::page
