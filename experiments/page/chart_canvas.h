// Base of the forms of a chart: scales, text, marks, the legend. Only for this folder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/page/chart.h"
#include "experiments/page/format.h"

namespace triptych::page {

/// From values to the share 0 to 1 of an axis' length, and the values that get a label.
class AxisScale {
 public:
  /// Reaches over all values. `from_zero`: at least from 0 where it is linear. About `ticks`
  /// labels. Throws InvalidArgument for a value without a place.
  AxisScale(const ChartAxis& axis, const std::vector<double>& values, int ticks, bool from_zero);

  double place(double value) const;
  /// The value at the far end.
  double high() const;
  const std::vector<double>& ticks() const { return ticks_; }
  std::string tick_label(double value) const;
  /// The label with its unit: "time (ms)".
  std::string title() const;

 private:
  void round_linear(int ticks);
  void round_log(int ticks);

  const ChartAxis& axis_;
  double low_ = 0, high_ = 1;  ///< as logarithms where the axis is logarithmic
  int decimals_ = 0;
  Prefix prefix_;
  std::vector<double> ticks_;
};

/// Estimated width of a text at 12 px in pixels, suitable for wide typefaces.
double text_width(std::string_view text);
/// The text, or its beginning and "…" where it is wider than `width`.
std::string fitted(const std::string& text, double width);

/// Collects SVG elements. Coordinates are CSS pixels, y downwards.
class Canvas {
 public:
  /// `id` becomes part of the ids inside.
  Canvas(std::string id, double width) : id_(std::move(id)), width_(width) {}

  double width() const { return width_; }
  void text(double x, double y, std::string_view anchor, std::string_view css_class,
            std::string_view words);
  void rule(std::string_view css_class, double x1, double y1, double x2, double y2);
  void polyline(std::string_view css_class, std::string_view attributes,
                const std::vector<std::pair<double, double>>& points);
  void raw(std::string_view element) { body_ += element; }
  /// The shape of series number `colour`, filled according to its kind. `quiet`: visible only under
  /// the pointer.
  void shape(double x, double y, std::size_t colour, std::string_view kind, bool quiet = false);
  /// A bar of the current colour, filled as its kind asks.
  void bar(double x, double y, double width, double height, std::string_view kind);
  /// All until close() belongs to one point: its tooltip, its numbers, its colour.
  void open_mark(const ChartSeries& series, const ChartPoint& point, const std::string& tip);
  void close() { body_ += "</g>\n"; }
  /// Samples and names of the series in rows from `y` on. Returns the y below them.
  double legend(const Chart& chart, double y);
  /// Elements that the other one has drawn.
  void take(const Canvas& other) { body_ += other.body_; }
  /// The <svg> element, with `origin` at its top left corner. `head` comes first inside it.
  std::string svg(std::pair<double, double> origin, double height, std::string_view title,
                  std::string_view head) const;

 private:
  std::string id_;
  double width_;
  std::string body_;
};

/// How series number `colour` is dashed: an attribute, or nothing.
std::string dash_attribute(std::size_t colour);

/// Each draws all of a chart from `top` on and gives the y below it.
double draw_points(Canvas& canvas, const Chart& chart, double top);
double draw_bars(Canvas& canvas, const Chart& chart, double top);

}  // namespace triptych::page
