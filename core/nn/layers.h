// Layers: functions that add parameters and nodes to a graph.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"

namespace triptych {

/// The graph under construction, the mode, and the trainable parameters added so far. The
/// parameters of a layer are scope + layer + ".weight", ".bias", ...
struct NetworkBuilder {
  Graph& graph;
  std::uint64_t seed = 0;
  bool training = false;
  float momentum = 0.9F;  ///< of running statistics in training. 0: they become the batch's
  bool draw = true;  ///< draw initial parameters. False: they are zero, to be set by the caller
  std::vector<ValueId> parameters = {};

  /// A trainable state in the current scope, uniform by fan-in.
  ValueId parameter(const std::string& name, const Shape& shape, std::int64_t fan_in);
  /// A trainable state in the current scope with this initial value.
  ValueId parameter(const std::string& name, Tensor initial);
};

/// 3x3 convolution without bias, stride 1, 'same' padding. x: [N, C, H, W] to [N, channels, H, W].
ValueId conv3x3(NetworkBuilder& net, std::string_view name, ValueId x, std::int64_t channels);

/// The last layer: 1x1 convolution with bias to one logit per class. Its weights are stratified.
ValueId logits_head(NetworkBuilder& net, std::string_view name, ValueId x, std::int64_t classes);

/// Batch normalisation with running statistics (epsilon 1e-5).
ValueId batch_norm(NetworkBuilder& net, std::string_view name, ValueId x);

/// 2x2 transposed convolution with stride 2 and bias. [N, C, H, W] to [N, channels, 2H, 2W].
ValueId up_conv2x2(NetworkBuilder& net, std::string_view name, ValueId x, std::int64_t channels);

/// y = x w + b. x: [N, features] to [N, out_features].
ValueId linear(NetworkBuilder& net, std::string_view name, ValueId x, std::int64_t out_features);

ValueId relu(NetworkBuilder& net, std::string_view name, ValueId x);
ValueId max_pool2x2(NetworkBuilder& net, std::string_view name, ValueId x);

/// 3x3 convolution without bias, batch normalisation, ReLU: conv{i}, bn{i}, relu{i}.
ValueId conv_bn_relu(NetworkBuilder& net, int index, ValueId x, std::int64_t channels);

}  // namespace triptych
