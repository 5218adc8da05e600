// Charts as SVG: for a page, which gives them their colours, and as files of their own.
//
// Series differ by colour, shape of marks and dashes. The fill shows the kind of the numbers:
// measured ones are solid, simulated ones hollow or hatched, modelled ones hollow with a dash or
// pale, recorded ones hollow with a dot or striped.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace triptych::page {

enum class Scale { Linear, Log };

struct ChartAxis {
  std::string label;
  std::string unit;  ///< as in the report: "s", "FLOP/s". "1" where there is none, "count" where
                     ///< the label names the counted things
  Scale scale = Scale::Linear;
  bool whole = false;  ///< steps, epochs: no labels between whole numbers
};

/// The origin of a number in the report: the JSON pointer of its value, and of the divisor for a
/// quotient.
struct Origin {
  std::string path;
  std::string over;
};

struct ChartPoint {
  double x = 0;
  double y = 0;
  std::string category;  ///< of a bar, in place of x
  std::string label;     ///< name of the point, before its numbers
  Origin x_origin;
  Origin y_origin;
};

using ChartLine = std::vector<std::pair<double, double>>;

struct ChartSeries {
  std::string name;
  std::string kind;  ///< measured, simulated, modelled, recorded. Empty for other kinds
  std::vector<ChartPoint> points;
  ChartLine line;          ///< drawn through, in the same colour
  std::size_t colour = 0;  ///< number of a colour and of a shape
};

/// A bound, such as the roof of a roofline, in the colour of the series that it belongs to.
struct ChartBound {
  std::string name;   ///< shown when pointed at
  std::string label;  ///< at its end. Empty for a thin line without a label
  ChartLine line;
  std::size_t colour = 0;
};

enum class ChartForm {
  Lines,    ///< the points of a series are joined in their order
  Scatter,  ///< they are not
  Bars,     ///< horizontal, one for each series in each category. Dots where y is logarithmic
  Stack,    ///< horizontal, the points of one category one behind the other
};

struct Chart {
  std::string id;  ///< unique within a page
  std::string title;
  ChartForm form = ChartForm::Lines;
  ChartAxis x;  ///< of bars only its label
  ChartAxis y;
  std::vector<ChartSeries> series;
  std::vector<ChartBound> bounds;
};

/// Whether there is anything to draw.
bool has_points(const Chart& chart);

/// For a page that holds chart_css(): `width` in CSS pixels, the height follows from the content.
/// Throws InvalidArgument when there is no point, or one without a place on its axis: not finite,
/// or not above 0 where that is logarithmic.
std::string inline_svg(const Chart& chart, double width);

/// A file that stands alone, with its title and its colours. Throws as inline_svg() does.
std::string to_svg(const Chart& chart);

/// Colours and strokes of all charts, light and dark. In a page `data-theme` on the root decides,
/// else the reader's system.
std::string chart_css();

/// How many colours there are before they come again (with other dashes).
inline constexpr std::size_t kChartColours = 8;

}  // namespace triptych::page
