// SPDX-License-Identifier: Apache-2.0
#include "experiments/page/json.h"

#include <cmath>

namespace triptych::page {

Json score_json(std::optional<double> score) { return score ? Json(*score) : Json(); }

Json time_json(Duration duration) {
  Json value = nullptr;
  if (std::isfinite(duration.seconds)) value = duration.seconds;
  return {{"value", value}, {"unit", "s"}, {"kind", to_string(duration.kind)}};
}

}  // namespace triptych::page
