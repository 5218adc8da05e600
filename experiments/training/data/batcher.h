// Batches for training. Sample k of a run is a pure function of (seed, k): batches are the same at
// any number of ranks, after a resume, and in any order of calls.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/tensor.h"
#include "experiments/training/data/augment.h"
#include "experiments/training/data/dataset.h"

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
  Tensor x;  ///< f32 [batch, channels, height, width], normalised
  /// Binary: f32 [batch, 1, height, width]; else i64 [batch, height, width]; of samples with
  /// weights f32 [batch, 2, height, width], class and weight.
  Tensor y;
};

class Batcher {
 public:
  /// `dataset` must outlive the batcher. Throws InvalidArgument when it is empty.
  Batcher(const Dataset& dataset, const Normalization& normalization, BatcherOptions options);

  /// Samples first .. first + count - 1 of the run. Step s of batch size B is draw(s * B, B); of
  /// that, rank r of R takes draw(s * B + r * B / R, B / R). Safe for several threads.
  Batch draw(std::int64_t first, std::int64_t count) const;
  /// Which element of the data set sample `k` of the run is.
  std::size_t element(std::int64_t k) const;

 private:
  const Dataset& dataset_;
  Normalization normalization_;
  BatcherOptions options_;
  bool weighted_ = false;
};

}  // namespace triptych::segmentation
