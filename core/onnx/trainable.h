// Networks for inference made fit for training: which of their numbers are learnt, and what an
// exporter did to them that training must not inherit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/graph/graph.h"
#include "core/onnx/model.h"

namespace triptych::onnx {

struct TrainableModel {
  /// Ends at the file's first output. Batch normalisation stands in its inference form, whatever
  /// form the file had.
  Model model;
  /// Initialisers that are parameters or running statistics, in order of first use. The mean of a
  /// batch normalisation is followed by its variance.
  std::vector<std::pair<std::string, StateRole>> states;
  /// Sigmoid, Softmax or LogSoftmax that stood at the first output and was left out, because
  /// losses of classes take logits; else empty.
  std::string last_activation;
  /// Parameters of more than one axis or of one element that are no layer's weights, but operands:
  /// buffers of their author's, perhaps.
  std::vector<std::string> operands;
  /// Parameters that several layers read directly: tied, or merged by an exporter.
  std::vector<std::string> shared;
  /// Initialisers in float32 that stay as they are, unasked.
  std::vector<std::string> kept;
  std::int64_t batch_normalizations = 0;
  std::size_t outputs_in_file = 1;
};

/// Finds what is learnt in `model`:
/// - Weights and biases of convolutions, products of matrices, recurrent layers, normalisations,
///   PRelu, and tables of Gather, of any size, also through Transpose, Reshape and their like, and
///   through what is computed of initialisers alone (Slice and Concat, a weight that is
///   standardised). Not those of an InstanceNormalization behind a Reshape, which stands for
///   groups.
/// - Operands of Add, Mul and Concat, also behind what is computed of them alone, unless they mask:
///   each value 0 or below -10,000. Single numbers only where the exporter writes the numbers of
///   the code as nodes (Model::numbers_are_nodes), as in files that have such nodes. Operands of
///   Sub and Div normalise inputs: they stay as they are.
/// - Nodes (Constant) hold weights only in a file that has none of a layer's as an initialiser.
/// - The mean and variance of BatchNormalization are statistics.
/// Initialisers that a name of `frozen` fits ("encoder.*", as in a shell) stay as they are. So does
/// a batch normalisation whose statistics are among them. Layers that share an initialiser through
/// Identity, as exporters write equal values, get their own; shared directly they learn together.
/// Throws UnsupportedError, saying what to export instead, when nothing is left to learn, for
/// parameters in another type than float32, and for a Dropout that draws. InvalidArgument for a
/// pattern that fits no initialiser. With `whole` the last activation stays: the network makes
/// values, not classes.
TrainableModel make_trainable(Model model, const std::vector<std::string>& frozen = {},
                              bool whole = false);

}  // namespace triptych::onnx
