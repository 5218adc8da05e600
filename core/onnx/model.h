// A model as an ONNX file holds it, read and checked: plain data that the importer translates.
// Every name is printable UTF-8, every value is defined once and before it is read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/tensor/tensor.h"

namespace triptych::onnx {

using TensorPtr = std::shared_ptr<const Tensor>;

/// Parts that Triptych does not read: graphs, sparse tensors, types. The text says which.
struct Unread {
  std::string kind;
};

/// One attribute of a node. A tensor that cannot be represented stands as Unread.
struct NodeAttribute {
  std::string name;
  std::variant<std::int64_t, float, std::string, TensorPtr, std::vector<std::int64_t>,
               std::vector<float>, std::vector<std::string>, Unread>
      value;
};

struct ModelNode {
  std::string name;                 ///< its own, or "#7" by its place in the file
  std::string op;                   ///< "Conv"
  std::string domain;               ///< empty: ONNX's own
  std::vector<std::string> inputs;  ///< empty names: optional inputs that are left out
  std::vector<std::string> outputs;
  std::vector<NodeAttribute> attributes;
};

/// One size of an input: a number, or a symbol that is bound when the model is imported.
struct Dimension {
  std::int64_t size = -1;  ///< -1: the symbol counts, which may be empty
  std::string symbol;
};

/// An input or output of the graph.
struct ModelValue {
  std::string name;
  DType dtype = DType::F32;
  bool is_double = false;  ///< float64 in the file, float32 here
  bool has_shape = true;
  std::vector<Dimension> shape;
};

struct Model {
  std::string producer;
  std::int64_t opset = 0;
  std::vector<ModelNode> nodes;
  std::map<std::string, TensorPtr> initializers;
  std::vector<ModelValue> inputs;  ///< without those that an initializer gives
  std::vector<ModelValue> outputs;
  bool has_doubles = false;  ///< float64 somewhere: computed in float32
  /// Numbers of the exported code are nodes (Constant): an initialiser is the module's own.
  bool numbers_are_nodes = false;
};

}  // namespace triptych::onnx
