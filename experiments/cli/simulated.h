// What a simulated machine has to say beside its times: where its cycles go, node by node, and what
// its host does.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/executor.h"
#include "experiments/cli/options.h"
#include "experiments/cli/output.h"

namespace triptych::cli {

/// The host's share of a plan (Machine::host_share); null where the machine has none.
Json to_json(const std::optional<training::HostShare>& share);

/// "host: cpu; ..." on `out`; nothing where the machine has none.
void print_host(const Machine& machine, const Plan& plan, std::FILE* out = stdout);

/// One node's cycles per run and how its PE-cycles split: in use, idle rows and columns, unused
/// slots of transposed streams, and each cause to stall. The shares add up to 1.
struct ArrayUse {
  std::string node;
  double cycles = 0;
  std::vector<std::pair<std::string, double>> shares;  ///< "used" first
};

/// One entry for every node that was simulated, in order of the plan; empty for other machines.
std::vector<ArrayUse> array_use(const Plan& plan);

Json to_json(const ArrayUse& use);
void print_array_use(const std::vector<ArrayUse>& uses);

}  // namespace triptych::cli
