// From a model to a graph: the table of operators is walked node by node.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/onnx/model.h"

namespace triptych::onnx {

struct ImportOptions {
  /// Sizes for symbols of the inputs' shapes: "batch" -> 8.
  std::map<std::string, std::int64_t> bind;
  /// Inputs' contents by name: they give sizes that the model leaves open, and values that shapes
  /// depend on.
  std::map<std::string, TensorPtr> given;
  /// Constants of the model that become states of the graph under their own names, with these
  /// roles, because a run trains or updates them. Shapes cannot depend on them.
  std::map<std::string, StateRole> states = {};
  /// Dropout in training draws from this seed and counts the runs in the state "dropout.step".
  /// Nothing: it is not supported.
  std::optional<std::int64_t> dropout_seed = {};
};

/// Fate of one node of the model.
struct ImportedNode {
  std::string name;
  std::string op;
  /// Nodes [first, last) of the graph. None when it was computed at load.
  std::size_t first = 0, last = 0;
  std::string obstacle;  ///< why it is not supported. Empty: it is
};

struct Import {
  Graph graph;  ///< inputs and outputs have the model's names
  std::vector<ImportedNode> nodes;
};

/// Translates `model`. Throws UnsupportedError naming node, operator and reason for the first node
/// that is not supported, InvalidArgument for operands that do not fit and sizes that are not
/// bound, IoError for a model that breaks ONNX's rules.
Import import_model(const Model& model, const ImportOptions& options = {});

/// The same, but continues after an error: `nodes` lists each node that is not supported, and each
/// node that depends on one. The graph has no outputs when the list is not empty.
Import survey_model(const Model& model, const ImportOptions& options = {});

/// Names of ONNX's operators that can be imported, in alphabetical order.
std::vector<std::string> importable_operators();

}  // namespace triptych::onnx
