// From a model on the command line to a plan: the graph, its passes, its placement.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/choice.h"
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

/// Step to plan: a training step or inference with frozen weights, at the model's own size.
struct PlanRequest {
  ModelConfig model;
  Mode mode = Mode::Train;
  TrainingOptions training;
  std::size_t memory_limit_mib = 0;  ///< 0: none
  bool keep_text = false;            ///< keep the graphs before and after each pass
};

ModelPlan plan_model(const PlanRequest& request, const DeviceSet& machine);

/// Values that fill_inputs gives an input.
Tensor noise_of(const Graph& graph, ValueId input);

/// Sets every input: floating-point ones to uniform noise, the learning rate to 0.001, others to 0.
void fill_inputs(Executor& executor);

/// Sums of Op::cost over the nodes of a graph.
Cost total_cost(const Graph& graph);

/// Op::cost of one node.
Cost node_cost(const Graph& graph, const Node& node);

}  // namespace triptych::measure
