// SPDX-License-Identifier: Apache-2.0
#include "tests/systolic/utilisation/measure.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/graph/passes/passes.h"
#include "core/nn/training_graph.h"
#include "core/onnx/importer.h"
#include "core/onnx/model_reader.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/quantized_conv.h"
#include "experiments/training/device_set.h"
#include "systolic/driver/watcher.h"

namespace triptych {
namespace {

Product of_conv(const ConvGeometry& g, bool gradient) {
  return {number(g.batch * g.out_plane()), number(g.group_in() * g.taps()), number(g.group_out()),
          gradient};
}

Product product_of(const Graph& graph, const Node& node) {
  const auto in = graph.specs(node.inputs);
  if (const auto* conv = dynamic_cast<const Conv*>(node.op.get())) {
    return of_conv(conv->geometry(in[0].shape, in[1].shape), false);
  }
  if (const auto* conv = dynamic_cast<const QuantizedConv*>(node.op.get())) {
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

}  // namespace

double Product::tiles(const mmu::MachineConfig& machine) const {
  return std::ceil(chain() / machine.rows) * std::ceil(columns / machine.columns);
}

double Product::array_bound(const mmu::MachineConfig& machine) const {
  return std::max(tiles(machine) * std::max(streamed(), number(machine.rows)),
                  chain() * machine.pe_latency);
}

Graph model_graph(const std::string& model, const std::string& mode, bool colour) {
  if (model.ends_with(".onnx")) {
    return optimize(onnx::import_model(onnx::load_model(model)).graph, {.inference = true});
  }
  auto config = model_preset(model);
  if (colour) config.in_channels = 3;
  auto graph = mode == "train" ? build_training_graph(config, {.batch = 1}).graph
                               : build_inference_graph(config, 1, config.size, config.size, 0);
  return optimize(std::move(graph), {.inference = mode != "train"});
}

std::vector<NodeProgram> programs_of(Graph graph, const mmu::MachineConfig& config, bool apart,
                                     const std::string& tiling) {
  const MachineFile file(config);
  const training::DeviceSet machine(
      {.backend = "systolic",
       .fallback = "cpu",
       .threads = 1,
       .contract = config.pe == mmu::PeKind::Int8 ? Contract::Int8 : Contract::Bf16Exact,
       .machine = file.path(),
       .tiling = tiling});
  auto options = machine.plan_options();
  options.keep_outputs = !apart;
  const auto plan = make_plan(std::move(graph), machine.devices(), options);
  std::vector<NodeProgram> programs;
  for (const auto& step : plan.steps) {
    const auto* owner = dynamic_cast<const mmu::ProgramOwner*>(step.kernel.get());
    if (owner == nullptr) continue;
    const auto& node = plan.graph.node(step.node);
    programs.push_back({.name = fmt::format("{} {}", node.op->name(), node.name),
                        .product = product_of(plan.graph, node),
                        .program = owner->program()});
  }
  return programs;
}

double dram_bytes(const mmu::Counters& counters) {
  double sum = 0;
  for (const auto bytes : counters.dram_bytes) sum += number(bytes);
  return sum;
}

}  // namespace triptych
