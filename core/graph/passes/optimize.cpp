// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>

#include "core/graph/passes/passes.h"
#include "core/ops/batch_normalization.h"
#include "core/ops/conv.h"

namespace triptych {

namespace {

struct Pass {
  std::string_view name;
  std::function<Graph(const Graph&)> run;
  /// False for a graph that the pass would only copy, which takes long for a large one.
  std::function<bool(const Graph&)> applies = [](const Graph&) { return true; };
};

template <class Op>
bool has(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(),
                             [](const Node& node) { return op_cast<Op>(*node.op) != nullptr; });
}

bool has_erf(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(),
                             [](const Node& node) { return node.op->name() == "Erf"; });
}

bool has_states(const Graph& graph) { return !graph.values_of(ValueKind::State).empty(); }

std::vector<Pass> pipeline(const PassOptions& options) {
  std::vector<Pass> passes;
  if (options.inference) passes.push_back({"freeze_states", freeze_states, has_states});
  passes.push_back({"fold_constants", fold_constants});
  if (options.inference) {
    passes.push_back(
        {"fold_batch_normalization", fold_batch_normalization, has<BatchNormalization>});
    passes.push_back({"fuse_conv_epilogue", fuse_conv_epilogue, has<Conv>});
    passes.push_back({"fuse_gelu", fuse_gelu, has_erf});
  }
  passes.push_back({"eliminate_dead_code", eliminate_dead_code});
  if (options.memory_limit > 0) {
    passes.push_back({"recompute_activations", [limit = options.memory_limit](const Graph& graph) {
                        return recompute_activations(graph, limit);
                      }});
  }
  return passes;
}

}  // namespace

Graph optimize(Graph graph, const PassOptions& options, std::vector<PassReport>* reports) {
  for (const auto& pass : pipeline(options)) {
    PassReport report{.name = pass.name, .nodes_before = graph.nodes().size()};
    if (options.keep_text) report.text_before = to_text(graph);
    if (pass.applies(graph)) graph = pass.run(graph);
    report.nodes_after = graph.nodes().size();
    if (options.keep_text) report.text_after = to_text(graph);
    if (reports != nullptr) reports->push_back(std::move(report));
  }
  return graph;
}

}  // namespace triptych
