// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/predictor.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/base/interrupt.h"
#include "core/graph/passes/passes.h"
#include "core/nn/training_graph.h"
#include "experiments/training/inference_graph.h"
#include "experiments/training/statistics_estimate.h"

namespace triptych::training {
namespace {

constexpr std::int64_t kSmallestDefaultTile = 256;
constexpr std::size_t kMaxExecutors = 4;

TileOptions resolve(const ModelConfig& model, TileOptions options) {
  if (options.tile == 0) {
    options.tile = model.fixed_size() ? model.size : std::max(model.size, kSmallestDefaultTile);
  }
  if (model.fixed_size() && options.tile != model.size) {
    throw InvalidArgument(
        fmt::format("{} takes images of {} pixels a side only; the option tile must be {}",
                    model.name, model.size, model.size));
  }
  if (options.tile < 1 || options.tile % model.size_multiple() != 0) {
    throw InvalidArgument(fmt::format("the option tile {} must be a positive multiple of {}",
                                      options.tile, model.size_multiple()));
  }
  if (options.margin < 0) options.margin = model.fixed_size() ? 0 : options.tile / 4;
  const auto unit = std::max<std::int64_t>(1, model.size_multiple());
  if (2 * options.margin > options.tile - unit) {
    throw InvalidArgument(fmt::format(
        "the option margin {} leaves less than {} pixels of a tile of {}; it must be at "
        "most {}",
        options.margin, unit, options.tile, (options.tile - unit) / 2));
  }
  return options;
}

}  // namespace

Predictor::Predictor(const DeviceSet& machine, const ModelConfig& model, Trainer& trainer,
                     const TileOptions& options)
    : machine_(machine),
      model_(model),
      options_(resolve(model, options)),
      states_(&trainer.evaluation_states()),
      lender_(&trainer.executor()) {}

Predictor::Predictor(const DeviceSet& machine, const ModelConfig& model, const TensorMap& weights,
                     const TileOptions& options)
    : machine_(machine),
      model_(model),
      options_(resolve(model, options)),
      weights_(&weights),
      own_states_(std::make_unique<StateStore>(machine.device())),
      states_(own_states_.get()) {}

segmentation::Size Predictor::step_size(segmentation::Size image) const {
  const segmentation::Size tile = {options_.tile, options_.tile};
  if (model_.fixed_size()) return tile;
  const auto unit = model_.size_multiple();
  const segmentation::Size padded = {round_up(image.height, unit), round_up(image.width, unit)};
  return {std::min(padded.height, tile.height), std::min(padded.width, tile.width)};
}

std::int64_t Predictor::unit() const { return std::max<std::int64_t>(1, model_.size_multiple()); }

Executor& Predictor::executor_for(segmentation::Size size) {
  const std::pair key = {size.height, size.width};
  if (const auto known = executors_.find(key); known != executors_.end()) return *known->second;
  if (executors_.size() == kMaxExecutors) executors_.clear();
  Graph graph =
      weights_ != nullptr
          ? frozen_graph(model_, size, *weights_, machine_.config().contract)
          : optimize(build_inference_graph(model_, 1, size.height, size.width, std::nullopt), {});
  auto options = machine_.plan_options();
  options.keep_values = observer_ != nullptr;
  auto plan = make_plan(std::move(graph), machine_.devices(), options);
  return *executors_.emplace(key, std::make_unique<Executor>(std::move(plan), *states_, lender_))
              .first->second;
}

std::vector<float> Predictor::run(Executor& executor, std::span<const float> image) {
  if (interrupted_ != nullptr && *interrupted_) throw Interrupted();
  const auto& graph = executor.plan().graph;
  executor.set_input("x", Tensor(graph.spec(graph.find("x")).shape, image));
  executor.run();
  if (observer_) observer_(executor);
  const auto output = executor.output("logits");
  const auto values = output.as<float>();
  return {values.begin(), values.end()};
}

void Predictor::require_maps() const {
  if (model_.maps) return;
  throw UnsupportedError(fmt::format(
      "\"{}\" makes no map of classes from an image, but one row for each example; judge it by "
      "triptych evaluate, or take it out by triptych export and give arrays to triptych run",
      model_.name));
}

Tensor Predictor::row(const segmentation::Batch& example, const std::function<bool()>& go_on) {
  if (!go_on()) return {};
  if (interrupted_ != nullptr && *interrupted_) throw Interrupted();
  auto& executor = executor_for({model_.size, model_.size});
  set_model_inputs(executor, example);
  executor.run();
  if (observer_) observer_(executor);
  return executor.output("logits").clone();
}

std::int64_t Predictor::band_height(segmentation::Size size) const {
  return std::min(size.height, step_size(size).height);
}

void Predictor::stream(segmentation::Size size, const ReadRows& read, const TakeRows& take) {
  require_maps();
  const auto step = step_size(size);
  if (step.height >= size.height && step.width >= size.width) {
    const segmentation::Band all = {0, size.height};
    return take(all, logits(read(all), size));
  }
  auto& executor = executor_for(step);
  const segmentation::TileCover cover(size, step, options_.margin, unit());
  std::vector<float> tile(static_cast<std::size_t>(model_.in_channels * step.pixels()));
  std::vector<float> result;
  for (std::int64_t row = 0; row < cover.rows(); ++row) {
    const auto needed = cover.needed(row), owned = cover.owned(row);
    const auto image = read(needed);
    result.resize(static_cast<std::size_t>(model_.classes * owned.height * size.width));
    for (auto i = row * cover.columns(); i < (row + 1) * cover.columns(); ++i) {
      cover.extract(i, needed, image, tile);
      cover.place(i, run(executor, tile), owned, result);
    }
    take(owned, result);
  }
}

std::vector<float> Predictor::logits(std::span<const float> image, segmentation::Size size,
                                     const std::function<bool()>& go_on) {
  require_maps();
  const auto step = step_size(size);
  auto& executor = executor_for(step);
  if (step.height >= size.height && step.width >= size.width) {
    if (!go_on()) return {};
    return segmentation::crop(run(executor, segmentation::reflect_pad(image, size, step)), step,
                              size);
  }
  const segmentation::TileCover cover(size, step, options_.margin, unit());
  std::vector<float> tile(static_cast<std::size_t>(model_.in_channels * step.pixels()));
  std::vector<float> result(static_cast<std::size_t>(model_.classes * size.pixels()));
  for (std::int64_t i = 0; i < cover.count(); ++i) {
    if (!go_on()) return {};
    cover.extract(i, image, tile);
    cover.place(i, run(executor, tile), result);
  }
  return result;
}

}  // namespace triptych::training
