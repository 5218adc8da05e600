// Fine-tuning: a new run begins with the parameters and statistics of another, taken by name and
// shape; its optimiser begins anew.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/io/safetensors.h"

namespace triptych::training {

struct InitialWeights {
  TensorMap tensors;
  std::vector<std::string> notes = {};  ///< what its user must be told about how they were loaded
};

/// Those of a run folder, its best where that was kept, or of a safetensors file. Throws IoError.
InitialWeights load_initial_weights(const std::filesystem::path& path);

/// Account of what was taken, for its user, and SHA-256 over its names and values.
struct TakenWeights {
  std::string text;
  std::string sha256;
};

/// Replaces each of `states` that is not the optimiser's by its namesake of `from`. Names that a
/// pattern of `skip` ("head*", as in a shell) fits stay new. Throws InvalidArgument, naming it, for
/// a state without a namesake of its type and shape, and for a pattern that fits no state.
TakenWeights take_weights(TensorMap& states, const TensorMap& from,
                          const std::vector<std::string>& skip,
                          const std::function<bool(const std::string&)>& is_optimizers);

}  // namespace triptych::training
