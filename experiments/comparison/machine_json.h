// One machine's part of report.json.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "experiments/comparison/machine_run.h"

namespace triptych::comparison {

using Json = nlohmann::ordered_json;

/// {"value", "unit", "kind", "source"}; without a source where it is empty, null for a value that
/// is not finite.
Json figure_json(double value, std::string_view unit, TimeKind kind, std::string_view source = {});

/// All but the speedup; masks are compared with those of `first`.
Json machine_json(const MachineResult& result, const MachineResult& first);

/// As MIME and data URLs have it.
std::string base64(std::string_view bytes);

}  // namespace triptych::comparison
