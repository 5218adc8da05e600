// `triptych run MODEL.onnx`: somebody else's network on arrays.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "experiments/app/onnx_model.h"
#include "experiments/app/options.h"

namespace triptych::app {

struct RunOnnxOptions {
  OnnxModelOptions model;
  std::vector<std::string> inputs;
  std::string folder;  ///< for output_0.npy, output_1.npy and so on
};

void run_onnx(const RunOnnxOptions& options, const training::ExecutionConfig& machine,
              const Context& context);

}  // namespace triptych::app
