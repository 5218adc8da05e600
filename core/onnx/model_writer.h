// Writes models as ONNX files: those that model_reader.h reads, and those that this program
// exports.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "core/onnx/model.h"

namespace triptych::onnx {

/// Content of a file that load_model reads as `model`, all data inside. `metadata` becomes the
/// file's metadata_props. Throws UnsupportedError with the node's name for content that Model does
/// not hold: graphs in attributes, narrowed float64, and more than protobuf's 2 GiB.
std::string encode_model(const Model& model,
                         const std::map<std::string, std::string>& metadata = {});

}  // namespace triptych::onnx
