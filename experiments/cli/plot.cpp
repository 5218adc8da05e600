// SPDX-License-Identifier: Apache-2.0
#include "experiments/cli/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/error.h"

namespace triptych::cli {
namespace {

constexpr double kLeft = 80, kTop = 50, kWidth = 560, kHeight = 380;
constexpr double kLetter = 7.5;  ///< of the longest names, at this size of type
/// Okabe and Ito's, which people with colour blindness tell apart.
constexpr std::array kColours = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                 "#E69F00", "#56B4E9", "#000000", "#999999"};

/// One axis: decades from `low` to `high`, as logarithms.
struct Axis {
  double low = std::numeric_limits<double>::max();
  double high = std::numeric_limits<double>::lowest();

  void take(double value) {
    if (!(value > 0) || !std::isfinite(value))
      throw InvalidArgument(fmt::format("{} cannot be drawn on a logarithmic axis", value));
    low = std::min(low, std::floor(std::log10(value)));
    high = std::max(high, std::ceil(std::log10(value)));
  }
  /// From 0 at the low end to 1.
  double place(double value) const { return (std::log10(value) - low) / std::max(1.0, high - low); }
};

/// "1 k", "10 M", "1 u".
std::string decade(double exponent) {
  constexpr std::array prefixes = {"n", "u", "m", "", "k", "M", "G", "T"};
  const auto group = std::clamp(std::floor(exponent / 3), -3.0, 4.0);
  const auto* prefix = prefixes.at(static_cast<std::size_t>(group + 3));
  return fmt::format("{:g} {}", std::pow(10, exponent - 3 * group), prefix);
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else {
      result += c;
    }
  }
  return result;
}

class Drawing {
 public:
  explicit Drawing(const Plot& plot) : plot_(plot) {
    for (const auto& series : plot.series) {
      for (const auto& point : series.points) {
        x_.take(point.x);
        y_.take(point.y);
      }
      legend_ = std::max(legend_, 48 + kLetter * static_cast<double>(series.name.size()));
    }
    if (x_.low > x_.high) throw InvalidArgument("there is nothing to draw");
  }

  std::string svg() {
    const double width = kLeft + kWidth + legend_, height = kTop + kHeight + 60;
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" font-family=\"sans-serif\" font-size=\"13\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        width, height);
    write(kLeft, kTop - 20, "start", plot_.title);
    grid();
    for (std::size_t i = 0; i < plot_.series.size(); ++i) draw(plot_.series[i], i);
    return text_ + "</svg>\n";
  }

 private:
  double x(double value) const { return kLeft + kWidth * x_.place(value); }
  double y(double value) const { return kTop + kHeight * (1 - y_.place(value)); }

  void write(double at_x, double at_y, const char* anchor, const std::string& words) {
    text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", at_x,
                         at_y, anchor, escaped(words));
  }
  void rule(double x1, double y1, double x2, double y2) {
    text_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#dddddd\"/>\n", x1,
        y1, x2, y2);
  }

  void grid() {
    for (double e = x_.low; e <= x_.high; ++e) {
      const double at = x(std::pow(10, e));
      rule(at, kTop, at, kTop + kHeight);
      write(at, kTop + kHeight + 20, "middle", decade(e));
    }
    for (double e = y_.low; e <= y_.high; ++e) {
      const double at = y(std::pow(10, e));
      rule(kLeft, at, kLeft + kWidth, at);
      write(kLeft - 8, at + 4, "end", decade(e));
    }
    write(kLeft + kWidth / 2, kTop + kHeight + 45, "middle", plot_.x_label);
    text_ += fmt::format(
        "<text transform=\"translate(20,{:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
        kTop + kHeight / 2, escaped(plot_.y_label));
  }

  /// A disc; a ring for those that would have the colour of another.
  void mark(double at_x, double at_y, std::size_t number) {
    const char* colour = kColours[number % kColours.size()];
    text_ +=
        fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\" stroke=\"{}\"/>\n",
                    at_x, at_y, number < kColours.size() ? colour : "white", colour);
  }

  void draw(const PlotSeries& series, std::size_t number) {
    const char* colour = kColours[number % kColours.size()];
    std::string path;
    for (const auto& point : series.line) {
      if (point.y > 0) path += fmt::format("{:.1f},{:.1f} ", x(point.x), y(point.y));
    }
    text_ += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\"{}/>\n", path, colour,
                         number < kColours.size() ? "" : " stroke-dasharray=\"6 3\"");
    for (const auto& point : series.points) mark(x(point.x), y(point.y), number);
    const double row = kTop + 10 + 20 * static_cast<double>(number);
    mark(kLeft + kWidth + 24, row, number);
    write(kLeft + kWidth + 36, row + 4, "start", series.name);
  }

  const Plot& plot_;
  Axis x_, y_;
  double legend_ = 0;  ///< width
  std::string text_;
};

}  // namespace

std::string to_svg(const Plot& plot) { return Drawing(plot).svg(); }

}  // namespace triptych::cli
