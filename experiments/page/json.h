// The program's JSON format. Fields keep the order of their assignment.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "core/base/time_kind.h"

namespace triptych::page {

using Json = nlohmann::ordered_json;

/// null for a score that there is not.
Json score_json(std::optional<double> score);

/// {"value", "unit", "kind", "source"}. Without a source where it is empty, null for a value that
/// is not finite.
Json figure_json(double value, std::string_view unit, TimeKind kind, std::string_view source = {});

/// A figure in seconds.
Json time_json(Duration duration);

}  // namespace triptych::page
