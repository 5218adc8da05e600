// Epochs of a run as its checkpoint stores them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "experiments/training/run_folder.h"

namespace triptych::training {

nlohmann::ordered_json epoch_json(const EpochReport& report);

/// Reads it back. Throws InvalidArgument with the field for missing or wrong content, and IoError
/// for an unknown kind of time.
EpochReport epoch_from_json(const nlohmann::ordered_json& json);

nlohmann::ordered_json open_epoch_json(const OpenEpoch& epoch);

/// Throws as epoch_from_json does.
OpenEpoch open_epoch_from_json(const nlohmann::ordered_json& json);

}  // namespace triptych::training
