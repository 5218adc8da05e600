// Graphs of this program as models that an ONNX file can hold.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/graph/graph.h"
#include "core/onnx/model.h"

namespace triptych::onnx {

/// Operator sets that an export may be of.
inline constexpr std::int64_t kFirstExportOpset = 13;
inline constexpr std::int64_t kLastExportOpset = 22;

/// `graph` as a model: states and constants become initialisers under their names, inputs and
/// outputs keep theirs. The first axis of every input is left open as "batch", and so are the sizes
/// behind the second of those in `open_sizes`, as "height" and "width": the caller answers for the
/// graph being right at any. Throws UnsupportedError, naming the node, for an operator that is not
/// ONNX's.
struct ExportOptions {
  std::int64_t opset = 17;
  bool open_sizes = false;
};
Model export_graph(const Graph& graph, const ExportOptions& options);

}  // namespace triptych::onnx
