// Upper bounds of a machine: the roof that its layers stand under.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/machines/machine_figures.h"
#include "experiments/training/device_set.h"

namespace triptych::compare {

struct Ceilings {
  machines::Figure peak;  ///< FLOP/s of what the contract's kernels compute in
  std::vector<std::pair<std::string, machines::Figure>> levels;  ///< bytes/s, the nearest first
  machines::Figure memory;                                       ///< bytes/s of the main memory
  std::string source;  ///< "device file h200", "measured now", "machine description"
};

/// Figures of the device file among `figures` that is of this kind of machine, else what the device
/// measures (about two seconds on a CPU) or says of itself. Nothing where it tells nothing, or only
/// stands in for another machine.
std::optional<Ceilings> ceilings_of(const training::DeviceSet& machine,
                                    std::span<const machines::MachineFigures> figures);

}  // namespace triptych::compare
