// ISBI 2012's scores of a segmentation into regions (cells) that a boundary (membrane) parts:
// foreground-restricted Rand scoring and information theoretic scoring (Arganda-Carreras et al.,
// "Crowdsourcing the creation of image segmentation algorithms for connectomics", 2015), computed
// as by the challenge's script: regions are parts of the region class that are connected by four
// neighbours. Before, the predicted boundary is thinned to a width of one pixel (components.h), the
// true one is not. Only pixels of true regions count. Each of them that the prediction leaves to
// the boundary is a region of its own. Scores of the images are averaged.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/report_field.h"
#include "experiments/training/data/tiles.h"

namespace triptych::segmentation {

/// With S the predicted regions, T the true ones, p_ij the share of the pixels that are in S_i and
/// T_j, s_i and t_j its sums. `rand_split`: two pixels of one region in truth are in one region of
/// S. `rand_merge`: the reverse.
struct RegionScores {
  double rand_split = 0;  ///< sum p_ij^2 / sum t_j^2
  double rand_merge = 0;  ///< sum p_ij^2 / sum s_i^2
  double rand = 0;        ///< V-Rand: sum p_ij^2 / (sum s_i^2 / 2 + sum t_j^2 / 2)
  double info_split = 0;  ///< Equals I(S; T) / H(S). 1 when H(S) is 0
  double info_merge = 0;  ///< Equals I(S; T) / H(T). 1 when H(T) is 0
  double info = 0;        ///< V-Info: I(S; T) / (H(S) / 2 + H(T) / 2). 1 when both are 0

  static void visit(auto& self, auto& visitor) {
    visitor({"v_rand", "V-Rand", "%"}, self.rand);
    visitor({"v_rand_split"}, self.rand_split);
    visitor({"v_rand_merge"}, self.rand_merge);
    visitor({"v_info", "V-Info", "%"}, self.info);
    visitor({"v_info_split"}, self.info_split);
    visitor({"v_info_merge"}, self.info_merge);
  }
};

/// Scores of regions by number. 0: the boundary. Nothing when there are no true regions. Throws
/// InvalidArgument when the sizes differ.
std::optional<RegionScores> region_scores(std::span<const std::int32_t> predicted,
                                          std::span<const std::int32_t> target);

/// The regions of a class from the pixels where `is_region` is not 0, after thinning of the rest.
std::vector<std::int32_t> predicted_regions(std::span<const std::uint8_t> is_region, Size size);

/// Scores of the regions of one class over a set of images, by the predicted classes and at each of
/// nine thresholds of the class's probability.
class RegionScorer {
 public:
  explicit RegionScorer(std::uint8_t region_class) : region_class_(region_class) {}

  /// One image: the predicted classes, the probability of the region class, the true classes.
  /// Returns the scores of the predicted classes.
  std::optional<RegionScores> add(std::span<const std::uint8_t> predicted,
                                  std::span<const float> probability,
                                  std::span<const std::uint8_t> target, Size size);

  struct Best {
    double rand = 0, rand_threshold = 0;
    double info = 0, info_threshold = 0;
  };
  std::int64_t images() const { return images_; }  ///< that have true regions
  RegionScores mean() const;                       ///< of the predicted classes
  /// The largest mean over the images, of thresholds 0.1, 0.2, ... 0.9. Regions are above them.
  Best best() const;

 private:
  static constexpr std::size_t kThresholds = 9;
  struct Sums {
    double rand = 0, info = 0;
  };

  std::uint8_t region_class_;
  std::int64_t images_ = 0;
  RegionScores sum_;
  std::array<Sums, kThresholds> by_threshold_ = {};
};

}  // namespace triptych::segmentation
