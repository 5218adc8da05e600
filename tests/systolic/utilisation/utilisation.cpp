// What a model's step takes on a machine: the programs of all its nodes through the twin's clock,
// without a value of them, beside what no schedule of weight tiles could beat.
//   mmu_utilisation unet-l train mmu16:ideal tpu-v2-core:hbm300 [--nodes] [--colour]
// The array's bound: each weight tile takes as many cycles as positions pass it, and at least as
// many as it has rows to be replaced. The DRAM's: the bytes that the program asks for. A node's
// bound is the larger one. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "core/graph/passes/passes.h"
#include "core/nn/training_graph.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "experiments/training/machine.h"
#include "systolic/driver/watcher.h"
#include "systolic/twin/twin.h"

namespace triptych {
namespace {

/// A matrix product: positions x values past a stationary matrix of so many columns.
struct Product {
  double positions = 0, values = 0, columns = 0;
  bool gradient = false;  ///< of weights: positions are summed, values remain
  double macs() const { return positions * values * columns; }
};

struct NodeUse {
  std::string name;
  double macs = 0;
  double array_bound = 0, dram_bound = 0;
  double seconds = 0;  ///< of the processor, for the estimate
  mmu::Counters counters;

  double bound() const { return std::max(array_bound, dram_bound); }
};

double number(auto value) { return static_cast<double>(value); }

Product of_conv(const ConvGeometry& g, bool gradient) {
  return {number(g.batch * g.out_plane()), number(g.group_in() * g.taps()), number(g.group_out()),
          gradient};
}

/// The product of one group of channels; without MACs for another operator.
Product product_of(const Graph& graph, const Node& node) {
  const auto in = graph.specs(node.inputs);
  if (const auto* conv = dynamic_cast<const Conv*>(node.op.get())) {
    return of_conv(conv->geometry(in[0].shape, in[1].shape), false);
  }
  if (const auto* conv = dynamic_cast<const ConvWeightGradient*>(node.op.get())) {
    return of_conv(conv->geometry(in[0].shape, in[1].shape), true);
  }
  if (const auto* conv = dynamic_cast<const ConvTranspose*>(node.op.get())) {
    const auto g = conv->geometry(in[0].shape, in[1].shape);
    const bool upsamples = g.window.stride[0] > 1;
    const auto taps = number(g.taps());
    return {number(g.batch * (upsamples ? g.out_plane() : g.in_plane())),
            number(g.group_out()) * (upsamples ? 1 : taps),
            number(g.group_in()) * (upsamples ? taps : 1)};
  }
  return {};
}

double array_cycles(const Product& product, const mmu::MachineConfig& machine) {
  const double rows = machine.rows, columns = machine.columns;
  const auto chain = product.gradient ? product.positions : product.values;
  const auto streamed = product.gradient ? product.values : product.positions;
  return std::ceil(chain / rows) * std::ceil(product.columns / columns) * std::max(streamed, rows);
}

NodeUse use_of(const std::string& name, const Product& product, const mmu::Program& program,
               const mmu::MachineConfig& machine) {
  NodeUse use = {.name = name, .macs = product.macs()};
  const auto begin = std::clock();
  use.counters = mmu::estimate(program, machine).counters;
  use.seconds = number(std::clock() - begin) / CLOCKS_PER_SEC;
  use.array_bound = array_cycles(product, machine);
  if (machine.dram.bytes_per_cycle > 0) {
    for (const auto bytes : use.counters.dram_bytes) {
      use.dram_bound += number(bytes) / machine.dram.bytes_per_cycle;
    }
  }
  return use;
}

/// A file with the machine, gone when this is.
class MachineFile {
 public:
  explicit MachineFile(const mmu::MachineConfig& machine)
      : path_(std::filesystem::temp_directory_path() /
              fmt::format("{}-{}.json", machine.name,
                          std::chrono::steady_clock::now().time_since_epoch().count())) {
    std::ofstream(path_) << mmu::to_json(machine);
  }
  ~MachineFile() { std::filesystem::remove(path_); }
  MachineFile(const MachineFile&) = delete;
  MachineFile& operator=(const MachineFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

/// The model's step, or its inference, as optimised graph; batch 1.
Graph graph_of(const std::string& model, const std::string& mode, bool colour) {
  auto config = model_preset(model);
  if (colour) config.in_channels = 3;
  auto graph = mode == "train" ? build_training_graph(config, {.batch = 1}).graph
                               : build_inference_graph(config, 1, config.size, config.size, 0);
  return optimize(std::move(graph), {.inference = mode != "train"});
}

std::vector<NodeUse> measure(Graph graph, const mmu::MachineConfig& config) {
  const MachineFile file(config);
  const training::Machine machine({.backend = "systolic",
                                   .threads = 1,
                                   .contract = Contract::Bf16Exact,
                                   .machine = file.path()});
  const auto plan = make_plan(std::move(graph), machine.devices(), machine.plan_options());
  std::vector<NodeUse> uses;
  for (const auto& step : plan.steps) {
    const auto* owner = dynamic_cast<const mmu::ProgramOwner*>(step.kernel.get());
    if (owner == nullptr) continue;
    const auto& node = plan.graph.node(step.node);
    const auto name = fmt::format("{} {}", node.op->name(), node.name);
    uses.push_back(use_of(name, product_of(plan.graph, node), owner->program(), config));
  }
  return uses;
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
  fmt::print("{:>11} {:>11} {:>7} {:>7} {:>7} {:>7} {:>7}", "cycles", "bound", "bound%", "PEs%",
             "shape%", "pad%", "DRAM%");
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
  fmt::print("{:11.0f} {:11.0f}", number(c.cycles), use.bound());
  for (const auto part : parts) fmt::print(" {:7.2f}", 100 * part / number(c.cycles));
  fmt::print("  {}\n", use.name);
}

void report(Graph graph, const mmu::MachineConfig& machine, bool nodes) {
  const auto uses = measure(std::move(graph), machine);
  const auto sum = sum_of(uses);
  fmt::print("\n{} x {} ({}), DRAM {}: timed in {:.3f} s of processor time\n", machine.rows,
             machine.columns, machine.name, machine.dram.preset, sum.seconds);
  print_header();
  for (const auto& use : uses) {
    if (nodes) print(use, machine);
  }
  print(sum, machine);
}

/// "mmu16:ideal": a machine, as one of bfloat16, with another DRAM.
mmu::MachineConfig machine_of(const std::string& text) {
  const auto colon = text.rfind(':');
  auto machine = mmu::find_machine(text.substr(0, colon));
  machine.pe = mmu::PeKind::Bf16;
  if (colon != std::string::npos) {
    machine.dram = mmu::dram_preset(text.substr(colon + 1), machine.clock_mhz);
  }
  return machine;
}

void run(std::vector<std::string> arguments) {
  const bool nodes = std::erase(arguments, "--nodes") > 0;
  const bool colour = std::erase(arguments, "--colour") > 0;
  if (arguments.size() < 3) {
    throw std::invalid_argument(
        "mmu_utilisation MODEL train|infer MACHINE[:DRAM]... [--nodes] [--colour]");
  }
  fmt::print("{} {}, batch 1{}\n", arguments[0], arguments[1], colour ? ", 3 input channels" : "");
  for (std::size_t i = 2; i < arguments.size(); ++i) {
    report(graph_of(arguments[0], arguments[1], colour), machine_of(arguments[i]), nodes);
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
