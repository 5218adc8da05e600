// SPDX-License-Identifier: Apache-2.0
#include "experiments/studies/laboratory.h"

#include <cmath>

#include "backends/all_backends.h"
#include "core/ops/matmul.h"
#include "experiments/measure/calibrate.h"
#include "systolic/driver/watcher.h"
#include "systolic/twin/twin.h"

namespace triptych::studies {
namespace {

constexpr double kSectorBytes = 32;

/// Adds up the counters of a device's programs.
class Sum : public mmu::Watcher {
 public:
  mmu::RunOptions starts(const mmu::Program&) override { return {}; }
  void ended(const mmu::Program&, const mmu::RunReport& report) override {
    counters += report.counters;
  }
  mmu::Counters counters;
};

Plan plan_of(const Graph& graph, const training::DeviceSet& machine) {
  return make_plan(graph.clone(), machine.devices(), machine.plan_options());
}

training::ExecutionConfig array_config(const std::string& machine, mmu::Simulation simulate) {
  return {
      .backend = "systolic", .contract = Contract::Bf16, .machine = machine, .simulate = simulate};
}

}  // namespace

const machines::MachineFigures& Laboratory::cpu() {
  if (cpu_) return *cpu_;
  const auto device = open_device("cpu");
  machines::MachineFigures figures;
  figures.name = "cpu";
  figures.description = device->info().description;
  figures.kind = "cpu";
  figures.peaks = measure::peaks_of(*device);
  figures.levels = measure::levels_of(*device);
  return cpu_.emplace(std::move(figures));
}

double measure(const measure::Problem& problem, const training::DeviceSet& machine, int repeats) {
  Device& device = machine.device();
  StateStore states(device);
  Executor executor(problem.plan(machine), states);
  measure::fill_inputs(executor);
  return measure::time_repeatedly([&] { executor.run(); }, [&] { return device.elapsed().seconds; },
                                  repeats)
      .median;
}

KernelCounterTable count(const measure::Problem& problem) {
  const training::DeviceSet machine({.backend = "cuda-emulated", .emulation = "counted"});
  StateStore states(machine.device());
  Executor executor(problem.plan(machine), states);
  measure::fill_inputs(executor);
  executor.run();
  return machine.device().kernel_counters();
}

double sector_bytes(const KernelCounterTable& kernels) {
  double bytes = 0;
  for (const auto& [name, counters] : kernels) {
    for (const auto access : {MemoryAccess::Load, MemoryAccess::Store}) {
      const auto at = counters.total(MemorySpace::Global, access);
      bytes += kSectorBytes * static_cast<double>(at.sectors);
    }
    bytes += static_cast<double>(counters.bulk_bytes);
  }
  return bytes;
}

Graph product_graph(std::int64_t m, std::int64_t k, std::int64_t n) {
  Graph graph;
  const std::vector<ValueId> inputs = {graph.add_input("a", {DType::F32, Shape{m, k}}),
                                       graph.add_input("b", {DType::F32, Shape{k, n}})};
  graph.mark_output("y", graph.add_node(make_op(MatMul{}), inputs).front());
  return graph;
}

mmu::Counters estimate_product(const std::string& machine, const Graph& product) {
  const training::DeviceSet array(array_config(machine, mmu::Simulation::Twin));
  const auto plan = plan_of(product, array);
  const auto* owner = dynamic_cast<const mmu::ProgramOwner*>(plan.steps.front().kernel.get());
  TRIPTYCH_ASSERT(owner != nullptr);
  return mmu::estimate(owner->program(), mmu::find_machine(machine)).counters;
}

mmu::Counters run_product(const std::string& machine, mmu::Simulation simulate,
                          const Graph& product) {
  const training::DeviceSet array(array_config(machine, simulate));
  Sum sum;
  auto& watched = dynamic_cast<mmu::Watched&>(array.device());
  watched.watch(&sum);
  StateStore states(array.device());
  Executor executor(plan_of(product, array), states);
  measure::fill_inputs(executor);
  executor.run();
  watched.watch(nullptr);
  return sum.counters;
}

double utilisation(const mmu::Counters& counters, const mmu::MachineConfig& machine) {
  return static_cast<double>(counters.macs) / static_cast<double>(counters.cycles) / machine.rows /
         machine.columns;
}

}  // namespace triptych::studies
