// Batches for training. Sample k of a run is a pure function of (seed, k): batches are the same at
// any number of ranks, after a resume, and in any order of calls.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/tensor.h"
#include "experiments/training/data/augment.h"
#include "experiments/training/data/dataset.h"
#include "experiments/training/data/normalization.h"

namespace triptych::segmentation {

enum class Drawing {
  Epochs,           ///< every sample once per epoch, in an order of its own
  WithReplacement,  ///< each time any sample, all equally likely
};

struct BatcherOptions {
  AugmentOptions augment;
  Drawing drawing = Drawing::Epochs;
  std::uint64_t seed = 0;
};

struct Batch {
  Tensor x;  ///< f32 [batch, channels, height, width], normalised, or rows of an array
  /// Binary: f32 [batch, 1, height, width]. Otherwise i64 [batch, height, width]. For samples with
  /// weights f32 [batch, 2, height, width], class and weight.
  /// Rows of the target, where there are arrays.
  Tensor y;
  std::vector<Tensor> others = {};  ///< rows of the network's further inputs, of arrays
};

/// Throws InvalidArgument unless a batch of a caller has the values of batches from files:
/// images within the limits of require_intensities, and maps of whole classes from 0 to classes - 1
/// (1 means two), or kNoClass where there are more than two outputs.
void require_batch(const Batch& batch, std::int64_t classes);

/// The middle `side` x `side` pixels of a picture as a batch of one: f32 [1, channels, side, side],
/// normalised.
Tensor middle_of(const Sample& picture, const Normalization& normalization, std::int64_t side);

/// Sample `i` of a set with arrays as a batch of one, without augmentation: of a picture its
/// middle.
Batch batch_of(const Dataset& dataset, std::size_t i, const Normalization& normalization,
               std::int64_t side);

class Batcher {
 public:
  /// `dataset` must outlive the batcher. Throws InvalidArgument when it is empty.
  Batcher(const Dataset& dataset, const Normalization& normalization, BatcherOptions options);

  /// Samples first .. first + count - 1 of the run. Step s of batch size B is draw(s * B, B). Of
  /// that, rank r of R draws draw(s * B + r * B / R, B / R). Safe for several threads.
  Batch draw(std::int64_t first, std::int64_t count) const;
  /// Which element of the data set sample `k` of the run is.
  std::size_t element(std::int64_t k) const;

 private:
  Sample patch(std::int64_t k) const;
  Batch draw_arrays(std::int64_t first, std::int64_t count) const;
  Tensor blank_images(std::int64_t count) const;
  void set_image(Batch& batch, std::int64_t b, const Sample& patch) const;

  const Dataset& dataset_;
  Normalization normalization_;
  BatcherOptions options_;
  bool weighted_ = false;
};

}  // namespace triptych::segmentation
