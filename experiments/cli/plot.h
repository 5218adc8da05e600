// A log-log diagram as an SVG file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace triptych::cli {

/// Both above 0.
struct PlotPoint {
  double x = 1, y = 1;
};

struct PlotSeries {
  std::string name;
  std::vector<PlotPoint> points;  ///< drawn as dots
  std::vector<PlotPoint> line;    ///< drawn through, in the same colour
};

struct Plot {
  std::string title, x_label, y_label;
  std::vector<PlotSeries> series;
};

/// Axes reach from the smallest to the largest point, in decades. Throws InvalidArgument when there
/// is no point, or one that has no logarithm.
std::string to_svg(const Plot& plot);

}  // namespace triptych::cli
