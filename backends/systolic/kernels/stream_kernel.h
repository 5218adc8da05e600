// The one kernel of this backend: packs operands into the machine's DRAM, runs the program of the
// plan that was made when it was prepared, unpacks results. An operator is a planner:
//   struct Planner {
//     static Verdict accepts(const KernelQuery& query);
//     static StreamPlan plan(const KernelQuery& query, const PlanTarget& target);
//   };
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/systolic/lowering/stream_plan.h"
#include "backends/systolic/systolic_device.h"

namespace triptych::systolic {

/// Refuses the contracts that a bf16 array cannot honour, with a suggestion. Operators on integers
/// have the same bits under all.
Verdict accepts_contract(const KernelQuery& query);

/// Inputs 2, 3 and 4 of a node, as far as it has them, are its job's bias, multiplier and shift.
void add_registers(const KernelQuery& query, RegisterPacking packing, StreamJob& job,
                   StreamPlan& plan);

class StreamKernel : public Kernel, public mmu::ProgramOwner {
 public:
  StreamKernel(const std::function<StreamPlan(const PlanTarget&)>& plan, Device& device);

  void run(const KernelArgs& args) override;
  std::string keep_output_for(Kernel& next, std::size_t input) override;
  std::size_t resident_bytes() const override {
    return lowered_.program.size() * sizeof(mmu::Instruction);
  }
  mmu::Program program() const override;
  std::string tiling() const override { return tilings_of(lowered_.plan); }
  /// Counters of the machine in all runs, as in Device::counters().
  std::map<std::string, double> counters() const override;

 private:
  template <class Element, class Sum>
  void run_on(const KernelArgs& args);

  SystolicDevice& device_;
  Lowered lowered_;  ///< without a program that is too long to keep: it is made again for each run
  std::optional<mmu::Counters> counted_;  ///< in any one run
  RunTotals totals_;
};

/// The entry of an operator for its planner.
template <class Planner>
KernelEntry stream_entry(std::string_view op) {
  return {op, "mmu", &Planner::accepts, [](const KernelQuery& query, Device& device) {
            const auto plan = [&](const PlanTarget& target) {
              return Planner::plan(query, target);
            };
            return std::unique_ptr<Kernel>(std::make_unique<StreamKernel>(plan, device));
          }};
}

}  // namespace triptych::systolic
