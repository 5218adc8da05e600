// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/crossings.h"

#include <set>

namespace triptych {

namespace {

/// Walks the steps. A value's *version* is the value whose content it is: a view has the version of
/// its input, an update is a version of its own.
class CrossingPlanner {
 public:
  explicit CrossingPlanner(Plan& plan) : plan_(plan) {
    const auto count = plan.graph.values().size();
    plan.homes.assign(count, 0);
    for (const auto& value : plan.graph.values()) version_.push_back(value.id);
    given_.assign(count, false);
  }

  void run() {
    for (auto& step : plan_.steps) {
      const auto& node = plan_.graph.node(step.node);
      if (node.op->view()) {
        version_[node.outputs[0].index()] = version_[node.inputs[0].index()];
        continue;
      }
      for (const auto input : node.inputs) bring(input, step);
      for (const auto output : node.outputs) {
        plan_.homes[output.index()] = step.device;
        present_.emplace(step.device, output);
      }
      for (const auto& update : node.updates()) write_back(update.after, step);
    }
    for (std::size_t i = 0; i < version_.size(); ++i) {
      plan_.homes[i] = plan_.homes[version_[i].index()];
    }
  }

 private:
  void bring(ValueId input, Step& step) {
    const auto version = version_[input.index()];
    const auto kind = plan_.graph.value(version).kind;
    auto& home = plan_.homes[version.index()];
    if (kind == ValueKind::Input || kind == ValueKind::Constant) {
      if (!given_[version.index()]) home = step.device;
      given_[version.index()] = true;
    } else if (home != step.device && present_.emplace(step.device, version).second) {
      step.crossings.push_back(crossing(version, home, step.device));
    }
  }

  void write_back(ValueId update, Step& step) {
    plan_.homes[update.index()] = 0;
    if (step.device != 0) step.write_backs.push_back(crossing(update, step.device, 0));
  }

  Crossing crossing(ValueId value, std::size_t from, std::size_t to) const {
    return {.value = value, .from = from, .to = to, .bytes = plan_.graph.spec(value).bytes()};
  }

  Plan& plan_;
  std::vector<ValueId> version_;  ///< per value
  std::vector<bool> given_;       ///< per input and constant: it has a home
  std::set<std::pair<std::size_t, ValueId>> present_;
};

}  // namespace

void plan_crossings(Plan& plan) { CrossingPlanner(plan).run(); }

}  // namespace triptych
