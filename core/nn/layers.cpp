// SPDX-License-Identifier: Apache-2.0
#include "core/nn/layers.h"

#include <fmt/core.h>

#include "core/nn/initializers.h"
#include "core/ops/batch_normalization.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/matmul.h"
#include "core/ops/pool.h"
#include "core/ops/unary.h"

namespace triptych {

ValueId NetworkBuilder::parameter(const std::string& name, Tensor initial) {
  parameters.push_back(graph.add_state(name, std::move(initial), StateRole::Parameter));
  return parameters.back();
}

ValueId NetworkBuilder::parameter(const std::string& name, const Shape& shape,
                                  std::int64_t fan_in) {
  if (!draw) return parameter(name, Tensor(TensorSpec{DType::F32, shape}));
  return parameter(name, uniform_fan_in(shape, fan_in, seed, graph.prefix() + name));
}

namespace {

ValueId add(NetworkBuilder& net, OpPtr op, std::vector<ValueId> inputs, std::string_view name) {
  return net.graph.add_node(std::move(op), inputs, name).front();
}

}  // namespace

ValueId conv3x3(NetworkBuilder& net, std::string_view name, ValueId x, std::int64_t channels) {
  const auto in_channels = net.graph.spec(x).shape[1];
  const auto weight =
      net.parameter(fmt::format("{}.weight", name), {channels, in_channels, 3, 3}, in_channels * 9);
  Conv conv;
  conv.kernel_shape = {3, 3};
  conv.pads = {1, 1, 1, 1};
  return add(net, make_op(conv), {x, weight}, name);
}

ValueId logits_head(NetworkBuilder& net, std::string_view name, ValueId x, std::int64_t classes) {
  const auto channels = net.graph.spec(x).shape[1];
  const auto weight_name = fmt::format("{}.weight", name);
  const auto weight =
      net.parameter(weight_name, stratified_fan_in({classes, channels, 1, 1}, channels, net.seed,
                                                   net.graph.prefix() + weight_name));
  const auto bias = net.parameter(fmt::format("{}.bias", name), {classes}, channels);
  return add(net, make_op(Conv{}), {x, weight, bias}, name);
}

ValueId batch_norm(NetworkBuilder& net, std::string_view name, ValueId x) {
  const Shape channels = {net.graph.spec(x).shape[1]};
  const auto scale = net.parameter(fmt::format("{}.weight", name), filled(channels, 1));
  const auto bias = net.parameter(fmt::format("{}.bias", name), filled(channels, 0));
  const auto running = [&](const char* statistic, float initial) {
    return net.graph.add_state(fmt::format("{}.{}", name, statistic), filled(channels, initial),
                               StateRole::Statistic);
  };
  const auto mean = running("running_mean", 0), var = running("running_var", 1);
  BatchNormalization norm;
  norm.training_mode = net.training;
  norm.momentum = net.momentum;
  return add(net, make_op(norm), {x, scale, bias, mean, var}, name);
}

ValueId up_conv2x2(NetworkBuilder& net, std::string_view name, ValueId x, std::int64_t channels) {
  const auto in_channels = net.graph.spec(x).shape[1];
  const auto fan_in = channels * 4;  // as PyTorch counts it: the weight's second axis times taps
  const auto weight =
      net.parameter(fmt::format("{}.weight", name), {in_channels, channels, 2, 2}, fan_in);
  const auto bias = net.parameter(fmt::format("{}.bias", name), {channels}, fan_in);
  ConvTranspose conv;
  conv.kernel_shape = {2, 2};
  conv.strides = {2, 2};
  return add(net, make_op(conv), {x, weight, bias}, name);
}

ValueId linear(NetworkBuilder& net, std::string_view name, ValueId x, std::int64_t out_features) {
  const auto in_features = net.graph.spec(x).shape[1];
  const auto weight =
      net.parameter(fmt::format("{}.weight", name), {out_features, in_features}, in_features);
  const auto bias = net.parameter(fmt::format("{}.bias", name), {out_features}, in_features);
  Gemm gemm;
  gemm.transB = true;
  return add(net, make_op(gemm), {x, weight, bias}, name);
}

ValueId relu(NetworkBuilder& net, std::string_view name, ValueId x) {
  return add(net, make_op(Unary(UnaryKind::Relu)), {x}, name);
}

ValueId max_pool2x2(NetworkBuilder& net, std::string_view name, ValueId x) {
  MaxPool pool;
  pool.kernel_shape = {2, 2};
  pool.strides = {2, 2};
  return add(net, make_op(pool), {x}, name);
}

ValueId conv_bn_relu(NetworkBuilder& net, int index, ValueId x, std::int64_t channels) {
  const auto y = conv3x3(net, fmt::format("conv{}", index), x, channels);
  return relu(net, fmt::format("relu{}", index), batch_norm(net, fmt::format("bn{}", index), y));
}

}  // namespace triptych
