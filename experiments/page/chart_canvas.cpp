// SPDX-License-Identifier: Apache-2.0
#include "experiments/page/chart_canvas.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <numbers>

namespace triptych::page {
namespace {

constexpr double kLetter = 7.4, kThinLetter = 4.7, kWideLetter = 11.2;  ///< widths at 12 px
constexpr double kRadius = 4.6;                                         ///< of a mark
constexpr double kLegendRow = 20;

/// A star polygon: `corners` outside, as many inside at the share `inner` of the radius (1: none).
struct Outline {
  int corners;  ///< 0: a circle
  double turn;  ///< of the first corner from the top, in degrees
  double inner, size;
};

constexpr std::array<Outline, kChartColours> kOutlines = {{{0, 0, 1, 1},
                                                           {4, 45, 1, 1.2},
                                                           {3, 0, 1, 1.3},
                                                           {4, 0, 1, 1.25},
                                                           {3, 180, 1, 1.3},
                                                           {4, 0, 0.4, 1.5},
                                                           {5, 0, 1, 1.15},
                                                           {5, 0, 0.45, 1.5}}};

std::string outline_path(const Outline& outline, double x, double y) {
  const double r = kRadius * outline.size;
  if (outline.corners == 0) {
    return fmt::format(
        "M{0:.1f} {1:.1f}a{2:.1f} {2:.1f} 0 1 0 {3:.1f} 0a{2:.1f} {2:.1f} 0 1 0 "
        "-{3:.1f} 0z",
        x - r, y, r, 2 * r);
  }
  const bool star = outline.inner < 1;
  const int count = outline.corners * (star ? 2 : 1);
  std::string path;
  for (int i = 0; i < count; ++i) {
    const double angle = (outline.turn + 360.0 * i / count) * std::numbers::pi / 180;
    const double reach = star && i % 2 == 1 ? r * outline.inner : r;
    path += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", x + reach * std::sin(angle),
                        y - reach * std::cos(angle));
  }
  return path + "z";
}

std::string_view outline_class(std::string_view kind) {
  const bool hollow = kind == "simulated" || kind == "modelled" || kind == "recorded";
  return hollow ? "hollow" : "full";
}

/// Attributes for tests, which find each number of the picture in the report.
std::string origins(const ChartPoint& point) {
  std::string text;
  const auto add = [&](std::string_view prefix, double value, const Origin& origin) {
    if (origin.path.empty()) return;
    text += fmt::format(" data-{0}value=\"{1}\" data-{0}path=\"{2}\"", prefix, format_exact(value),
                        escape(origin.path));
    if (!origin.over.empty())
      text += fmt::format(" data-{}over=\"{}\"", prefix, escape(origin.over));
  };
  add("", point.y, point.y_origin);
  add("x-", point.x, point.x_origin);
  return text;
}

bool drawn_as_bars(const Chart& chart) {
  return chart.form == ChartForm::Stack ||
         (chart.form == ChartForm::Bars && chart.y.scale == Scale::Linear);
}

}  // namespace

double text_width(std::string_view text) {
  double width = 0;
  for (const char c : text) {
    if ((c & 0xC0) == 0x80) continue;  // rest of a letter
    const bool thin = std::string_view(" .,:;'|!()[]ijlftrI-").find(c) != std::string_view::npos;
    const bool wide = std::string_view("mwMW%@").find(c) != std::string_view::npos;
    width += thin ? kThinLetter : (wide ? kWideLetter : kLetter);
  }
  return width;
}

std::string fitted(const std::string& text, double width) {
  if (text_width(text) <= width) return text;
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t next = at + 1;
    while (next < text.size() && (text[next] & 0xC0) == 0x80) ++next;
    if (text_width(result) + 2 * kLetter > width) break;
    result += text.substr(at, next - at);
    at = next;
  }
  return result + "…";
}

namespace {

/// The text in lines of that width, broken at blanks. A longer word is shortened.
std::vector<std::string> lines_of(const std::string& text, double width) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find(' ', at), text.size());
    const auto word = fitted(text.substr(at, end - at), width);
    const bool fits = !lines.empty() && text_width(lines.back() + " " + word) <= width;
    if (fits) {
      lines.back() += " " + word;
    } else {
      lines.push_back(word);
    }
    at = end + 1;
  }
  return lines;
}

}  // namespace

std::string dash_attribute(std::size_t colour) {
  constexpr std::array<std::string_view, 5> dashes = {"", "7 3", "2 3", "8 3 2 3", "12 4"};
  const auto dash = dashes.at(colour % dashes.size());
  return dash.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", dash);
}

void Canvas::text(double x, double y, std::string_view anchor, std::string_view css_class,
                  std::string_view words) {
  const auto css = css_class.empty() ? "" : fmt::format(" class=\"{}\"", css_class);
  body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y,
                       anchor, css, escape(words));
}

void Canvas::rule(std::string_view css_class, double x1, double y1, double x2, double y2) {
  body_ += fmt::format("<path class=\"{}\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>\n", css_class, x1,
                       y1, x2, y2);
}

void Canvas::polyline(std::string_view css_class, std::string_view attributes,
                      const std::vector<std::pair<double, double>>& points) {
  body_ += fmt::format("<polyline class=\"{}\"{} points=\"", css_class, attributes);
  for (const auto& [x, y] : points) body_ += fmt::format("{:.1f},{:.1f} ", x, y);
  body_ += "\"/>\n";
}

void Canvas::shape(double x, double y, std::size_t colour, std::string_view kind, bool quiet) {
  const auto& outline = kOutlines.at(colour % kOutlines.size());
  body_ += fmt::format("<path class=\"{}{}\" d=\"{}\"/>", outline_class(kind),
                       quiet ? " quiet" : "", outline_path(outline, x, y));
  if (kind == "recorded" && !quiet) {
    body_ += fmt::format("<circle class=\"core\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"1.7\"/>", x, y);
  }
  if (kind == "modelled" && !quiet) {
    body_ += fmt::format("<path class=\"dash\" d=\"M{:.1f} {:.1f}h5\"/>", x - 2.5, y);
  }
}

void Canvas::bar(double x, double y, double width, double height, std::string_view kind) {
  const auto place = fmt::format("x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\"", x,
                                 y, std::max(width, 0.5), height);
  if (kind == "modelled") body_ += fmt::format("<rect class=\"back\" {}/>", place);
  body_ += fmt::format("<rect class=\"bar{}\" {}/>", kind == "modelled" ? " pale" : "", place);
  if (kind == "simulated" || kind == "recorded") {
    body_ += fmt::format("<rect fill=\"url(#{}-{})\" {}/>", id_, kind, place);
  }
}

void Canvas::open_mark(const ChartSeries& series, const ChartPoint& point, const std::string& tip) {
  body_ += fmt::format("<g class=\"mark s{}\"{}><title>{}</title>", series.colour % kChartColours,
                       origins(point), escape(tip));
}

double Canvas::legend(const Chart& chart, double y) {
  double x = 0;
  for (const auto& series : chart.series) {
    if (series.points.empty()) continue;
    const auto words = series.name + (series.kind.empty() ? "" : " · " + series.kind);
    const auto lines = lines_of(words, width_ - 30);
    const double width = lines.size() > 1 ? width_ + 18 : 28 + text_width(words) + 18;
    if (x > 0 && x + width - 18 > width_) {
      x = 0;
      y += kLegendRow;
    }
    body_ += fmt::format("<g class=\"s{}\">", series.colour % kChartColours);
    if (drawn_as_bars(chart)) {
      bar(x, y + 4, 20, 11, series.kind);
    } else {
      if (chart.form == ChartForm::Lines || !series.line.empty()) {
        polyline("join", dash_attribute(series.colour), {{x, y + 10}, {x + 22, y + 10}});
      }
      shape(x + 11, y + 10, series.colour, series.kind);
    }
    for (std::size_t line = 0; line < lines.size(); ++line) {
      if (line > 0) y += kLegendRow;
      text(x + 28, y + 14, "start", "name", lines[line]);
    }
    close();
    x += width;
  }
  return x > 0 ? y + kLegendRow : y;
}

std::string Canvas::svg(std::pair<double, double> origin, double height, std::string_view title,
                        std::string_view head) const {
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\" aria-label=\"{0}\" "
      "viewBox=\"{3:g} {4:g} {1:g} {2:.0f}\" width=\"{1:g}\" height=\"{2:.0f}\">\n{5}",
      escape(title), width_, height, origin.first, origin.second, head);
  const auto pattern = [&](std::string_view kind, int turn) {
    const auto name = fmt::format("{}-{}", id_, kind);
    if (body_.find("#" + name) == std::string::npos) return;
    text += fmt::format(
        "<pattern id=\"{}\" patternUnits=\"userSpaceOnUse\" width=\"5\" height=\"5\" "
        "patternTransform=\"rotate({})\"><path class=\"stripe\" d=\"M2.5 0V5\"/></pattern>\n",
        name, turn);
  };
  pattern("simulated", 45);
  pattern("recorded", 90);
  return text + body_ + "</svg>\n";
}

}  // namespace triptych::page
