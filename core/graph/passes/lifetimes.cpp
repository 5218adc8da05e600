// SPDX-License-Identifier: Apache-2.0
#include "core/graph/passes/lifetimes.h"

#include <algorithm>
#include <numeric>

#include "core/graph/passes/passes.h"

namespace triptych {

namespace {

std::vector<ValueId> find_roots(const Graph& graph) {
  std::vector<ValueId> root;
  for (const auto& value : graph.values()) root.push_back(value.id);
  for (const auto& node : graph.nodes()) {
    if (node.op->view()) root[node.outputs[0].index()] = root[node.inputs[0].index()];
    for (const auto& [before, after] : node.updates()) {
      root[after.index()] = root[before.index()];
    }
  }
  return root;
}

}  // namespace

Lifetimes Lifetimes::of(const Graph& graph) {
  const auto count = graph.values().size();
  const auto end = graph.nodes().size();
  Lifetimes times{.root = find_roots(graph),
                  .first = std::vector<std::size_t>(count, 0),
                  .last = std::vector<std::size_t>(count, 0),
                  .bytes = std::vector<std::size_t>(count, 0),
                  .live = std::vector<std::size_t>(end + 1, 0)};
  const auto use = [&](ValueId value, std::size_t time) {
    auto& last_use = times.last[times.root[value.index()].index()];
    last_use = std::max(last_use, time);
  };
  for (const auto& node : graph.nodes()) {
    for (const auto input : node.inputs) use(input, node.id.index());
    for (const auto output : node.outputs) {
      times.first[output.index()] = node.id.index();
      use(output, node.id.index());
    }
  }
  for (const auto& output : graph.outputs()) use(output.value, end);
  std::vector<std::size_t> changes(end + 2, 0);  // per time: bytes in use, less those before it
  for (const auto& value : graph.values()) {
    const bool owns = times.root[value.id.index()] == value.id;
    const auto i = value.id.index();
    if (!owns || value.kind == ValueKind::State || value.kind == ValueKind::Constant) continue;
    times.bytes[i] = value.spec.bytes();
    changes[times.first[i]] += times.bytes[i];
    changes[times.last[i] + 1] -= times.bytes[i];  // unsigned: a later addition undoes a wrap
  }
  std::partial_sum(changes.begin(), changes.end() - 1, times.live.begin());
  return times;
}

std::size_t Lifetimes::peak() const { return *std::max_element(live.begin(), live.end()); }

bool Lifetimes::alive(ValueId value, std::size_t time) const {
  const auto owner = root[value.index()].index();
  return first[owner] <= time && time <= last[owner];
}

std::size_t peak_activation_bytes(const Graph& graph) { return Lifetimes::of(graph).peak(); }

}  // namespace triptych
