// Crash-safe checkpoints in one folder: `checkpoint.json` names, for the newest checkpoint and the
// one before it, a safetensors file and its SHA-256. A save writes the tensors under a new name,
// makes them durable, then replaces checkpoint.json atomically, then removes what is no longer
// named; killed at any moment the folder holds the previous checkpoint or the new one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/io/safetensors.h"

namespace triptych {

/// Everything about a training run but its tensors.
struct CheckpointInfo {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  std::uint64_t seed = 0;
  std::int64_t samples_drawn = 0;  ///< position in the data; with `seed` it fixes what comes next
  std::string model_json = "{}";   ///< a JSON object, kept as it is: the model's configuration
  std::string run_json = "{}";     ///< a JSON object, kept as it is: anything else
};

struct Checkpoint {
  CheckpointInfo info;
  TensorMap tensors;
};

enum class CheckpointAge { Newest, Previous };

/// Makes `folder` when needed. One process at a time may save to a folder. Throws IoError when
/// writing fails (the older checkpoints stay) and InvalidArgument when `info` is not valid JSON.
void save_checkpoint(const std::filesystem::path& folder, const TensorMap& tensors,
                     const CheckpointInfo& info);

/// The same with tensors that are fetched one after another.
void save_checkpoint_from(const std::filesystem::path& folder, const TensorSources& sources,
                          const CheckpointInfo& info);

/// Validates every part, digests included. Throws IoError with the file and the reason.
Checkpoint load_checkpoint(const std::filesystem::path& folder,
                           CheckpointAge age = CheckpointAge::Newest,
                           std::int64_t max_bytes = kDefaultMaxBytes);

/// True when a save to `folder` has ever been completed.
bool has_checkpoint(const std::filesystem::path& folder);

}  // namespace triptych
