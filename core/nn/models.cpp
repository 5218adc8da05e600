// SPDX-License-Identifier: Apache-2.0
#include "core/nn/models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/base/nearest_name.h"
#include "core/ops/concat.h"
#include "core/ops/reshape.h"

namespace triptych {
namespace {

constexpr std::int64_t kMostRowClasses = std::int64_t{1} << 24;  // float32 counts so far

const std::array<ModelConfig, 5>& presets() {
  static const std::array<ModelConfig, 5> list = {{
      {.name = "unet-s", .base = 8, .depth = 3, .size = 64},
      {.name = "unet-m", .base = 32, .depth = 4, .size = 128},
      {.name = "unet-l", .base = 64, .depth = 4, .size = 256},
      {.name = "cnn", .architecture = Architecture::Cnn, .base = 16, .depth = 3, .size = 64},
      {.name = "mlp", .architecture = Architecture::Mlp, .base = 256, .depth = 2, .size = 32},
  }};
  return list;
}

ValueId double_conv(NetworkBuilder& net, const std::string& scope_name, ValueId x,
                    std::int64_t channels) {
  const auto scope = net.graph.scope(scope_name);
  return conv_bn_relu(net, 1, conv_bn_relu(net, 0, x, channels), channels);
}

ValueId up_level(NetworkBuilder& net, std::int64_t level, ValueId x, ValueId skip) {
  const auto scope = net.graph.scope(fmt::format("up{}", level));
  const auto channels = net.graph.spec(skip).shape[1];
  const auto up = up_conv2x2(net, "transpose", x, channels);
  const std::vector<ValueId> both = {skip, up};
  Concat concat;
  concat.axis = 1;
  const auto joined = net.graph.add_node(make_op(concat), both, "concat").front();
  return conv_bn_relu(net, 1, conv_bn_relu(net, 0, joined, channels), channels);
}

ValueId build_unet(NetworkBuilder& net, const ModelConfig& config, ValueId x) {
  std::vector<ValueId> skips;
  for (std::int64_t level = 1; level <= config.depth; ++level) {
    const auto name = fmt::format("down{}", level);
    skips.push_back(double_conv(net, name, x, config.base << (level - 1)));
    x = max_pool2x2(net, name + ".pool", skips.back());
  }
  x = double_conv(net, "bottom", x, config.base << config.depth);
  for (auto level = config.depth; level >= 1; --level) {
    x = up_level(net, level, x, skips[static_cast<std::size_t>(level - 1)]);
  }
  return logits_head(net, "head", x, config.classes);
}

ValueId build_cnn(NetworkBuilder& net, const ModelConfig& config, ValueId x) {
  for (int layer = 0; layer < config.depth; ++layer) {
    const auto scope = net.graph.scope(fmt::format("layer{}", layer + 1));
    x = conv_bn_relu(net, 0, x, config.base);
  }
  return logits_head(net, "head", x, config.classes);
}

ValueId build_mlp(NetworkBuilder& net, const ModelConfig& config, ValueId x) {
  const auto batch = net.graph.spec(x).shape[0];
  const std::vector<ValueId> image = {x};
  x = net.graph.add_node(make_op(Flatten{}), image, "flatten").front();
  for (int layer = 1; layer < config.depth; ++layer) {
    x = relu(net, fmt::format("relu{}", layer),
             linear(net, fmt::format("hidden{}", layer), x, config.base));
  }
  const std::vector<ValueId> flat = {
      linear(net, "head", x, config.classes * config.size * config.size)};
  Reshape to_image;
  to_image.shape = {batch, config.classes, config.size, config.size};
  return net.graph.add_node(make_op(to_image), flat, "logits").front();
}

void require(bool condition, const std::string& message) {
  if (!condition) throw InvalidArgument(message);
}

}  // namespace

std::int64_t ModelConfig::size_multiple() const {
  if (network) return std::max<std::int64_t>(1, network->size_multiple());
  return architecture == Architecture::UNet ? std::int64_t{1} << depth : 1;
}

bool ModelConfig::fixed_size() const {
  return architecture == Architecture::Mlp || (network && network->size_multiple() == 0);
}

std::span<const ModelConfig> model_presets() { return presets(); }

ModelConfig model_preset(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& preset : presets()) {
    if (preset.name == name) return preset;
    names.push_back(preset.name);
  }
  throw InvalidArgument(fmt::format("unknown model \"{}\"; use one of {}, or an ONNX file{}", name,
                                    fmt::join(names, ", "), suggestion(name, names)));
}

void validate(const ModelConfig& config) {
  const auto in_range = [](std::int64_t value, std::int64_t low, std::int64_t high,
                           std::string_view option) {
    require(value >= low && value <= high,
            fmt::format("the option {} must be from {} to {}, got {}", option, low, high, value));
  };
  in_range(config.base, 1, 4096, "base");
  in_range(config.depth, 1, 10, "depth");
  in_range(config.size, 1, 16384, "size");
  in_range(config.in_channels, 1, 5, "in-channels");
  in_range(config.classes, 1, config.maps ? 255 : kMostRowClasses, "classes");
  const auto multiple = config.size_multiple();
  require(config.size % multiple == 0,
          fmt::format("the option size {} must be a multiple of {} ({})", config.size, multiple,
                      config.network
                          ? "the network takes no others"
                          : fmt::format("2 to the power of the option depth {}", config.depth)));
}

std::string model_input_name(std::size_t i) { return i == 0 ? "x" : fmt::format("x{}", i); }

std::vector<ValueId> add_model_inputs(Graph& graph, const ModelConfig& config, std::int64_t batch,
                                      std::int64_t height, std::int64_t width) {
  std::vector<TensorSpec> specs = {{DType::F32, Shape{batch, config.in_channels, height, width}}};
  if (config.network) specs = config.network->inputs(batch, height, width);
  std::vector<ValueId> inputs;
  inputs.reserve(specs.size());
  for (const auto& spec : specs)
    inputs.push_back(graph.add_input(model_input_name(inputs.size()), spec));
  return inputs;
}

ValueId build_model(NetworkBuilder& net, const ModelConfig& config,
                    std::span<const ValueId> inputs) {
  validate(config);
  const auto x = inputs.front();
  switch (config.architecture) {
    case Architecture::UNet:
      return build_unet(net, config, x);
    case Architecture::Cnn:
      return build_cnn(net, config, x);
    case Architecture::Mlp:
      return build_mlp(net, config, x);
    case Architecture::Given:
      break;
  }
  if (config.network) return config.network->build(net, inputs);
  throw InvalidArgument(
      fmt::format("the model \"{}\" is not one of the presets, and the network itself is missing",
                  config.name));
}

}  // namespace triptych
