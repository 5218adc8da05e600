// Contents of the metadata files of checkpoints (checkpoint.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/io/checkpoint.h"

namespace triptych::internal {

struct CheckpointEntry {
  CheckpointInfo info;
  std::string file;    ///< of the tensors, in the same folder
  std::string sha256;  ///< of that file
};

/// The metadata of one checkpoint, with the SHA-256 of all of it. Throws InvalidArgument when
/// model_json or run_json is no JSON object.
std::string to_text(const CheckpointEntry& entry);

/// Reads it back. Throws IoError when a part is missing, wrong or different from the recorded
/// digest, and UnsupportedError for another schema.
CheckpointEntry parse_checkpoint(const std::string& text);

/// True when `name` can be that of a checkpoint's tensors.
bool is_tensor_file(std::string_view name);

inline constexpr std::string_view kTensorPrefix = "step-";
inline constexpr std::string_view kTensorSuffix = ".safetensors";

}  // namespace triptych::internal
