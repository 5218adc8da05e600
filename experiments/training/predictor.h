// A trained or training model applied to whole images of any size.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/io/safetensors.h"
#include "core/nn/models.h"
#include "core/runtime/executor.h"
#include "experiments/training/data/tiles.h"
#include "experiments/training/device_set.h"
#include "experiments/training/trainer.h"

namespace triptych::training {

/// How images meet the network: those that fit into one tile (padded to a multiple of the network's
/// smallest step) go through whole, larger ones by overlapping tiles.
struct TileOptions {
  std::int64_t tile = 0;     ///< side. 0: the model's size, at least 256 where the model allows it
  std::int64_t margin = -1;  ///< context around the used part of a tile. -1: a fourth of the tile
};

class Predictor {
 public:
  /// Uses the parameters of `trainer`, which changes them during training, and its memory.
  Predictor(const DeviceSet& machine, const ModelConfig& model, Trainer& trainer,
            const TileOptions& options = {});
  /// Uses fixed weights, folded into the graph. int8 ones when that is the machine's contract
  /// (frozen_graph). `weights` must outlive the predictor. Throws InvalidArgument when one is
  /// missing.
  Predictor(const DeviceSet& machine, const ModelConfig& model, const TensorMap& weights,
            const TileOptions& options = {});

  /// Logits [classes, height, width] of a normalised image [channels, height, width]. None when
  /// `go_on`, which is called before every tile, returns false. Throws UnsupportedError for a model
  /// that makes no maps. So does stream().
  std::vector<float> logits(
      std::span<const float> image, segmentation::Size size,
      const std::function<bool()>& go_on = [] { return true; });

  /// The row that a model without maps makes of one example (batch_of). None when `go_on` says no.
  Tensor row(
      const segmentation::Batch& example, const std::function<bool()>& go_on = [] { return true; });

  using ReadRows = std::function<std::vector<float>(const segmentation::Band&)>;
  using TakeRows = std::function<void(const segmentation::Band&, std::span<const float>)>;

  /// The logits of an image that is never whole in memory: `read` gives normalised rows of it
  /// [channels, rows, width], `take` gets the logits [classes, rows, width] of bands from top to
  /// bottom. The same bits as logits() gives.
  void stream(segmentation::Size size, const ReadRows& read, const TakeRows& take);
  /// Rows of the highest band that stream() reads of such an image.
  std::int64_t band_height(segmentation::Size size) const;

  /// From now on throws Interrupted instead of running the network when `interrupted` is set, which
  /// must outlive the predictor.
  void stop_at(const std::atomic<bool>& interrupted) { interrupted_ = &interrupted; }

  /// Calls `observer` after every run of the network. It can then read each value by name. Call it
  /// before the first image.
  void observe(std::function<void(const Executor&)> observer) { observer_ = std::move(observer); }

 private:
  Executor& executor_for(segmentation::Size size);
  /// The size of an image that passes through the network at once.
  segmentation::Size step_size(segmentation::Size image) const;
  std::int64_t unit() const;  ///< step of the origins of tiles
  std::vector<float> run(Executor& executor, std::span<const float> image);
  void require_maps() const;

  const DeviceSet& machine_;
  ModelConfig model_;
  TileOptions options_;
  const TensorMap* weights_ = nullptr;
  std::unique_ptr<StateStore> own_states_;
  StateStore* states_;
  const Executor* lender_ = nullptr;
  std::function<void(const Executor&)> observer_;
  const std::atomic<bool>* interrupted_ = nullptr;
  std::map<std::pair<std::int64_t, std::int64_t>, std::unique_ptr<Executor>> executors_;
};

}  // namespace triptych::training
