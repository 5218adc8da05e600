// Use of a simulated machine in addition to its times: the distribution of its cycles, node by
// node, and the work of its host.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/runtime/executor.h"
#include "experiments/machines/array_energy.h"
#include "experiments/page/json.h"
#include "experiments/training/device_set.h"

namespace triptych::measure {

using training::DeviceSet;

/// The host's share of a plan (DeviceSet::host_share). Null where the machine has none.
page::Json host_json(const std::optional<training::HostShare>& share);

/// Example: "host: cpu; ..." on `out`. Nothing where the machine has none.
void print_host(const DeviceSet& machine, const Plan& plan);

/// Counters of one node in a run, and the shares of its PE-cycles (cycles x PEs), which add up to
/// 1:
/// - "used": PEs that multiply, including padded channels. Part of it is useful: products of the
///   operands alone.
/// - "edges": rows and columns outside the tile while it streams.
/// - "padding": unused slots of transposed streams.
/// - Each cause of stalls.
struct ArrayUse {
  std::string node;
  double cycles = 0;
  double useful = 0;                                   ///< share of the PE-cycles
  std::vector<std::pair<std::string, double>> shares;  ///< "used" first
  std::map<std::string, std::int64_t> counters;        ///< of one run, without "mmu_"
  std::vector<machines::EnergyPart> energy = {};       ///< of one run (modelled)
};

/// One entry for every simulated node, in order of the plan. Empty for other machines. Energy of
/// `config`'s array is priced by `table`.
std::vector<ArrayUse> array_use(const Plan& plan, const training::ExecutionConfig& config,
                                const machines::EnergyTable& table);

page::Json to_json(const ArrayUse& use, const machines::EnergyTable& table);
void print_array_use(const std::vector<ArrayUse>& uses, const machines::EnergyTable& table);

}  // namespace triptych::measure
