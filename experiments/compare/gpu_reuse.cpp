// Demand of a GPU's kernels on its memories, counted by the emulator that runs them.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "backends/all_backends.h"
#include "core/base/console.h"
#include "core/base/random.h"
#include "core/graph/passes/passes.h"
#include "core/nn/training_graph.h"
#include "experiments/compare/reuse.h"

namespace triptych::compare {
namespace {

// Multiply-adds that the counting emulator runs in about ten seconds.
constexpr double kCountedMacs = 100e6;
constexpr double kSectorBytes = 32;
constexpr double kWavefrontBytes = 128;  // a word from each bank
constexpr double kWord = 4;

/// A node by itself, and how many of the step are like it.
struct Candidate {
  const Node* node = nullptr;
  double macs = 0;
  double count = 0;
};

/// Equal nodes together, those with the least work first.
std::vector<Candidate> candidates_of(const Graph& graph) {
  std::map<std::string, Candidate> unlike;
  for (const auto& node : graph.nodes()) {
    const double macs = macs_of(graph, node);
    if (macs == 0) continue;
    std::string key = to_string(*node.op);
    for (const auto& spec : graph.specs(node.inputs)) key += fmt::format(" {}", to_string(spec));
    auto& candidate = unlike[key];
    candidate.node = &node;
    candidate.macs = macs;
    ++candidate.count;
  }
  std::vector<Candidate> list;
  list.reserve(unlike.size());
  for (const auto& [key, candidate] : unlike) list.push_back(candidate);
  std::ranges::stable_sort(list, {}, &Candidate::macs);
  return list;
}

/// The node alone, its operands being inputs.
Graph graph_of(const Graph& graph, const Node& node) {
  Graph alone;
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    inputs.push_back(alone.add_input(fmt::format("x{}", i), graph.spec(node.inputs[i])));
  }
  alone.mark_output("y", alone.add_node(node.op, inputs).front());
  return alone;
}

/// All kernels that a machine of its own runs for the node.
KernelCounters count(const Graph& graph, const Node& node,
                     const training::ExecutionConfig& config) {
  const training::DeviceSet machine(config);
  StateStore states(machine.device());
  Executor executor(make_plan(graph_of(graph, node), machine.devices(), machine.plan_options()),
                    states);
  const auto& alone = executor.plan().graph;
  for (const auto id : alone.values_of(ValueKind::Input)) {
    Tensor noise(alone.spec(id));
    RandomStream random(1, id.index());
    for (auto& value : noise.as<float>()) value = static_cast<float>(random.uniform());
    executor.set_input(alone.value(id).name, noise);
  }
  executor.run();
  KernelCounters all;
  for (const auto& [name, counters] : machine.device().kernel_counters()) all += counters;
  return all;
}

void add(LevelUse& level, double read_bytes, double written_bytes, double times) {
  level.reads += read_bytes / kWord * times;
  level.bytes += (read_bytes + written_bytes) * times;
}

}  // namespace

std::optional<Reuse> reuse_of_gpu(const training::RunConfig& run,
                                  const training::ExecutionConfig& config) {
  auto counting = config;
  counting.backend = "cuda-emulated";
  counting.emulation = "counted";
  counting.graph = true;
  counting.choice = training::Selection::Table;
  if (!find_backend(counting.backend).availability().available) return std::nullopt;
  try {
    const training::DeviceSet machine(counting);
  } catch (const UnsupportedError& missing) {
    say_note(fmt::format("the page lacks the demand of GPU kernels: {}", missing.what()));
    return std::nullopt;
  }
  auto options = run.training;
  options.batch = 1;
  const auto graph = optimize(build_training_graph(run.model, options).graph, {});
  const auto level = [](const char* name, LevelPrice price, double capacity) {
    return LevelUse{.level = name,
                    .price = price,
                    .capacity = capacity,
                    .kind = TimeKind::Simulated,
                    .how = "counted by the emulator"};
  };
  Reuse reuse = {
      .levels = {level("shared memory, as lanes ask", LevelPrice::None, 0),
                 level("shared memory, in wavefronts", LevelPrice::OnChip, 262144),
                 level("global memory, as lanes ask", LevelPrice::None, 0),
                 level("L2, in sectors", LevelPrice::OnChip, 1048576),
                 {.level = "DRAM", .price = LevelPrice::Dram, .how = "each operand once"}},
      .lanes = 32};
  double all = 0, spent = 0;
  for (const auto& [node, macs, times] : candidates_of(graph)) {
    all += macs * times;
    if (spent + macs > kCountedMacs) continue;
    spent += macs;
    reuse.macs += macs * times;
    const auto counted = count(graph, *node, counting);
    const auto at = [&](MemorySpace space, MemoryAccess access) {
      return counted.total(space, access);
    };
    using enum MemoryAccess;
    const auto number = [](auto value) { return static_cast<double>(value); };
    const auto bulk = number(counted.bulk_bytes);
    add(reuse.levels[0], number(at(MemorySpace::Shared, Load).useful_bytes),
        number(at(MemorySpace::Shared, Store).useful_bytes) + bulk, times);
    add(reuse.levels[1], kWavefrontBytes * number(at(MemorySpace::Shared, Load).wavefronts),
        kWavefrontBytes * number(at(MemorySpace::Shared, Store).wavefronts) + bulk, times);
    add(reuse.levels[2], number(at(MemorySpace::Global, Load).useful_bytes) + bulk,
        number(at(MemorySpace::Global, Store).useful_bytes), times);
    add(reuse.levels[3], kSectorBytes * number(at(MemorySpace::Global, Load).sectors) + bulk,
        kSectorBytes * number(at(MemorySpace::Global, Store).sectors), times);
    double read = 0, written = 0;
    for (const auto& spec : graph.specs(node->inputs)) read += number(spec.bytes());
    for (const auto& spec : graph.specs(node->outputs)) written += number(spec.bytes());
    add(reuse.levels[4], read, written, times);
  }
  if (reuse.macs == 0) return std::nullopt;
  reuse.covers = reuse.macs / all;
  return reuse;
}

}  // namespace triptych::compare
