// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/machine.h"

#include "backends/all_backends.h"

namespace triptych::training {

Machine::Machine(const MachineConfig& config) : config_(config) {
  owned_.push_back(open_device(config.backend, {.threads = config.threads}));
  if (!config.fallback.empty() && config.fallback != config.backend) {
    owned_.push_back(open_device(config.fallback, {.threads = config.threads}));
  }
  for (const auto& device : owned_) devices_.push_back(device.get());
}

PlanOptions Machine::plan_options() const {
  PlanOptions options;
  options.placement.contract = config_.contract;
  return options;
}

int Machine::threads() const {
  const auto& properties = device().info().properties;
  const auto found = properties.find("threads");
  return found == properties.end() ? 0 : std::stoi(found->second);
}

}  // namespace triptych::training
