// Whole graphs of a model: the training step (forward, loss, backward, optimiser) and inference.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/choice.h"
#include "core/nn/losses.h"
#include "core/nn/models.h"

namespace triptych {

enum class OptimizerKind { Sgd, Adam, AdamW };

template <>
inline constexpr auto kNamesOf<OptimizerKind> =
    std::to_array<std::pair<OptimizerKind, std::string_view>>({{OptimizerKind::Sgd, "sgd"},
                                                               {OptimizerKind::Adam, "adam"},
                                                               {OptimizerKind::AdamW, "adamw"}});

/// Hyperparameters with PyTorch's defaults. The learning rate is an input of the graph.
struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::Adam;
  float momentum = 0.9F;  ///< Sgd
  bool nesterov = false;  ///< Sgd
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float weight_decay = 0;
};

struct TrainingOptions {
  std::int64_t batch = 4;
  std::uint64_t seed = 0;
  LossKind loss = LossKind::CrossEntropy;
  bool weighted = false;  ///< each pixel of the target has a weight
  OptimizerConfig optimizer;
  bool draw = true;  ///< false: parameters are zero, for steps that are planned and never run
};

/// One training step: forward pass, output "loss", backward pass and one node that updates all
/// parameters. Whoever takes it apart goes by the phases of nodes and the roles of states, not by
/// names.
struct TrainingGraph {
  Graph graph;
  std::vector<std::string> parameters;           ///< names, in order of definition
  std::vector<std::string> parameter_gradients;  ///< names of the values, same order
  /// Inputs with the batch as first axis, which ranks and micro-batches divide among them.
  std::vector<std::string> batch_inputs;
  /// In the step of a part of a batch: Identity values that each part replaces by the mean over all
  /// parts. Empty in the step of a whole batch.
  std::vector<std::string> share_means = {};
  /// Likewise: values that a Dropout makes of rows, which it draws for by their place in the batch.
  std::vector<std::string> drawn_by_row = {};
};

/// Makes the training step of a batch of so many.
using TrainingStep = std::function<TrainingGraph(std::int64_t batch)>;

/// Adds the gradients of the states with the role Parameter, and an optimiser with an input
/// "learning_rate" (f32 scalar) and states "optimizer.*". The state "optimizer.step" counts
/// finished steps (i64 scalar). `forward` has an output "loss", one floating element made of sums
/// or means over the batch. The first axis of its inputs, except scalars, is the batch. Throws
/// InvalidArgument when one of that is missing, or an operator on the way has no gradient.
TrainingGraph make_training_graph(Graph forward, const OptimizerConfig& optimizer);

/// The training step of a model. Inputs "x" [batch, in_channels, size, size], or those of
/// add_model_inputs, "target" (target_spec) and "learning_rate". Outputs "loss" and "logits".
TrainingGraph build_training_graph(const ModelConfig& config, const TrainingOptions& options);
/// The same for any batch. That of `options` does not count.
TrainingStep training_step(const ModelConfig& config, const TrainingOptions& options);

/// Inputs of add_model_inputs, output "logits". Parameters and running
/// statistics are states with the same names as in training. Without a seed the parameters are
/// zero, for a caller that brings their values: zero pages take no memory.
Graph build_inference_graph(const ModelConfig& config, std::int64_t batch, std::int64_t height,
                            std::int64_t width, std::optional<std::uint64_t> seed = 0);

/// Inputs and output "logits" as in training. Afterwards the
/// running statistics are the batch's own.
Graph build_statistics_graph(const ModelConfig& config, std::int64_t batch);

/// The names of the trainable parameters among the model's states.
std::vector<std::string> parameter_names(const ModelConfig& config);

}  // namespace triptych
