// CUDA graphs: recorded operations, their order, and the capture of streams. A launch runs the
// operations one after another, in a topological order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/cuda/program/types.h"

namespace triptych::cuda::program {

/// Work of a stream or node. It reports its own mistakes.
using Operation = std::function<cudaError_t()>;

class Graph;

struct GraphNode {
  cudaGraphNode_t handle = nullptr;
  cudaGraphNode_t original = nullptr;  ///< in the graph that this one was cloned from
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  std::vector<cudaGraphNode_t> after;  ///< in the same graph
  Operation run;                       ///< empty: none, or the bodies
  std::vector<std::shared_ptr<Graph>> bodies;
  /// Decides about the bodies. nullptr: the only one runs once.
  const unsigned* condition = nullptr;
  cudaGraphConditionalNodeType branch = cudaGraphCondTypeIf;
};

/// The value of conditional nodes.
struct GraphCondition {
  unsigned value = 0;
  std::optional<unsigned> initial;  ///< assigned by each launch
};

class Graph {
 public:
  std::vector<GraphNode> nodes;  ///< in the order of their creation, or of their launch
  std::vector<GraphCondition*> conditions;

  /// nullptr: the node belongs to another graph.
  GraphNode* find(cudaGraphNode_t node);
  /// A copy whose nodes have the same handles, in the order of a launch. nullptr: the dependencies
  /// form a cycle.
  std::shared_ptr<Graph> ordered() const;
  /// Runs all nodes, until the first error.
  cudaError_t run() const;
  /// Takes over the operations of a graph with equal types and dependencies.
  cudaGraphExecUpdateResult update(Graph& from);
};

/// Streams that record their work as nodes.
struct Capture {
  std::shared_ptr<Graph> graph;
  cudaGraph_t handle = nullptr;
  unsigned long long number = 0;
  cudaStream_t origin = nullptr;
  bool is_invalid = false;
  std::string began;  ///< the place
  /// The nodes that the next operation of a stream depends on.
  std::map<cudaStream_t, std::vector<cudaGraphNode_t>> streams;
};

/// Bytes of graphs' memory nodes.
struct GraphMemory {
  std::size_t used = 0, most_used = 0, reserved = 0, most_reserved = 0;
  void add(std::size_t bytes);
};

struct Graphs {
  std::map<cudaGraph_t, std::shared_ptr<Graph>> graphs;
  std::map<cudaGraphNode_t, Graph*> owners;
  std::map<cudaGraphExec_t, std::shared_ptr<Graph>> executables;
  std::deque<GraphCondition> conditions;
  std::deque<std::vector<cudaGraph_t>> bodies;  ///< lists that conditional nodes returned
  std::vector<Capture> captures;
  GraphMemory memory;

  /// The capture of a stream. nullptr: its work runs at once.
  Capture* capture_of(cudaStream_t stream);
  /// Forgets a graph with the graphs of its nodes.
  void erase(Graph& graph);
};

}  // namespace triptych::cuda::program
