// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/graph/passes/passes.h"
#include "core/graph/passes/rewrite.h"
#include "core/ops/batch_normalization.h"
#include "core/ops/binary.h"
#include "core/ops/conv.h"

namespace triptych {

namespace {

bool is_constant(const Graph& graph, ValueId value) {
  return graph.value(value).kind == ValueKind::Constant;
}

std::vector<double> constant_values(const Graph& graph, ValueId value) {
  return to_doubles(*graph.value(value).data);
}

/// The node as a Conv without activation, or nullptr.
const Conv* plain_conv(const Node& node) {
  const auto* conv = op_cast<Conv>(*node.op);
  return conv != nullptr && conv->activation.empty() ? conv : nullptr;
}

// ---------------------------------------------------------------------- Conv, BatchNormalization

/// The normalisation that the Conv `node` can take over, or nullptr.
const Node* foldable_normalization(const Rewriter& rewriter, const Node& node) {
  const auto& graph = rewriter.source();
  if (plain_conv(node) == nullptr) return nullptr;
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    if (!is_constant(graph, node.inputs[i])) return nullptr;
  }
  const Node* reader = rewriter.only_reader(node.outputs.front());
  if (reader == nullptr || reader->inputs.front() != node.outputs.front()) return nullptr;
  const auto* norm = op_cast<BatchNormalization>(*reader->op);
  if (norm == nullptr || norm->training_mode) return nullptr;
  for (std::size_t i = 1; i < reader->inputs.size(); ++i) {
    if (!is_constant(graph, reader->inputs[i])) return nullptr;
  }
  return reader;
}

/// True when `value` holds one number per channel (axis 1) of `y`, broadcast along the other axes.
bool is_per_channel(const TensorSpec& value, const TensorSpec& y) {
  const auto channel_axis = value.shape.rank() - y.shape.rank() + 1;
  return value.dtype == y.dtype && (channel_axis == 0 || channel_axis == 1) &&
         value.shape[channel_axis] == y.shape[1] && value.shape.elements() == y.shape[1];
}

/// The constant that `node`, a Binary of this kind, takes together with each channel of `y`, or
/// none.
ValueId channel_constant(const Graph& graph, const Node& node, BinaryKind kind, ValueId y) {
  const auto* op = op_cast<Binary>(*node.op);
  if (op == nullptr || op->kind != kind) return {};
  const auto other = node.inputs[0] == y ? node.inputs[1] : node.inputs[0];
  const bool fits = is_constant(graph, other) && is_per_channel(graph.spec(other), graph.spec(y));
  return fits ? other : ValueId{};
}

/// A scale that a Conv can take over: y becomes (y - mean) factor + shift, by channel.
struct ChannelScale {
  std::vector<double> mean, factor, shift;
  std::vector<const Node*> nodes;  ///< that do it, in order

  ChannelScale(const Graph& graph, const Node& norm)
      : mean(constant_values(graph, norm.inputs[3])),
        factor(constant_values(graph, norm.inputs[1])),
        shift(constant_values(graph, norm.inputs[2])),
        nodes{&norm} {
    const auto variance = constant_values(graph, norm.inputs[4]);
    const double epsilon = op_cast<BatchNormalization>(*norm.op)->epsilon;
    for (std::size_t i = 0; i < factor.size(); ++i) factor[i] /= std::sqrt(variance[i] + epsilon);
  }

  /// Takes the Mul and Add of a constant that follow, as Caffe's networks have them.
  void follow(const Rewriter& rewriter) {
    const auto& graph = rewriter.source();
    while (true) {
      const auto y = nodes.back()->outputs.front();
      const Node* reader = rewriter.only_reader(y);
      if (reader == nullptr) return;
      const auto mul = channel_constant(graph, *reader, BinaryKind::Mul, y);
      const auto add = channel_constant(graph, *reader, BinaryKind::Add, y);
      if (!mul.valid() && !add.valid()) return;
      const auto values = constant_values(graph, mul.valid() ? mul : add);
      for (std::size_t i = 0; i < factor.size(); ++i) {
        if (mul.valid()) factor[i] *= values[i];
        shift[i] = mul.valid() ? shift[i] * values[i] : shift[i] + values[i];
      }
      nodes.push_back(reader);
    }
  }
};

struct FoldedConv {
  Tensor weight;
  Tensor bias;
};

FoldedConv fold(const Graph& graph, const Node& conv, const ChannelScale& scale) {
  const auto channels = scale.factor.size();
  auto weight = constant_values(graph, conv.inputs[1]);
  auto bias = conv.inputs.size() > 2 ? constant_values(graph, conv.inputs[2])
                                     : std::vector<double>(channels, 0.0);
  const auto per_channel = weight.size() / std::max<std::size_t>(channels, 1);
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t i = 0; i < per_channel; ++i) weight[c * per_channel + i] *= scale.factor[c];
    bias[c] = (bias[c] - scale.mean[c]) * scale.factor[c] + scale.shift[c];
  }
  return {from_doubles(graph.spec(conv.inputs[1]), weight),
          from_doubles(graph.spec(scale.nodes.front()->inputs[2]), bias)};
}

// -------------------------------------------------------------------- Conv, Add of a bias, Relu

/// Nodes that one Conv can replace: the fused Conv gives the output of `last`.
struct Epilogue {
  const Node* add = nullptr;
  ValueId bias;
  const Node* relu = nullptr;

  const Node* last() const { return relu != nullptr ? relu : add; }
};

Epilogue find_epilogue(const Rewriter& rewriter, const Node& node) {
  Epilogue epilogue;
  if (plain_conv(node) == nullptr) return epilogue;
  auto y = node.outputs.front();
  const Node* reader = rewriter.only_reader(y);
  // A Conv that has a bias keeps it: adding the two first would round differently.
  if (reader != nullptr && node.inputs.size() == 2) {
    epilogue.bias = channel_constant(rewriter.source(), *reader, BinaryKind::Add, y);
    if (epilogue.bias.valid()) {
      epilogue.add = reader;
      y = reader->outputs.front();
      reader = rewriter.only_reader(y);
    }
  }
  if (reader != nullptr && is_relu(*reader)) epilogue.relu = reader;
  return epilogue;
}

void append_fused(Rewriter& rewriter, const Node& node, const Epilogue& epilogue) {
  auto inputs = rewriter.mapped(node.inputs);
  if (epilogue.add != nullptr) {
    Tensor bias = rewriter.source().value(epilogue.bias).data->clone();
    const Shape channels{bias.elements()};
    auto data = std::make_shared<const Tensor>(std::move(bias).reshaped(channels));
    inputs.push_back(rewriter.target().add_constant(node.name + ".bias", std::move(data)));
  }
  Conv fused = *plain_conv(node);
  if (epilogue.relu != nullptr) fused.activation = "relu";
  const auto y = rewriter.append(node, make_op(std::move(fused)), inputs).front();
  rewriter.map(node.outputs.front(), y);
  if (epilogue.add != nullptr) rewriter.map(epilogue.add->outputs.front(), y);
  if (epilogue.relu != nullptr) rewriter.map(epilogue.relu->outputs.front(), y);
}

}  // namespace

Graph fold_batch_normalization(const Graph& graph) {
  Rewriter rewriter(graph);
  for (const auto& node : graph.nodes()) {
    const Node* norm = foldable_normalization(rewriter, node);
    if (norm == nullptr) {
      rewriter.copy(node);
      continue;
    }
    ChannelScale scale(graph, *norm);
    scale.follow(rewriter);
    auto folded = fold(graph, node, scale);
    auto& target = rewriter.target();
    const auto add = [&](std::string_view suffix, Tensor value) {
      return target.add_constant(node.name + std::string(suffix),
                                 std::make_shared<const Tensor>(std::move(value)));
    };
    const ValueId inputs[] = {rewriter.mapped(node.inputs.front()),
                              add(".weight", std::move(folded.weight)),
                              add(".bias", std::move(folded.bias))};
    const auto y = rewriter.append(node, node.op, inputs).front();
    rewriter.map(node.outputs.front(), y);
    for (const auto* one : scale.nodes) rewriter.map(one->outputs.front(), y);
  }
  return rewriter.finish();
}

Graph fuse_conv_epilogue(const Graph& graph) {
  Rewriter rewriter(graph);
  for (const auto& node : graph.nodes()) {
    const auto epilogue = find_epilogue(rewriter, node);
    if (epilogue.last() == nullptr) {
      rewriter.copy(node);
    } else {
      append_fused(rewriter, node, epilogue);
    }
  }
  return rewriter.finish();
}

}  // namespace triptych
