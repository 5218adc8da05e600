// How good a segmentation is: Dice = 2 TP / (2 TP + FP + FN) and IoU = TP / (TP + FP + FN) of each
// class, and the share of right pixels. An image without a class in truth and prediction has no
// value for it and does not count in its mean, as in nnU-Net. A class that no image says anything
// of has no score, and is left out of the means over classes. Pixels with the label kIgnored count
// nowhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/report_field.h"

namespace triptych::segmentation {

/// Pixels of one class: predicted and there, only predicted, only there.
struct Overlap {
  std::int64_t both = 0;
  std::int64_t only_predicted = 0;
  std::int64_t only_there = 0;

  /// Neither there nor predicted.
  bool absent() const { return both + only_predicted + only_there == 0; }
  double dice() const;  ///< 1 where it is absent
  double iou() const;
  Overlap& operator+=(const Overlap& other);
};

/// Share, 0 to 1. Nothing where there is nothing to score.
using Score = std::optional<double>;

inline constexpr ReportField kDice = {"dice", "Dice", "%"}, kIou = {"iou", "IoU", "%"},
                             kPixelError = {"pixel_error", "pixel error", "%"};

/// One class over all images.
struct ClassScores {
  std::int64_t images = 0;                  ///< images with it in truth or prediction
  Score dice = {}, iou = {};                ///< means over those
  Score pooled_dice = {}, pooled_iou = {};  ///< of all pixels together

  static void visit(auto& self, auto& visitor) {
    visitor({"images", "images"}, self.images);
    visitor(kDice, self.dice);
    visitor(kIou, self.iou);
    visitor({"pooled_dice", "pooled Dice", "%"}, self.pooled_dice);
    visitor({"pooled_iou", "pooled IoU", "%"}, self.pooled_iou);
  }
};

struct Scores {
  std::int64_t images = 0;
  std::vector<ClassScores> classes = {};  ///< 1, 2, ...: without the background
  /// Means over those of these classes that have a score.
  Score mean_dice = {};
  Score mean_iou = {};
  Score pooled_dice = {};
  Score pooled_iou = {};
  double pixel_accuracy = 0;
  double pixel_error = 0;  ///< 1 - pixel_accuracy

  ClassScores means() const { return {images, mean_dice, mean_iou, pooled_dice, pooled_iou}; }
  /// Nothing without an image, where 0 would look like a bad score.
  Score if_scored(Score score) const { return images > 0 ? score : std::nullopt; }
};

/// The scores of maps that reports show of each evaluation.
struct MapScores {
  Score dice = {}, iou = {}, pixel_error = {};

  explicit MapScores(const Scores& scores = {})
      : dice(scores.if_scored(scores.mean_dice)),
        iou(scores.if_scored(scores.mean_iou)),
        pixel_error(scores.if_scored(scores.pixel_error)) {}
  static void visit(auto& self, auto& visitor) {
    visitor(kDice, self.dice);
    visitor(kIou, self.iou);
    visitor(kPixelError, self.pixel_error);
  }
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
  /// One class: its pixels, and sums over the images that say something of it.
  struct Tally {
    Overlap pooled;
    std::int64_t images = 0;
    double dice = 0, iou = 0;
  };

  std::vector<Tally> classes_;
  std::int64_t images_ = 0;
  std::int64_t right_ = 0;
  std::int64_t pixels_ = 0;
};

/// Pixels by their true and predicted class, over all images.
class ConfusionMatrix {
 public:
  explicit ConfusionMatrix(std::int64_t classes);

  /// One image. Throws InvalidArgument when the sizes differ or there is a class beyond the last.
  void add(std::span<const std::uint8_t> predicted, std::span<const std::uint8_t> target);
  std::int64_t classes() const { return classes_; }
  std::int64_t at(std::int64_t truth, std::int64_t predicted) const {
    return counts_[static_cast<std::size_t>(truth * classes_ + predicted)];
  }

 private:
  std::int64_t classes_;
  std::vector<std::int64_t> counts_;
};

/// Classes from a network's output [channels, pixels]: one channel is a logit, class 1 above 0 (a
/// probability above 1/2). With more outputs the largest wins, and among equals the first.
std::vector<std::uint8_t> classes_from_logits(std::span<const float> logits, std::int64_t channels);

}  // namespace triptych::segmentation
