// The running statistics of batch normalisation, estimated again for the current weights. In
// training they follow the batches with a memory of about ten steps of other weights, and a
// validation that uses them can collapse from one epoch to the next. PyTorch had the same problem
// and remedy: Wu and Johnson, "Rethinking 'Batch' in BatchNorm", 2021, section 3 (precise batch
// normalisation).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/io/safetensors.h"
#include "experiments/training/trainer.h"

namespace triptych::training {

class BatchStatistics {
 public:
  /// Plans a forward pass of a training batch on the machine. All must outlive it.
  BatchStatistics(const DeviceSet& machine, const ModelConfig& model, std::int64_t batch,
                  Trainer& trainer);

  /// True when the model has any.
  bool any() const { return !names_.empty(); }
  /// Means and variances over all images of `batches` batches together, by the names of the states
  /// that they stand for: f32, sums in double in ascending order, so that every machine finds the
  /// same. `batch` draws one. Empty when `go_on`, asked before each batch, says no.
  /// Afterwards the trainer's states have their previous values. All processes ask at the same
  /// time.
  TensorMap estimate(std::int64_t batches,
                     const std::function<segmentation::Batch(std::int64_t)>& batch,
                     const std::function<bool()>& go_on);

 private:
  Executor& executor();

  const DeviceSet& machine_;
  Trainer& trainer_;
  Graph graph_;
  std::vector<std::string> names_;  ///< in pairs: mean, variance
  std::unique_ptr<Executor> executor_;
};

/// Puts values in the place of states for as long as it lives.
class ReplacedStates {
 public:
  ReplacedStates(StateStore& states, const TensorMap& values);
  ~ReplacedStates();
  ReplacedStates(const ReplacedStates&) = delete;
  ReplacedStates& operator=(const ReplacedStates&) = delete;

 private:
  StateStore& states_;
  TensorMap before_;
};

}  // namespace triptych::training
