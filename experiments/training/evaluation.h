// A model scored on images with known masks: each image, and all of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/training/data/boundary_metrics.h"
#include "experiments/training/data/calibration.h"
#include "experiments/training/data/metrics.h"
#include "experiments/training/data/rand_metrics.h"
#include "experiments/training/segmenter.h"

namespace triptych::training {

struct EvaluationOptions {
  double tolerance = segmentation::kBoundaryTolerance;  ///< of the boundary F1
  /// Class of the regions that V-Rand and V-Info score. Nothing: not scored.
  std::optional<std::int64_t> regions = {};
};

/// One class in one image with it in truth or prediction.
struct ClassEvaluation {
  segmentation::Overlap overlap;
  std::optional<segmentation::BoundaryScores> boundary;

  static void visit(auto& self, auto& visitor) {
    visitor(segmentation::kDice, self.overlap.dice());
    visitor(segmentation::kIou, self.overlap.iou());
  }
};

struct ImageEvaluation {
  std::string name;
  segmentation::Size size;
  double pixel_accuracy = 1;
  double calibration_error = 0;
  double brier = 0;
  /// Class 1, 2, .... Nothing for a class that is neither there nor predicted.
  std::vector<std::optional<ClassEvaluation>> classes;
  std::optional<segmentation::RegionScores> regions;

  /// Mean over the classes that the image says something of. Nothing without one.
  segmentation::Score mean_dice() const;

  static void visit(auto& self, auto& visitor) {
    visitor({"width", "width"}, self.size.width);
    visitor({"height", "height"}, self.size.height);
    visitor(segmentation::kDice, self.mean_dice());
    visitor({"pixel_accuracy", "pixel accuracy", "%"}, self.pixel_accuracy);
    visitor({"calibration_error", "calibration error", "%"}, self.calibration_error);
    visitor({"brier", "Brier"}, self.brier);
  }
};

class Evaluation {
 public:
  /// Scores a model with `classes` outputs, where 1 separates two classes. Throws InvalidArgument
  /// for a class of regions that it lacks.
  Evaluation(std::int64_t classes, const EvaluationOptions& options);

  void add(const segmentation::Sample& sample, const Segmentation& predicted);

  const std::vector<ImageEvaluation>& images() const { return images_; }
  /// Positions of up to `count` images, the lowest mean Dice first. Those without one come last.
  std::vector<std::size_t> worst(std::size_t count) const;
  segmentation::Scores scores() const { return scorer_.scores(); }
  const segmentation::ConfusionMatrix& confusion() const { return confusion_; }
  const segmentation::Calibration& calibration() const { return calibration_; }
  const segmentation::BoundaryScorer& boundary() const { return boundary_; }
  const std::optional<segmentation::RegionScorer>& regions() const { return regions_; }

 private:
  std::vector<std::optional<ClassEvaluation>> judge_classes(const segmentation::Sample& sample,
                                                            const Segmentation& predicted) const;

  std::int64_t classes_;
  EvaluationOptions options_;
  std::vector<ImageEvaluation> images_;
  segmentation::Scorer scorer_;
  segmentation::ConfusionMatrix confusion_;
  segmentation::Calibration calibration_;
  segmentation::BoundaryScorer boundary_;
  std::optional<segmentation::RegionScorer> regions_;
};

}  // namespace triptych::training
