// SPDX-License-Identifier: Apache-2.0
#include "experiments/page/json.h"

#include <cmath>

namespace triptych::page {

Json score_json(std::optional<double> score) { return score ? Json(*score) : Json(); }

Json figure_json(double value, std::string_view unit, TimeKind kind, std::string_view source) {
  Json json = {{"value", nullptr}, {"unit", unit}, {"kind", to_string(kind)}};
  if (std::isfinite(value)) json["value"] = value;
  if (!source.empty()) json["source"] = source;
  return json;
}

Json time_json(Duration duration) { return figure_json(duration.seconds, "s", duration.kind); }

}  // namespace triptych::page
