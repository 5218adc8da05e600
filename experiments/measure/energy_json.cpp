// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/energy_json.h"

#include "core/base/time_kind.h"

namespace triptych::measure {

page::Json energy_json(const std::vector<machines::EnergyPart>& parts,
                       const machines::EnergyTable& table, const std::string& total) {
  page::Json list = page::Json::array();
  for (const auto& part : parts) {
    list.push_back({{"part", part.name},
                    {"joule", part.joule()},
                    {"events", part.events},
                    {"joule_per_event", part.event.joule},
                    {"event", part.event.name}});
  }
  return {{total, page::figure_json(machines::total_joule(parts), "J", TimeKind::Modelled,
                                    table.description())},
          {"parts", std::move(list)},
          {"table", table.name()}};
}

}  // namespace triptych::measure
