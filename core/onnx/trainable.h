// Prepares networks for inference for training: finds the learnable numbers, and undoes changes by
// exporters that would affect training.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/graph/graph.h"
#include "core/onnx/model.h"

namespace triptych::onnx {

struct TrainableModel {
  /// Ends at the file's first output. Batch normalisation is in its inference form, independent of
  /// the form in the file.
  Model model;
  /// Initialisers that are parameters or running statistics, in order of first use. The mean of a
  /// batch normalisation is followed by its variance.
  std::vector<std::pair<std::string, StateRole>> states;
  /// Sigmoid, Softmax or LogSoftmax at the first output, which is left out because losses of
  /// classes take logits. Otherwise empty.
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

/// Finds the parameters in `model`:
/// - Weights and biases of convolutions, products of matrices, recurrent layers, normalisations,
///   PRelu, and tables of Gather, of any size, also through Transpose, Reshape and their like, and
///   through values computed from initialisers alone (Slice and Concat, a weight that is
///   standardised). Not those of an InstanceNormalization behind a Reshape, which stands for
///   groups.
/// - Operands of Add, Mul and Concat, also through values computed from them alone. Not masks:
///   each value 0 or below -10,000. Single numbers only where the exporter writes the numbers of
///   the code as nodes (Model::numbers_are_nodes), as in files that have such nodes. Operands of
///   Sub and Div normalise inputs: they stay as they are.
/// - Nodes (Constant) hold weights only in a file that has none of a layer's as an initialiser.
/// - The mean and variance of BatchNormalization are statistics.
/// Initialisers that a name of `frozen` fits ("encoder.*", as in a shell) stay as they are. The
/// same holds for a batch normalisation with statistics among them. Layers that share an
/// initialiser through Identity, as exporters write equal values, get their own. Layers that share
/// it directly learn together. Throws UnsupportedError with advice on the export when nothing is
/// left to learn, for parameters in another type than float32, and for a random Dropout.
/// InvalidArgument for a pattern that fits no initialiser. With `whole` the last activation stays:
/// the network makes values, not classes.
TrainableModel make_trainable(Model model, const std::vector<std::string>& frozen = {},
                              bool whole = false);

}  // namespace triptych::onnx
