// Crash-safe checkpoints in one folder: the newest and the one before it. Each is self-contained:
// `checkpoint-000007.json`, numbered by the saves, holds the metadata, the name and SHA-256 of a
// safetensors file, and a SHA-256 of its own content. A save writes the tensors under a new name
// and makes them durable. It does the same with the metadata. Then it removes everything older than
// the previous checkpoint. Killed at any moment the folder holds the checkpoints from before or
// also the new one, each whole. Only files that metadata lists, and that nobody changed, are
// removed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

#include "core/io/safetensors.h"

namespace triptych {

/// Everything about a training run but its tensors.
struct CheckpointInfo {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  std::uint64_t seed = 0;
  std::int64_t samples_drawn = 0;  ///< position in the data, which fixes the rest with `seed`
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

/// Validates every part, digests included. No damage of one checkpoint touches the other. Throws
/// IoError with the file and the reason.
Checkpoint load_checkpoint(const std::filesystem::path& folder,
                           CheckpointAge age = CheckpointAge::Newest,
                           std::int64_t max_bytes = kAnySize);

/// Names of tensor files in `folder` that belong to a save that was killed as it ended. The next
/// save removes them.
std::set<std::string> left_by_killed_saves(const std::filesystem::path& folder);

/// Removes the files of killed saves from `folder`, if it exists.
void remove_killed_saves(const std::filesystem::path& folder);

/// True when a save to `folder` has ever been completed.
bool has_checkpoint(const std::filesystem::path& folder);

}  // namespace triptych
