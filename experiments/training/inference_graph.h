// The inference graph of a trained model, in float32 or int8.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/contract.h"
#include "core/graph/graph.h"
#include "core/io/safetensors.h"
#include "core/nn/models.h"
#include "experiments/training/data/tiles.h"

namespace triptych::training {

/// The model for one image of this size with `weights` as its states: input "x", output "logits".
/// Throws InvalidArgument when one is missing or has another shape.
Graph loaded_graph(const ModelConfig& model, segmentation::Size size, const TensorMap& weights);

/// The model for one image of this size with `weights` frozen into it and the inference passes
/// done: input "x", output "logits". Under Contract::Int8 the weights are those of quantize_run.
/// Throws InvalidArgument when one is missing or has another shape.
Graph frozen_graph(const ModelConfig& model, segmentation::Size size, const TensorMap& weights,
                   Contract contract);

}  // namespace triptych::training
