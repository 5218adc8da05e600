// From a model on the command line to a plan: the graph, its passes, its placement.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/choice.h"
#include "core/base/random.h"
#include "core/graph/passes/passes.h"
#include "core/nn/training_graph.h"
#include "core/runtime/executor.h"
#include "experiments/training/device_set.h"

namespace triptych::measure {

using training::DeviceSet;

enum class Mode : std::uint8_t { Train, Infer };

}  // namespace triptych::measure

namespace triptych {

template <>
inline constexpr auto kNamesOf<measure::Mode> =
    std::to_array<std::pair<measure::Mode, std::string_view>>({{measure::Mode::Train, "train"},
                                                               {measure::Mode::Infer, "infer"}});

}  // namespace triptych

namespace triptych::measure {

struct ModelPlan {
  Plan plan;
  std::vector<PassReport> passes;
};

/// Makes the graph of inference for a batch.
using InferenceGraph = std::function<Graph(std::int64_t batch)>;

/// Step to plan: a training step or inference with frozen weights, at the model's own size.
struct PlanRequest {
  ModelConfig model;
  InferenceGraph inference = nullptr;  ///< of Mode::Infer: in the place of the model's
  Mode mode = Mode::Train;
  TrainingOptions training;
  std::size_t memory_limit_mib = 0;  ///< 0: none
  bool keep_text = false;            ///< keep the graphs before and after each pass
};

/// Throws UnsupportedError naming a product of floats, which the contract int8 does not have for a
/// network that brings its own integers.
void require_integer_products(const Graph& graph);

ModelPlan plan_model(const PlanRequest& request, const DeviceSet& machine);

/// Random whole numbers from -127 to 127 for a tensor of int8.
void fill_int8(Tensor& tensor, RandomStream& random);

/// Values that fill_inputs gives an input.
Tensor noise_of(const Graph& graph, ValueId input);

/// Sets every input: floating-point ones to uniform noise, int8 ones to random whole numbers, the
/// learning rate to 0.001, others to 0.
void fill_inputs(Executor& executor);

/// Sums of Op::cost over the nodes of a graph.
Cost total_cost(const Graph& graph);

/// Op::cost of one node.
Cost node_cost(const Graph& graph, const Node& node);

}  // namespace triptych::measure
