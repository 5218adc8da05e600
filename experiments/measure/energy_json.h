// Energy of a part of a report: its parts with their prices, and of a systolic array node by node.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "experiments/machines/array_energy.h"
#include "experiments/page/json.h"

namespace triptych::measure {

/// {`total`, "parts", "table"}: the sum as a figure under the name `total`, then every part.
page::Json energy_json(const std::vector<machines::EnergyPart>& parts,
                       const machines::EnergyTable& table, const std::string& total);

}  // namespace triptych::measure
