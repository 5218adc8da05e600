// Trains a small network for a few steps on ranks that are threads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "backends/all_backends.h"
#include "core/ops/collectives.h"
#include "core/runtime/executor.h"
#include "parallel/comm/thread_group.h"
#include "parallel/strategies/rank_collectives.h"
#include "parallel/strategies/rank_graph.h"

namespace triptych::parallel {

inline constexpr std::int64_t kBatch = 4;
inline constexpr int kSteps = 3;

inline ModelConfig small_model() {
  auto config = model_preset("unet-s");
  config.base = 2;
  config.depth = 1;
  config.size = 16;
  return config;
}

inline Tensor random_tensor(const TensorSpec& spec, unsigned seed, bool binary) {
  std::mt19937 random(seed);
  Tensor tensor(spec);
  for (float& value : tensor.as<float>()) {
    const float number = static_cast<float>(random() >> 8) * 0x1p-24F;
    value = binary ? std::round(number) : number - 0.5F;
  }
  return tensor;
}

/// Classes 0 to 2, or -1, which do not count: nearly all of the first rows, few of the last.
inline Tensor random_labels(const TensorSpec& spec, unsigned seed) {
  std::mt19937 random(seed);
  Tensor tensor(spec);
  const auto labels = tensor.as<std::int64_t>();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto kept = 1 + 8 * i / labels.size();
    labels[i] = random() % 8 < kept ? static_cast<std::int64_t>(random() % 3) : -1;
  }
  return tensor;
}

/// Sets an input to the rank's rows of a batch, or to all of them, as its graph asks.
inline void set_share(Executor& executor, const std::string& name, unsigned seed, int rank,
                      std::int64_t batch = kBatch) {
  const auto& graph = executor.plan().graph;
  if (!graph.contains(name)) return;
  const auto& spec = graph.spec(graph.find(name));
  auto dims = spec.shape.dims();
  dims[0] = batch;
  const TensorSpec whole_spec = {spec.dtype, Shape(dims)};
  const auto whole = spec.dtype == DType::I64 ? random_labels(whole_spec, seed)
                                              : random_tensor(whole_spec, seed, name[0] == 't');
  Tensor part(spec);
  const auto size = part.bytes().size();
  const auto first = size == whole.bytes().size() ? 0 : static_cast<std::size_t>(rank) * size;
  std::ranges::copy(whole.bytes().subspan(first, size), part.bytes().begin());
  executor.set_input(name, part);
}

struct Outcome {
  std::vector<float> losses;
  std::map<std::string, Tensor> states;  ///< of this rank, without the optimiser's
  std::size_t message_bytes = 0;         ///< that nodes between two ranks keep for their messages
};

/// Settings of a run without its strategy.
struct RunOptions {
  std::string_view mesh = {};
  int shards = 0;
  int accumulate = 1;
  Overlap overlap = Overlap::None;
  std::int64_t batch = kBatch;  ///< of all ranks together
  std::map<std::string, double> node_seconds = {};
  TrainingStep step = training_step(small_model(), {.seed = 3});
  Contract contract = Contract::Bf16Exact;
  float learning_rate = 0.01F;
};

/// Outcome of each rank.
inline std::vector<Outcome> train_group(RankGroup& group, std::string_view strategy,
                                        const std::string& order, const RunOptions& run = {}) {
  const auto kind = strategy_from_string(strategy, run.mesh);
  const int ranks = group.world_size();
  std::vector<Outcome> outcomes(static_cast<std::size_t>(ranks));
  run_ranks(group, [&](Communicator& communicator) {
    const auto device = open_device("cpu", {.threads = 1});
    RankCollectives collectives(communicator, kind.mesh, run.overlap);
    auto own = make_rank_graph(kind, {.step = run.step,
                                      .batch = run.batch,
                                      .world_size = ranks,
                                      .rank = communicator.rank(),
                                      .order = value_of<ReductionOrder>(order),
                                      .shards = run.shards,
                                      .accumulate = run.accumulate,
                                      .node_seconds = run.node_seconds});
    const int part = own.share >= 0 ? own.share : communicator.rank();
    PlanOptions options;
    options.placement.contract = run.contract;
    options.placement.collectives = &collectives;
    const auto inputs = run.step(1).batch_inputs;
    StateStore states(*device);
    Executor executor(make_plan(std::move(own.graph), {device.get()}, options), states);
    auto& outcome = outcomes[static_cast<std::size_t>(communicator.rank())];
    for (const auto& step : executor.plan().steps) {
      const auto& op = *executor.plan().graph.node(step.node).op;
      if (op_cast<Send>(op) != nullptr || op_cast<Receive>(op) != nullptr)
        outcome.message_bytes += step.kernel->resident_bytes();
    }
    for (unsigned step = 0; step < kSteps; ++step) {
      for (unsigned i = 0; i < inputs.size(); ++i)
        set_share(executor, inputs[i], 2 * step + i, part, run.batch);
      if (executor.plan().graph.contains("learning_rate"))
        executor.set_input("learning_rate", scalar_tensor(run.learning_rate));
      executor.run();
      outcome.losses.push_back(executor.output("loss").as<float>()[0]);
    }
    for (const auto& name : states.names())
      if (!name.starts_with("optimizer.")) outcome.states.emplace(name, states.read(name));
  });
  return outcomes;
}

/// The same on threads that read each other's memory.
inline std::vector<Outcome> train_ranks(std::string_view strategy, int ranks,
                                        const std::string& order, const RunOptions& run = {}) {
  ThreadGroup group(ranks, CommunicatorOptions().timeout);
  return train_group(group, strategy, order, run);
}

}  // namespace triptych::parallel
