// How much each pixel of a training image counts in the loss: rare classes more, and the thin
// background between objects that touch (Ronneberger et al., "U-Net", 2015, equation 2).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/training/data/dataset.h"

namespace triptych::segmentation {

inline constexpr std::string_view kBalanced = "balanced";

struct WeightOptions {
  /// "1,4": of class 0 and 1. "balanced": the inverse of each class's share of the pixels. Empty:
  /// classes count equally.
  std::string classes;
  /// Most that background pixels between two objects gain. The paper has 10. 0: nothing.
  double border = 0;
  double border_sigma = 5;  ///< pixels

  /// True when pixels count differently.
  bool any() const { return !classes.empty() || border > 0; }
};

/// The numbers of `text`, one for each of `classes` classes (1 means two). Throws InvalidArgument
/// for another text or another number of them, one that is negative or not finite, or all 0.
std::vector<double> parse_class_weights(std::string_view text, std::int64_t classes);

/// Sets Sample::weights: the class's weight and, for background, border exp(-(d1 + d2)^2 / (2
/// sigma^2)). d1 and d2 are the distances in pixels to the nearest two objects (four-connected
/// parts of the foreground). The term counts as 0 where one is 5 sigma away. Pixels to be ignored
/// get
/// 0. All are then scaled so that their mean over the data set is 1. Throws InvalidArgument when no
/// pixel counts.
void set_pixel_weights(Dataset& dataset, const WeightOptions& options);

}  // namespace triptych::segmentation
