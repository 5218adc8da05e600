// How near the outline of a predicted class is to the true one. The boundary of a class: its pixels
// with a pixel of another class or the outside of the picture among their four neighbours. Ignored
// pixels (kIgnored) belong to no class, and adjacent pixels are no boundary for that reason.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/report_field.h"
#include "experiments/training/data/tiles.h"

namespace triptych::segmentation {

/// In pixels. The difference between manual outlines of the same object.
inline constexpr double kBoundaryTolerance = 2;

/// Two measures of a boundary, or means of them.
struct BoundaryMeasures {
  double f1 = 0;  ///< 2 precision recall / (precision + recall) (Csurka et al., 2013)
  /// The larger of the two directed distances that 95 % of the boundary pixels do not exceed, in
  /// pixels. Percentiles are interpolated as NumPy does. The diagonal of the picture when only one
  /// of the two has a boundary.
  double hausdorff95 = 0;

  static void visit(auto& self, auto& visitor) {
    visitor({"boundary_f1", "boundary F1", "%"}, self.f1);
    visitor({"hausdorff95", "Hausdorff 95", "px"}, self.hausdorff95);
  }
};

struct BoundaryScores : BoundaryMeasures {
  double precision = 0;  ///< share of the predicted boundary within the tolerance of the true one
  double recall = 0;     ///< the reverse
};

/// Scores of class `label`. Nothing when neither has it. Throws InvalidArgument when the sizes
/// differ.
std::optional<BoundaryScores> boundary_scores(std::span<const std::uint8_t> predicted,
                                              std::span<const std::uint8_t> target, Size size,
                                              std::uint8_t label,
                                              double tolerance = kBoundaryTolerance);

/// Means over the images with a boundary of a class, in truth or prediction, for all classes except
/// the background, then over the classes with a value.
class BoundaryScorer {
 public:
  explicit BoundaryScorer(std::int64_t classes, double tolerance = kBoundaryTolerance)
      : tolerance_(tolerance), sums_(static_cast<std::size_t>(classes - 1)) {}

  struct Means : BoundaryMeasures {
    std::int64_t images = 0;
  };
  void add(std::span<const std::uint8_t> predicted, std::span<const std::uint8_t> target,
           Size size);
  /// One class.
  void add(std::int64_t label, const BoundaryScores& scores);
  Means of_class(std::int64_t label) const;
  std::optional<Means> mean() const;  ///< nothing when no class has a boundary

 private:
  double tolerance_;
  std::vector<Means> sums_;  ///< of class 1, 2, ...
};

/// 1 where the boundary of the pixels of `set` that are not 0 runs, inside of them. `ignored` may
/// be empty: none are.
std::vector<std::uint8_t> boundary_of(std::span<const std::uint8_t> set,
                                      std::span<const std::uint8_t> ignored, Size size);

/// The smallest value that `percent` of `values` do not exceed, between neighbours by linear
/// interpolation. 0 for no values.
double percentile(std::vector<double> values, double percent);

}  // namespace triptych::segmentation
