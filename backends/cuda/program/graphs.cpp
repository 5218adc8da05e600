// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/program/graphs.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>

namespace triptych::cuda::program {
namespace {

using Positions = std::map<cudaGraphNode_t, std::size_t>;

Positions positions_of(const std::vector<GraphNode>& nodes) {
  Positions positions;
  for (std::size_t i = 0; i < nodes.size(); ++i) positions[nodes[i].handle] = i;
  return positions;
}

/// The earliest node that is ready comes next. Nodes of a cycle are left out.
std::vector<std::size_t> launch_order(const std::vector<GraphNode>& nodes) {
  const auto positions = positions_of(nodes);
  std::vector<std::size_t> waits(nodes.size());
  std::vector<std::vector<std::size_t>> followers(nodes.size());
  std::set<std::size_t> ready;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    waits[i] = nodes[i].after.size();
    for (const auto& each : nodes[i].after) followers[positions.at(each)].push_back(i);
    if (waits[i] == 0) ready.insert(i);
  }
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    const auto next = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(next);
    for (const auto follower : followers[next]) {
      if (--waits[follower] == 0) ready.insert(follower);
    }
  }
  return order;
}

cudaError_t run_bodies(const GraphNode& node) {
  if (node.condition == nullptr) return node.bodies.front()->run();
  const auto& value = *node.condition;
  if (node.branch == cudaGraphCondTypeWhile) {
    while (value != 0) {
      if (const auto error = node.bodies.front()->run(); error != cudaSuccess) return error;
    }
    return cudaSuccess;
  }
  const std::size_t chosen = node.branch == cudaGraphCondTypeSwitch ? value : value == 0 ? 1 : 0;
  return chosen < node.bodies.size() ? node.bodies[chosen]->run() : cudaSuccess;
}

/// True when both depend on nodes in the same places.
bool depend_alike(const GraphNode& a, const Positions& of_a, const GraphNode& b,
                  const Positions& of_b) {
  const auto places = [](const GraphNode& node, const Positions& positions) {
    std::set<std::size_t> result;
    for (const auto& each : node.after) result.insert(positions.at(each));
    return result;
  };
  return places(a, of_a) == places(b, of_b);
}

}  // namespace

GraphNode* Graph::find(cudaGraphNode_t node) {
  const auto found = std::ranges::find(nodes, node, &GraphNode::handle);
  return found == nodes.end() ? nullptr : &*found;
}

std::shared_ptr<Graph> Graph::ordered() const {
  auto copy = std::make_shared<Graph>();
  copy->conditions = conditions;
  const auto order = launch_order(nodes);
  if (order.size() != nodes.size()) return nullptr;
  for (const auto i : order) {
    auto node = nodes[i];
    for (auto& body : node.bodies) {
      body = body->ordered();
      if (body == nullptr) return nullptr;
    }
    copy->nodes.push_back(std::move(node));
  }
  return copy;
}

cudaError_t Graph::run() const {
  for (auto* condition : conditions) {
    if (condition->initial) condition->value = *condition->initial;
  }
  for (const auto& node : nodes) {
    const auto error = node.run ? node.run() : node.bodies.empty() ? cudaSuccess : run_bodies(node);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

cudaGraphExecUpdateResult Graph::update(Graph& from) {
  if (nodes.size() != from.nodes.size()) return cudaGraphExecUpdateErrorTopologyChanged;
  const auto mine = positions_of(nodes), other = positions_of(from.nodes);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto &a = nodes[i], &b = from.nodes[i];
    if (a.type != b.type) return cudaGraphExecUpdateErrorNodeTypeChanged;
    if (!depend_alike(a, mine, b, other) || a.bodies.size() != b.bodies.size()) {
      return cudaGraphExecUpdateErrorTopologyChanged;
    }
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].run = std::move(from.nodes[i].run);
    nodes[i].bodies = std::move(from.nodes[i].bodies);
    nodes[i].condition = from.nodes[i].condition;
    nodes[i].branch = from.nodes[i].branch;
  }
  conditions = std::move(from.conditions);
  return cudaGraphExecUpdateSuccess;
}

void GraphMemory::add(std::size_t bytes) {
  used += bytes;
  most_used = std::max(most_used, used);
  reserved = std::max(reserved, used);
  most_reserved = std::max(most_reserved, reserved);
}

Capture* Graphs::capture_of(cudaStream_t stream) {
  const auto found = std::ranges::find_if(
      captures, [&](const Capture& each) { return each.streams.contains(stream); });
  return found == captures.end() ? nullptr : &*found;
}

void Graphs::erase(Graph& graph) {
  for (const auto& node : graph.nodes) {
    owners.erase(node.handle);
    for (const auto& body : node.bodies) erase(*body);
  }
  std::erase_if(graphs, [&](const auto& each) { return each.second.get() == &graph; });
}

}  // namespace triptych::cuda::program
