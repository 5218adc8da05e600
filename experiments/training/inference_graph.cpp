// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/inference_graph.h"

#include <fmt/core.h>

#include "core/graph/passes/passes.h"
#include "core/graph/passes/quantize.h"
#include "core/nn/training_graph.h"

namespace triptych::training {
namespace {

void load_weights(Graph& graph, const TensorMap& weights) {
  for (const auto id : graph.values_of(ValueKind::State)) {
    const auto found = weights.find(graph.value(id).name);
    if (found == weights.end()) {
      throw InvalidArgument(
          fmt::format("the weights have no \"{}\"; are they of this model?", graph.value(id).name));
    }
    graph.set_initial(id, std::make_shared<const Tensor>(found->second.clone()));
  }
}

}  // namespace

Graph loaded_graph(const ModelConfig& model, segmentation::Size size, const TensorMap& weights) {
  Graph graph = build_inference_graph(model, 1, size.height, size.width, std::nullopt);
  load_weights(graph, weights);
  return graph;
}

Graph frozen_graph(const ModelConfig& model, segmentation::Size size, const TensorMap& weights,
                   Contract contract) {
  if (contract != Contract::Int8)
    return optimize(loaded_graph(model, size, weights), {.inference = true});
  Graph graph = build_inference_graph(model, 1, size.height, size.width, std::nullopt);
  graph = quantize_blank(optimize(std::move(graph), {.inference = true}));
  load_weights(graph, weights);
  return optimize(std::move(graph), {.inference = true});
}

}  // namespace triptych::training
