// Reading of ONNX files. Nothing in a file is trusted: sizes are compared with the available bytes
// before memory is allocated, names and order are checked, external data is read only from beneath
// the model's own folder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

#include "core/onnx/model.h"

namespace triptych::onnx {

/// Versions of ONNX's own operators that are read.
inline constexpr std::int64_t kFirstOpset = 6;
inline constexpr std::int64_t kLastOpset = 22;

/// Bounds of a file in addition to the memory budget.
struct ReadLimits {
  std::int64_t parts = std::int64_t{1} << 21;  ///< of the file: nodes, names, attributes
};

/// The model in the file `path`. Throws IoError for a broken file, with its name, the node and the
/// reason, and UnsupportedError for versions and element types that Triptych lacks.
Model load_model(const std::filesystem::path& path, const ReadLimits& limits = {});

}  // namespace triptych::onnx
