// The two dataflows of an array next to each other, for machines that offer both.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/runtime/plan.h"
#include "experiments/page/json.h"
#include "experiments/training/device_set.h"
#include "systolic/driver/driver.h"

namespace triptych::measure {

/// The dataflow of a program's matmuls.
mmu::Dataflows dataflows_of(const mmu::Program& program);

/// The planner's best program of one node in one dataflow, by the twin's clock.
struct DataflowCounts {
  std::string node;
  mmu::Dataflows dataflow;
  mmu::Counters counters;
};

/// Makes the plan of one computation on a machine.
using PlanMaker = std::function<Plan(const training::DeviceSet&)>;

/// Both dataflows of every node of the array, node by node. A node that the planner cannot run in
/// one of them has one entry. Empty unless the machine of `config` offers both.
std::vector<DataflowCounts> compare_dataflows(const training::ExecutionConfig& config,
                                              const PlanMaker& make_plan);

/// The entries of one node.
page::Json dataflows_json(const std::vector<DataflowCounts>& counts, const std::string& node);
/// A table of all entries. Nothing without entries.
void print_dataflows(const std::vector<DataflowCounts>& counts);

}  // namespace triptych::measure
