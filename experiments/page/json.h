// The program's JSON format. Fields keep the order of their assignment.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/time_kind.h"

namespace triptych::page {

using Json = nlohmann::ordered_json;

/// null for a score that there is not.
Json score_json(std::optional<double> score);

/// {"value": seconds, "unit": "s", "kind": "measured"}. Null for a value that is not finite.
Json time_json(Duration duration);

}  // namespace triptych::page
