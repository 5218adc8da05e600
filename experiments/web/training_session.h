// A model in training, step by step, as `triptych train` trains it on drawn pictures: the same
// graph, batches, weights and masks, without what a page has not (files, threads, ranks).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/safetensors.h"
#include "core/runtime/executor.h"
#include "experiments/training/data/batcher.h"
#include "experiments/training/run_config.h"

namespace triptych::web {

/// Options of `triptych train`. All others have their defaults.
struct SessionOptions {
  std::string_view model = "unet-s";
  std::uint64_t seed = 0;
  std::int64_t batch = 4;
  Contract contract = Contract::Bf16Exact;
};

/// A validation image and what the weights of now make of it, row by row.
struct Prediction {
  std::int64_t height = 0, width = 0;
  std::vector<float> image;
  std::vector<std::uint8_t> truth, classes;  ///< 1: the target
};

class TrainingSession {
 public:
  /// Draws the images, plans the step for `device`, which must outlive this, and makes the first
  /// weights. Throws InvalidArgument for a model or batch that cannot be.
  TrainingSession(Device& device, const SessionOptions& options);

  /// Trains on the next batch. Its loss, before its update.
  float step();
  std::int64_t steps() const { return steps_; }
  std::int64_t parameters() const { return parameters_; }
  std::int64_t validation_images() const { return std::ssize(data_.validation.samples); }
  /// As `triptych train` reports it.
  std::string weights_sha256() const;
  /// Predicts validation image `i`, with statistics of batch normalisation as an evaluation of
  /// `triptych train` after this many steps estimates them.
  Prediction predict(std::size_t i);
  /// Whether a parameter or a moment of the optimiser lies between 0 and the smallest normal
  /// number. Processors that flush such numbers, as the contracts ask, then have other bits.
  bool has_subnormals() const;

 private:
  /// The executor of a graph over the states that are judged.
  std::unique_ptr<Executor> judge(Graph graph);
  /// Gives the judged states the weights of now, and statistics that were estimated for them.
  void judge_weights_of_now();

  training::RunConfig config_;
  training::TrainingData data_;
  segmentation::Batcher batcher_;
  StateStore states_, judged_;
  Executor executor_;
  std::unique_ptr<Executor> statistics_, evaluation_;  ///< of the judged states
  std::int64_t judged_step_ = -1;                      ///< after which they were trained
  std::vector<std::string> names_;                     ///< of the parameters, ascending
  std::int64_t parameters_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace triptych::web
