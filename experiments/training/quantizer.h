// Post-training quantisation of a run: calibrates on images, gives the weights in int8.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "experiments/training/data/dataset.h"
#include "experiments/training/data/metrics.h"
#include "experiments/training/predictor.h"
#include "experiments/training/run_folder.h"

namespace triptych::training {

/// The magnitudes of a stream of numbers, counted in bins with a width of 1/128 of their power of
/// two: a percentile of any number of them in 256 KiB.
class Magnitudes {
 public:
  Magnitudes();
  void add(std::span<const float> values);
  /// The magnitude that `percent` of the numbers do not exceed, rounded up to the end of its bin.
  /// 100 gives the largest, exactly. NaNs count as the largest. 0 when nothing was added.
  float percentile(double percent) const;

 private:
  std::vector<std::int64_t> counts_;
  std::int64_t total_ = 0;
  std::uint32_t largest_bits_ = 0;  ///< of a float32
};

/// `count` samples, or all when there are fewer, evenly from the first to the last.
std::vector<std::shared_ptr<const segmentation::Sample>> spread_samples(
    const segmentation::Dataset& dataset, std::int64_t count);

/// The states of the quantised network, as frozen_graph wants them. Ranges are the `percentile` of
/// the magnitudes on `images`, computed on `machine`, which has a floating-point contract. Throws
/// UnsupportedError for a model that int8 cannot compute.
TensorMap quantize_run(const DeviceSet& machine, const SavedRun& run,
                       std::span<const std::shared_ptr<const segmentation::Sample>> images,
                       double percentile);

/// Scores of `predictor` on `samples`, normalised as `run` says.
segmentation::Scores evaluate(Predictor& predictor, const SavedRun& run,
                              const segmentation::Dataset& samples);

/// `config` with the contract that the weights of `run`, loaded from `folder`, ask for: int8 for
/// quantised ones. `given`: the user requested the contract. Throws InvalidArgument with the
/// command to type when it does not fit the weights.
ExecutionConfig machine_for(const SavedRun& run, const std::filesystem::path& folder,
                            ExecutionConfig config, bool given);

}  // namespace triptych::training
