// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/array_tilings.h"

#include <fmt/core.h>

#include "core/base/console.h"
#include "experiments/page/text_table.h"
#include "systolic/driver/driver.h"
#include "systolic/driver/watcher.h"

namespace triptych::measure {
namespace {

page::Json sizes_json(const ArrayTiling& tiling) {
  page::Json json = {{"tiling", tiling.sizes}, {"cycles", nullptr}};
  if (tiling.cycles) json["cycles"] = *tiling.cycles;
  return json;
}

}  // namespace

std::vector<ArrayTiling> array_tilings(const Plan& plan, bool counts) {
  std::vector<ArrayTiling> tilings;
  for (const auto& step : plan.steps) {
    const auto* owner = dynamic_cast<const mmu::ProgramOwner*>(step.kernel.get());
    if (owner == nullptr) continue;
    tilings.push_back(
        {.node = plan.graph.node(step.node).name, .sizes = owner->tiling(), .cycles = {}});
    if (!counts) continue;
    const auto& array = dynamic_cast<const mmu::Watched&>(*plan.devices[step.device]);
    tilings.back().cycles = mmu::counters_of(owner->program(), array.machine()).cycles;
  }
  return tilings;
}

page::Json tilings_json(const std::vector<ArrayTiling>& tilings,
                        const std::vector<ArrayTiling>& planned) {
  page::Json list = page::Json::array();
  for (std::size_t i = 0; i < tilings.size(); ++i) {
    auto json = sizes_json(tilings[i]);
    json["node"] = tilings[i].node;
    json["planned"] = planned.empty() ? page::Json() : sizes_json(planned[i]);
    list.push_back(std::move(json));
  }
  return list;
}

void print_tilings(const std::vector<ArrayTiling>& tilings,
                   const std::vector<ArrayTiling>& planned) {
  if (tilings.empty()) return;
  std::vector<std::string> header = {"node", "tiling"};
  if (!planned.empty()) header = {"node", "cycles", "planner's", "tiling", "planner's tiling"};
  page::TextTable table(header);
  for (std::size_t i = 0; i < tilings.size(); ++i) {
    const auto& [node, sizes, cycles] = tilings[i];
    if (planned.empty()) {
      table.add({node, sizes});
    } else {
      table.add({node, fmt::format("{}", cycles.value()),
                 fmt::format("{}", planned[i].cycles.value()), sizes, planned[i].sizes});
    }
  }
  print_text("\ntiles on the array{}:\n", planned.empty() ? "" : " (cycles: simulated)");
  table.print();
}

}  // namespace triptych::measure
