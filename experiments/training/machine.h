// The devices that one run uses: the asked machine and its allowed fallback.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/contract.h"
#include "core/runtime/plan.h"

namespace triptych::training {

struct MachineConfig {
  std::string backend = "cpu";
  std::string fallback;  ///< backend for nodes that `backend` cannot run; empty: none
  int threads = 0;       ///< 0: as many as the machine has
  Contract contract = Contract::F32;
};

class Machine {
 public:
  /// Opens the devices. Throws DeviceError when one is not available here.
  explicit Machine(const MachineConfig& config);

  Device& device() const { return *owned_.front(); }
  const std::vector<Device*>& devices() const { return devices_; }
  const MachineConfig& config() const { return config_; }
  PlanOptions plan_options() const;
  /// Threads of the device, as it reports them; 0 when it has none.
  int threads() const;

 private:
  MachineConfig config_;
  std::vector<std::unique_ptr<Device>> owned_;
  std::vector<Device*> devices_;
};

}  // namespace triptych::training
