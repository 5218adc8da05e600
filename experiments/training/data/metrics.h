// How good a segmentation is: Dice = 2 TP / (2 TP + FP + FN), IoU = TP / (TP + FP + FN), and the
// share of right pixels, per image averaged and over the pixels of all images pooled. Where a class
// is neither predicted nor there, Dice and IoU count as 0.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace triptych::segmentation {

/// Pixels of one class: predicted and there, only predicted, only there.
struct Overlap {
  std::int64_t both = 0;
  std::int64_t only_predicted = 0;
  std::int64_t only_there = 0;

  double dice() const;
  double iou() const;
  Overlap& operator+=(const Overlap& other);
};

struct Scores {
  std::int64_t images = 0;
  double mean_dice = 0;
  double mean_iou = 0;
  double pooled_dice = 0;
  double pooled_iou = 0;
  double pixel_accuracy = 0;
  double pixel_error = 0;  ///< 1 - pixel_accuracy
};

/// Collects images; the classes that count are 1 .. classes - 1 (binary: class 1), with equal
/// weight, so that a large background does not hide a small target.
class Scorer {
 public:
  explicit Scorer(std::int64_t classes);

  /// One image. Throws InvalidArgument when the sizes differ.
  void add(std::span<const std::uint8_t> predicted, std::span<const std::uint8_t> target);
  Scores scores() const;

 private:
  std::vector<Overlap> pooled_;
  std::int64_t images_ = 0;
  std::int64_t right_ = 0;
  std::int64_t pixels_ = 0;
  double dice_sum_ = 0;
  double iou_sum_ = 0;
};

/// Classes from a network's output [channels, pixels]: one channel is a logit, class 1 above 0 (a
/// probability above 1/2); of more the largest wins, the first of equals.
std::vector<std::uint8_t> classes_from_logits(std::span<const float> logits, std::int64_t channels);

}  // namespace triptych::segmentation
