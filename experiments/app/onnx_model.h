// ONNX files in commands: the model, and the sizes for its open dimensions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/onnx/importer.h"
#include "core/onnx/model_reader.h"
#include "experiments/app/command_line.h"
#include "experiments/measure/model_plan.h"

namespace triptych::app {

struct OnnxModelOptions {
  std::string file;
  std::vector<std::string> bind;  ///< "batch=8"

  /// --bind.
  void add_to(Command& command);

  /// The model. A note about a difference from the file's computation.
  onnx::Model load() const;
  onnx::ImportOptions import_options() const;
};

/// "batch=8" as a name and a size. Throws InvalidArgument for anything else.
std::pair<std::string, std::int64_t> parse_binding(const std::string& text);

/// Use of an ONNX file in place of a preset.
struct InferenceOptions {
  std::vector<std::string> bind;
  std::int64_t side = 256;  ///< height and width of images, where they are open
};

/// An ONNX file where a preset could stand.
struct InferenceModel {
  /// Makes its graph for a batch: the first axis of each input has that size, unless it is bound to
  /// another. Throws InvalidArgument for another batch than the one that is bound.
  measure::InferenceGraph graph;
  std::optional<std::int64_t> batch;  ///< to which the first input's first axis is bound
};

/// The file `file`. Sizes that stay open must be bound. Throws as load_model does.
InferenceModel inference_of(const std::string& file, const InferenceOptions& options);

/// The inputs' tensors by name, from "x.npy" in the order of the model's inputs, or "name=x.npy".
/// Throws InvalidArgument for a name that the model does not have, or one too many or too few.
std::map<std::string, onnx::TensorPtr> load_inputs(const onnx::Model& model,
                                                   const std::vector<std::string>& inputs);

}  // namespace triptych::app
