// Cycles of a model's step on a machine: the programs of all its nodes through the twin's clock,
// without values, next to the bound of every schedule of weight tiles.
//   mmu_utilisation unet-l train mmu16:ideal tpu-v2-core:hbm300 [--nodes] [--colour] [--apart]
//   mmu_utilisation unet-s infer mmu16:ideal mmu32:ideal --colour --scale-sim
//   mmu_utilisation tpu-v1
// The array's bound is Product::array_bound, the DRAM's the bytes that the program asks for. A
// node's bound is the larger one. --apart: every node's activations cross the DRAM. --scale-sim:
// each node, apart, next to SCALE-Sim's count (scale_sim.h).
// tpu-v1: the applications of TPU v1's paper (tpu_v1.h).
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <ctime>
#include <sstream>

#include "systolic/twin/twin.h"
#include "tests/systolic/utilisation/measure.h"
#include "tests/systolic/utilisation/scale_sim.h"
#include "tests/systolic/utilisation/tpu_v1.h"

namespace triptych {
namespace {

struct NodeUse {
  std::string name;
  double macs = 0;
  double array_bound = 0, dram_bound = 0;
  double seconds = 0;  ///< of the processor, for the estimate
  mmu::Counters counters;

  double bound() const { return std::max(array_bound, dram_bound); }
};

NodeUse use_of(const NodeProgram& node, const mmu::MachineConfig& machine) {
  NodeUse use = {.name = node.name, .macs = node.product.macs()};
  const auto begin = std::clock();
  use.counters = mmu::estimate(node.program, machine).counters;
  use.seconds = number(std::clock() - begin) / CLOCKS_PER_SEC;
  use.array_bound = node.product.array_bound(machine);
  if (machine.dram.bytes_per_cycle > 0) {
    use.dram_bound = dram_bytes(use.counters) / machine.dram.bytes_per_cycle;
  }
  return use;
}

NodeUse sum_of(const std::vector<NodeUse>& uses) {
  NodeUse sum = {.name = "all"};
  for (const auto& use : uses) {
    sum.macs += use.macs;
    sum.array_bound += use.array_bound;
    sum.dram_bound += use.bound();
    sum.seconds += use.seconds;
    sum.counters += use.counters;
  }
  return sum;
}

void print_header() {
  fmt::print("{:>11} {:>11} {:>9} {:>7} {:>7} {:>7} {:>7} {:>7}", "cycles", "bound", "DRAM MB",
             "bound%", "PEs%", "shape%", "pad%", "DRAM%");
  for (int i = 0; i < mmu::kStalls; ++i) {
    fmt::print(" {:>7.7}", mmu::to_string(static_cast<mmu::Stall>(i)));
  }
  fmt::print("  node\n");
}

/// PEs: of the model's products. Shape: rows and columns without weights, channels of padding.
void print(const NodeUse& use, const mmu::MachineConfig& machine) {
  const auto& c = use.counters;
  const auto products = use.macs / number(machine.rows * machine.columns);
  const auto slots = number(c.issue_cycles - c.padding_cycles);
  std::vector<double> parts = {use.bound(), products, slots - products, number(c.padding_cycles),
                               use.dram_bound};
  for (const auto stall : c.stall_cycles) parts.push_back(number(stall));
  fmt::print("{:11.0f} {:11.0f} {:9.3f}", number(c.cycles), use.bound(), dram_bytes(c) / 1e6);
  for (const auto part : parts) fmt::print(" {:7.2f}", 100 * part / number(c.cycles));
  fmt::print("  {}\n", use.name);
}

void report(const std::vector<NodeProgram>& programs, const mmu::MachineConfig& machine,
            bool nodes) {
  std::vector<NodeUse> uses;
  for (const auto& program : programs) uses.push_back(use_of(program, machine));
  const auto sum = sum_of(uses);
  fmt::print("\n{} x {} ({}), latency {}, DRAM {}: timed in {:.3f} s of processor time\n",
             machine.rows, machine.columns, machine.name, machine.pe_latency, machine.dram.preset,
             sum.seconds);
  print_header();
  for (const auto& use : uses) {
    if (nodes) print(use, machine);
  }
  print(sum, machine);
}

/// "mmu16:ideal:2": a machine, as one of bfloat16, with another DRAM and PEs of two cycles.
mmu::MachineConfig machine_of(const std::string& text) {
  std::istringstream parts(text);
  std::string name, dram, latency;
  std::getline(parts, name, ':');
  auto machine = mmu::find_machine(name);
  machine.pe = mmu::PeKind::Bf16;
  if (std::getline(parts, dram, ':')) machine.dram = mmu::dram_preset(dram, machine.clock_mhz);
  if (std::getline(parts, latency)) {
    machine.pe_latency = static_cast<std::uint32_t>(std::stoul(latency));
    mmu::validate(machine);
  }
  return machine;
}

void run(std::vector<std::string> arguments) {
  const bool nodes = std::erase(arguments, "--nodes") > 0;
  const bool colour = std::erase(arguments, "--colour") > 0;
  const bool scale_sim = std::erase(arguments, "--scale-sim") > 0;
  const bool apart = std::erase(arguments, "--apart") > 0 || scale_sim;
  if (arguments == std::vector<std::string>{"tpu-v1"}) return print_tpu_v1();
  if (arguments.size() < 3) {
    throw std::invalid_argument(
        "mmu_utilisation MODEL|FILE.onnx train|infer MACHINE[:DRAM[:LATENCY]]... [--nodes] "
        "[--colour] "
        "[--apart] [--scale-sim], "
        "or mmu_utilisation tpu-v1");
  }
  fmt::print("{} {}, batch 1{}\n", arguments[0], arguments[1], colour ? ", 3 input channels" : "");
  for (std::size_t i = 2; i < arguments.size(); ++i) {
    const auto machine = machine_of(arguments[i]);
    auto graph = model_graph(arguments[0], arguments[1], colour);
    const auto programs = programs_of(std::move(graph), machine, apart);
    if (scale_sim) {
      print_scale_sim(programs, machine);
    } else {
      report(programs, machine, nodes);
    }
  }
}

}  // namespace
}  // namespace triptych

int main(int argc, char** argv) {
  try {
    triptych::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
