// One machine's part of report.json.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "experiments/compare/machine_run.h"
#include "experiments/page/json.h"

namespace triptych::compare {

using page::Json;

/// {"value", "unit", "kind", "source"}. Without a source where it is empty, null for a value that
/// is not finite.
Json figure_json(double value, std::string_view unit, TimeKind kind, std::string_view source = {});

/// Class 1, 2, …: [{"images", "dice", "iou", "pooled_dice", "pooled_iou"}]. Null of a class that is
/// neither there nor predicted.
Json classes_json(const segmentation::Scores& scores);

/// All but the speedup. Masks are compared with those of `first`, energy is priced by `table`.
Json machine_json(const MachineResult& result, const MachineResult& first,
                  const machines::EnergyTable& table);

}  // namespace triptych::compare
