// SPDX-License-Identifier: Apache-2.0
#include "core/graph/passes/quantize.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/quantized_math.h"
#include "core/graph/passes/rewrite.h"
#include "core/ops/concat.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/pool.h"
#include "core/ops/quantize.h"
#include "core/ops/quantized_conv.h"
#include "core/ops/slice.h"
#include "core/ops/transpose.h"
#include "core/ops/unary.h"

namespace triptych {
namespace {

constexpr double kLargest = 127;
/// Most that a bias may take of an int32 sum. The products have the rest.
constexpr double kLargestBias = 0x1p30;

bool is_product(const Op& op) {
  return op_cast<Conv>(op) != nullptr || op_cast<ConvTranspose>(op) != nullptr;
}

/// True when the operator only moves or selects integers, independent of their meaning.
bool keeps_scale(const Op& op) {
  const auto* unary = op_cast<Unary>(op);
  return op.view() || op_cast<MaxPool>(op) != nullptr || op_cast<Concat>(op) != nullptr ||
         op_cast<Transpose>(op) != nullptr || op_cast<Slice>(op) != nullptr ||
         (unary != nullptr && unary->kind == UnaryKind::Relu);
}

/// A convolution's weights and bias as integers.
struct IntegerWeights {
  Tensor weight;                   ///< i8
  std::vector<std::int32_t> bias;  ///< per output channel
  std::vector<double> sum_scales;  ///< per output channel: the value of 1 in the int32 sum
};

/// For each weight of `node` the output channel that it belongs to.
std::vector<std::size_t> output_channels(const Graph& graph, const Node& node) {
  const auto& shape = graph.spec(node.inputs[1]).shape;
  const auto taps = shape.elements_between(2, shape.rank());
  const auto* transposed = op_cast<ConvTranspose>(*node.op);
  std::vector<std::size_t> channels(static_cast<std::size_t>(shape.elements()));
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const auto first = static_cast<std::int64_t>(i) / taps / shape[1];
    auto channel = first;
    if (transposed != nullptr) {
      const auto group = first / (shape[0] / transposed->group);
      channel = group * shape[1] + static_cast<std::int64_t>(i) / taps % shape[1];
    }
    channels[i] = static_cast<std::size_t>(channel);
  }
  return channels;
}

IntegerWeights quantize_weights(const Graph& graph, const Node& node, double x_scale) {
  const auto weights = to_doubles(*graph.value(node.inputs[1]).data);
  const auto channel_of = output_channels(graph, node);
  const auto channels = static_cast<std::size_t>(graph.spec(node.outputs[0]).shape[1]);
  std::vector<double> bias(channels, 0.0);
  if (node.inputs.size() > 2) bias = to_doubles(*graph.value(node.inputs[2]).data);
  std::vector<double> scales(channels, 0.0);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    auto& scale = scales[channel_of[i]];
    scale = std::max(scale, std::abs(weights[i]) / kLargest);
  }
  IntegerWeights result{.weight = Tensor({DType::I8, graph.spec(node.inputs[1]).shape})};
  for (std::size_t o = 0; o < channels; ++o) {
    // Tiny weights with a large bias: their scale must let the bias fit.
    scales[o] = std::max(scales[o], std::abs(bias[o]) / (x_scale * kLargestBias));
    if (scales[o] == 0) scales[o] = 1;
    result.sum_scales.push_back(x_scale * scales[o]);
    result.bias.push_back(
        static_cast<std::int32_t>(std::nearbyint(bias[o] / result.sum_scales[o])));
  }
  const auto integers = result.weight.as<std::int8_t>();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    integers[i] = static_cast<std::int8_t>(std::nearbyint(weights[i] / scales[channel_of[i]]));
  }
  return result;
}

/// The integer operator that stands for the convolution `op`.
OpPtr integer_op(const Op& op) {
  if (const auto* conv = op_cast<Conv>(op)) {
    QuantizedConv result;
    static_cast<WindowAttributes&>(result) = *conv;
    result.group = conv->group;
    result.activation = conv->activation;
    return make_op(std::move(result));
  }
  QuantizedConvTranspose result;
  static_cast<ConvTransposeAttributes&>(result) = *op_cast<ConvTranspose>(op);
  return make_op(std::move(result));
}

/// Which values share a scale: the operands of every node that keeps it.
class ScaleGroups {
 public:
  explicit ScaleGroups(const Graph& graph) : graph_(graph), consumers_(graph.consumers()) {
    for (const auto& value : graph.values()) parent_.push_back(value.id);
    for (const auto& node : graph.nodes()) {
      check(node);
      if (is_product(*node.op)) continue;
      for (const auto input : node.inputs) {
        parent_[root(input).index()] = root(node.outputs.front());
      }
    }
  }

  ValueId root(ValueId value) const {
    while (parent_[value.index()] != value) value = parent_[value.index()];
    return value;
  }

  /// True when the value is a convolution's and only an output of the graph: it keeps int32 sums.
  bool gives_sums(ValueId value) const {
    const auto producer = graph_.value(value).producer;
    return producer.valid() && is_product(*graph_.node(producer).op) &&
           consumers_[value.index()].empty();
  }

  /// True when the value brings a range of its own into its group.
  bool has_range(ValueId value) const {
    const auto& known = graph_.value(value);
    if (known.kind == ValueKind::Input) return !consumers_[value.index()].empty();
    return known.producer.valid() && is_product(*graph_.node(known.producer).op) &&
           !gives_sums(value);
  }

 private:
  void check(const Node& node) const {
    const bool product = is_product(*node.op);
    if (!product && !keeps_scale(*node.op)) {
      throw UnsupportedError(fmt::format(
          "node \"{}\" is {}, which int8 cannot compute; it computes Conv and "
          "ConvTranspose (with BatchNormalization and Relu folded in), MaxPool, Concat, "
          "Relu, Transpose, Slice and reshaping",
          node.name, node.op->name()));
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto& value = graph_.value(node.inputs[i]);
      const bool parameter = product && i > 0;
      if (parameter == (value.kind == ValueKind::Constant) && value.spec.dtype == DType::F32) {
        continue;
      }
      throw_invalid("quantize", fmt::format("node \"{}\" reads \"{}\", {}; weights must be float32 "
                                            "constants (freeze_states) and nothing else may be",
                                            node.name, value.name, to_string(value.spec)));
    }
  }

  const Graph& graph_;
  std::vector<std::vector<NodeId>> consumers_;
  std::vector<ValueId> parent_;
};

class Quantizer {
 public:
  Quantizer(const Graph& graph, const Ranges& ranges)
      : graph_(graph), groups_(graph), rewriter_(graph), scales_(graph.values().size(), 0.0) {
    for (const auto& value : graph.values()) {
      if (value.kind == ValueKind::State) {
        throw_invalid("quantize",
                      fmt::format("\"{}\" is a state; freeze_states first", value.name));
      }
      if (groups_.has_range(value.id)) take_range(value, ranges);
    }
    for (auto& scale : scales_) scale = scale == 0 ? 1 : scale;
  }

  Graph run() {
    for (const auto id : graph_.values_of(ValueKind::Input)) {
      if (groups_.has_range(id)) quantize_input(id);
    }
    for (const auto& node : graph_.nodes()) {
      if (is_product(*node.op)) {
        append_product(node);
      } else {
        rewriter_.copy(node);
      }
    }
    for (const auto& output : graph_.outputs()) dequantize_output(output);
    return rewriter_.finish();
  }

 private:
  void take_range(const Value& value, const Ranges& ranges) {
    const auto found = ranges.find(value.name);
    if (found == ranges.end()) {
      throw_invalid("quantize", fmt::format("no range for \"{}\"; calibrate all that "
                                            "values_to_calibrate names",
                                            value.name));
    }
    if (!std::isfinite(found->second) || found->second < 0) {
      throw_invalid("quantize", fmt::format("the range of \"{}\" is {}; the calibration images or "
                                            "the weights are not good",
                                            value.name, found->second));
    }
    auto& scale = scales_[groups_.root(value.id).index()];
    // As float32, because QuantizeLinear divides by it. It must be normal there.
    const auto own = std::max(static_cast<float>(found->second / kLargest), 0x1p-120F);
    scale = std::max(scale, found->second == 0 ? 0 : double{own});
  }

  double scale_of(ValueId value) const { return scales_[groups_.root(value).index()]; }

  ValueId state(const std::string& name, Tensor value) {
    return rewriter_.target().add_state(name, std::move(value));
  }
  template <class T>
  ValueId state(const std::string& name, const std::vector<T>& values) {
    return state(name, Tensor(Shape{std::ssize(values)}, values));
  }

  void quantize_input(ValueId x) {
    const auto& name = graph_.value(x).name;
    const auto scale = static_cast<float>(scale_of(x));
    const ValueId inputs[] = {rewriter_.mapped(x), state(name + ".scale", scalar_tensor(scale))};
    auto& target = rewriter_.target();
    rewriter_.map(x,
                  target.add_node(make_op(QuantizeLinear{}), inputs, name + ".quantize").front());
  }

  void append_product(const Node& node) {
    const auto y = node.outputs.front();
    auto integers = quantize_weights(graph_, node, scale_of(node.inputs[0]));
    std::vector<ValueId> inputs = {rewriter_.mapped(node.inputs[0]),
                                   state(node.name + ".weight", std::move(integers.weight)),
                                   state(node.name + ".bias", integers.bias)};
    const bool sums = groups_.gives_sums(y);
    if (!sums) {
      std::vector<std::int32_t> multipliers, shifts;
      for (const auto scale : integers.sum_scales) {
        const auto factor = requantization_of(scale / scale_of(y));
        multipliers.push_back(factor.multiplier);
        shifts.push_back(factor.shift);
      }
      inputs.push_back(state(node.name + ".multiplier", multipliers));
      inputs.push_back(state(node.name + ".shift", shifts));
    }
    rewriter_.map(y, rewriter_.append(node, integer_op(*node.op), inputs).front());
    if (!sums) return;
    const std::vector<float> scales(integers.sum_scales.begin(), integers.sum_scales.end());
    dequantize(y, node.name, state(node.name + ".scale", scales));
  }

  void dequantize_output(const NamedValue& output) {
    const auto& spec = rewriter_.target().spec(rewriter_.mapped(output.value));
    if (spec.dtype != DType::I8) return;
    const auto scale = static_cast<float>(scale_of(output.value));
    dequantize(output.value, output.name, state(output.name + ".scale", scalar_tensor(scale)));
  }

  void dequantize(ValueId value, const std::string& name, ValueId scale) {
    const ValueId inputs[] = {rewriter_.mapped(value), scale};
    auto& target = rewriter_.target();
    rewriter_.map(
        value, target.add_node(make_op(DequantizeLinear{}), inputs, name + ".dequantize").front());
  }

  const Graph& graph_;
  ScaleGroups groups_;
  Rewriter rewriter_;
  std::vector<double> scales_;  ///< per root
};

}  // namespace

Requantization requantization_of(double factor) {
  int exponent = 0;
  const double fraction = std::frexp(factor, &exponent);  // in [1/2, 1)
  const int shift = std::min(31 - exponent, kMaxRequantizeShift);
  if (shift < kMinRequantizeShift) return {std::numeric_limits<std::int32_t>::max(), 1};
  const double scaled = std::nearbyint(std::ldexp(fraction, shift + exponent));
  if (scaled >= 0x1p31) return requantization_of(std::ldexp(1.0, exponent));
  return {static_cast<std::int32_t>(scaled), shift};
}

std::vector<std::string> values_to_calibrate(const Graph& graph) {
  const ScaleGroups groups(graph);
  std::vector<std::string> names;
  for (const auto& value : graph.values()) {
    if (groups.has_range(value.id)) names.push_back(value.name);
  }
  return names;
}

Graph quantize(const Graph& graph, const Ranges& ranges) { return Quantizer(graph, ranges).run(); }

Graph quantize_blank(const Graph& graph) {
  Ranges ones;
  for (auto& name : values_to_calibrate(graph)) ones[std::move(name)] = 1;
  return quantize(graph, ones);
}

}  // namespace triptych
