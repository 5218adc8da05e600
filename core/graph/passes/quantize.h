// From a frozen inference graph in float32 to one in int8: integers only between the quantised
// inputs and the dequantised outputs (docs/decisions/0008-int8.md). A pass, because it knows
// operators and not models. It is in no pipeline, because it needs statistics that only runs give.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/quantized_math.h"
#include "core/graph/graph.h"

namespace triptych {

/// A real factor as multiplier / 2^shift.
struct Requantization {
  std::int32_t multiplier = 0;
  std::int32_t shift = kMinRequantizeShift;
};
/// To 31 significant bits, fewer below 2^-32. Factors of 2^30 and more, which saturate every
/// nonzero sum, become the largest there is.
Requantization requantization_of(double factor);

/// By name of a value, the magnitude that its 127 stands for: the largest that occurs, or a high
/// percentile. Larger ones saturate.
using Ranges = std::map<std::string, float, std::less<>>;

/// The values that `quantize` needs ranges of. Throws as `quantize` does.
std::vector<std::string> values_to_calibrate(const Graph& graph);

/// The graph in int8, symmetrically: value = scale * integer, scale = range / 127.
/// - Conv and ConvTranspose with constant weights become QuantizedConv and QuantizedConvTranspose.
///   weights have one scale per output channel, biases the scale of the sums.
/// - MaxPool, Concat, Relu, Transpose, Slice and views do not change and work on int8. All their
///   operands share one scale, from the largest of their ranges.
/// - Inputs of the graph are quantised once. An output that is a convolution's alone is dequantised
///   from its int32 sums, per channel, others from int8.
/// Parameters become states: NODE.weight (i8), NODE.bias, NODE.multiplier, NODE.shift (i32), and
/// NAME.scale (f32) of inputs, outputs and convolutions that give outputs. Their names and specs
/// depend on the operators alone, so that they fit the same network at any image size.
/// Throws UnsupportedError naming a node that is none of these, InvalidArgument for states, for
/// weights that are not constants, and for ranges that are missing or not finite.
Graph quantize(const Graph& graph, const Ranges& ranges);

/// quantize with every range 1: for a caller that brings the parameters, or asks for the plan
/// alone.
Graph quantize_blank(const Graph& graph);

}  // namespace triptych
