// Fine-tuning: a new run begins with the parameters and statistics of another, taken by name and
// shape. Its optimiser starts from zero.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/io/safetensors.h"
#include "experiments/training/name_map.h"

namespace triptych::training {

struct InitialWeights {
  TensorMap tensors;
  std::vector<std::string> notes = {};  ///< notes for the user about how they were loaded
};

/// Those of a run folder, the best ones if stored, or of a safetensors file. Throws IoError.
InitialWeights load_initial_weights(const std::filesystem::path& path);

/// A summary of the loaded tensors for the user, and the SHA-256 over their names and values.
struct TakenWeights {
  std::string text;
  std::string sha256;
};

/// Which weights are loaded, and by which names.
struct WeightChoice {
  std::vector<std::string> skip = {};  ///< patterns ("head*", as in a shell) of those that stay new
  NameMap names = {};                  ///< where the others are called otherwise
  std::string source = {};             ///< their owner, for messages
  std::function<bool(const std::string&)> is_optimizers;  ///< true of a state that is not taken
};

/// Replaces each of `states` that is not the optimiser's by its namesake of `from`. Throws
/// InvalidArgument, naming it, for a state without a namesake of its type and shape, for one that
/// is not finite, and for a pattern or a pair of names that fits no state.
TakenWeights take_weights(TensorMap& states, const TensorMap& from, const WeightChoice& choice);

}  // namespace triptych::training
