// Costs of a user's kernels: tables and JSON. Counts, and times that are modelled from them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "core/runtime/kernel_counters.h"
#include "experiments/kernels/kernel_run.h"
#include "experiments/page/json.h"

namespace triptych::app {

using CostTable = std::map<std::string, kernels::KernelCosts>;  ///< by kernel

/// Adds the costs to an entry of to_json() (kernel_counters.h).
void add_costs(page::Json& kernel, const kernels::Gpu& gpu, const KernelCounters& counters,
               const kernels::KernelCosts& costs);

/// Tables of all kernels: traffic behind the caches, contention, arithmetic, and the least time of
/// each unit.
void print_costs(const kernels::Gpu& gpu, const KernelCounterTable& kernels,
                 const CostTable& costs);
/// A table for each kernel with a row for each branch whose lanes parted.
void print_branches(const std::string& problem, const CostTable& costs);

}  // namespace triptych::app
