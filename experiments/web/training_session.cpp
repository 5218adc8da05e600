// SPDX-License-Identifier: Apache-2.0
#include "experiments/web/training_session.h"

#include <algorithm>
#include <cmath>

#include "core/graph/passes/passes.h"
#include "core/nn/training_graph.h"
#include "experiments/training/data/metrics.h"
#include "experiments/training/statistics_estimate.h"
#include "experiments/training/synthetic_images.h"
#include "experiments/training/tensors_hash.h"

namespace triptych::web {
namespace {

training::RunConfig config_of(const SessionOptions& options) {
  training::RunConfig config;
  config.model = model_preset(options.model);
  config.training.seed = options.seed;
  config.training.batch = options.batch;
  return config;
}

PlanOptions plan_options(Contract contract) {
  PlanOptions options;
  options.placement.contract = contract;
  return options;
}

Plan plan_of(Device& device, const training::RunConfig& config, Contract contract) {
  auto step = build_training_graph(config.model, training::training_options(config));
  return make_plan(optimize(std::move(step.graph), {}), {&device}, plan_options(contract));
}

}  // namespace

TrainingSession::TrainingSession(Device& device, const SessionOptions& options)
    : config_(config_of(options)),
      data_(training::given_data(config_, training::synthetic_images(config_), {})),
      batcher_(data_.train, data_.normalization, training::batcher_options(config_)),
      states_(device),
      judged_(device),
      executor_(plan_of(device, config_, options.contract), states_),
      names_(parameter_names(config_.model)) {
  std::ranges::sort(names_);
  for (const auto& name : names_) parameters_ += states_.read(name).shape().elements();
}

float TrainingSession::step() {
  const auto batch = batcher_.draw(steps_ * config_.training.batch, config_.training.batch);
  executor_.set_input("x", batch.x);
  executor_.set_input("target", batch.y);
  // Each time: what evaluates between two steps has the same memory.
  executor_.set_input("learning_rate", scalar_tensor(config_.learning_rate));
  executor_.run();
  ++steps_;
  return executor_.output("loss").as<float>()[0];
}

std::string TrainingSession::weights_sha256() const {
  training::TensorsHash hash;
  for (const auto& name : names_) hash.add(name, states_.read(name));
  return hash.finish();
}

std::unique_ptr<Executor> TrainingSession::judge(Graph graph) {
  const auto& beside = executor_.plan();
  return std::make_unique<Executor>(
      make_plan(optimize(std::move(graph), {}), beside.devices, beside.options), judged_,
      &executor_);
}

void TrainingSession::judge_weights_of_now() {
  if (judged_step_ == steps_) return;
  const auto batches = config_.statistics_batches, batch = config_.training.batch;
  for (const auto& name : states_.names()) {
    const auto state = states_.read(name);
    judged_.require(name, state);
    judged_.write(name, state);
  }
  judged_step_ = steps_;
  if (steps_ == 0) return;  // as a run, whose statistics are then the first ones
  if (!statistics_) statistics_ = judge(build_statistics_graph(config_.model, batch));
  const auto first = training::first_statistics_sample(steps_, batches * batch);
  const auto estimate = training::estimate_statistics(
      *statistics_, batches,
      [&](std::int64_t i) { return batcher_.draw(first + i * batch, batch); }, [] { return true; });
  for (const auto& [name, value] : estimate) judged_.write(name, value);
}

Prediction TrainingSession::predict(std::size_t i) {
  const auto sample = data_.validation.whole(i);
  Prediction prediction{sample->height, sample->width, sample->image, sample->labels, {}};
  judge_weights_of_now();
  if (!evaluation_) {
    evaluation_ =
        judge(build_inference_graph(config_.model, 1, sample->height, sample->width, std::nullopt));
  }
  const auto image = segmentation::normalized(*sample, data_.normalization);
  evaluation_->set_input("x", Tensor({1, sample->channels, sample->height, sample->width}, image));
  evaluation_->run();
  const auto logits = evaluation_->output("logits");
  prediction.classes = segmentation::classes_from_logits(logits.as<float>(), config_.model.classes);
  return prediction;
}

bool TrainingSession::has_subnormals() const {
  for (const auto& name : states_.names()) {
    const auto state = states_.read(name);
    if (state.dtype() != DType::F32) continue;
    for (const float value : state.as<float>())
      if (std::fpclassify(value) == FP_SUBNORMAL) return true;
  }
  return false;
}

}  // namespace triptych::web
