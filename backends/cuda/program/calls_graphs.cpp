// Graphs that a program makes node by node, and their launches.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/cuda/program/calls.h"
#include "backends/cuda/program/graphs.h"

namespace triptych::cuda::program::calls {
namespace {

/// Nodes on which a new one depends.
using After = std::span<const cudaGraphNode_t>;

cudaError_t add(const char* call, Place place, cudaGraphNode_t* node, cudaGraph_t graph,
                After after, GraphNode made) {
  auto& session = Session::current();
  const auto into = graph_of(call, place, graph);
  if (into == nullptr) return session.last_error;
  const auto error = check_nodes(call, place, *into, after);
  if (error != cudaSuccess) return error;
  made.after.assign(after.begin(), after.end());
  std::ranges::sort(made.after);
  made.after.erase(std::unique(made.after.begin(), made.after.end()), made.after.end());
  *node = add_node(*into, std::move(made));
  return cudaSuccess;
}

/// A copy with nodes of its own. `handles` gets those by the original's.
std::shared_ptr<Graph> clone(const Graph& graph,
                             std::map<cudaGraphNode_t, cudaGraphNode_t>& handles) {
  auto copy = std::make_shared<Graph>();
  copy->conditions = graph.conditions;
  for (auto node : graph.nodes) {
    const auto original = node.handle;
    node.original = original;
    for (auto& body : node.bodies) body = clone(*body, handles);
    handles[original] = add_node(*copy, std::move(node));
  }
  for (auto& node : copy->nodes) {
    for (auto& each : node.after) each = handles.at(each);
  }
  return copy;
}
std::shared_ptr<Graph> clone(const Graph& graph) {
  std::map<cudaGraphNode_t, cudaGraphNode_t> handles;
  return clone(graph, handles);
}

Operation set_operation(Place place, const cudaMemsetParams& of) {
  return [=]() -> cudaError_t {
    const auto row_bytes = of.width * of.elementSize;
    std::vector<unsigned char> row(row_bytes);
    for (std::size_t i = 0; i < of.width; ++i) {
      std::memcpy(row.data() + i * of.elementSize, &of.value, of.elementSize);
    }
    for (std::size_t y = 0; y < of.height; ++y) {
      auto* to = static_cast<std::byte*>(of.dst) + y * of.pitch;
      const auto error = fill("a memset node", place, to, row);
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  };
}

Operation copy_operation(Place place, const cudaMemcpy3DParms& of) {
  return [=] { return copy_3d("a memcpy node", place, of); };
}

Operation copy_operation(Place place, void* to, const void* from, std::size_t bytes,
                         cudaMemcpyKind kind) {
  return [=] { return copy_async("a memcpy node", place, to, from, bytes, kind); };
}

Operation host_operation(const cudaHostNodeParams& of) {
  return [=] {
    Session::current().heap.synchronise();
    of.fn(of.userData);
    return cudaSuccess;
  };
}

/// The node of an executable graph, or of its graph where `exec` is null. nullptr, with a finding:
/// there is none of this type.
GraphNode* node_to_change(const char* call, Place place, cudaGraphExec_t exec, cudaGraphNode_t node,
                          cudaGraphNodeType type) {
  auto& session = Session::current();
  GraphNode* found = nullptr;
  if (exec == nullptr) {
    const auto owner = session.graphs.owners.find(node);
    if (owner != session.graphs.owners.end()) found = owner->second->find(node);
  } else {
    const auto executable = executable_of(call, place, exec);
    if (executable == nullptr) return nullptr;
    found = executable->find(node);
  }
  if (found != nullptr && found->type == type) return found;
  session.mistake(cudaErrorInvalidValue, call, place,
                  found == nullptr ? "the node is none of the graph"
                                   : "the node has another type than these parameters");
  return nullptr;
}

cudaError_t change(const char* call, Place place, cudaGraphExec_t exec, cudaGraphNode_t node,
                   cudaGraphNodeType type, Operation operation) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  auto* found = node_to_change(call, place, exec, node, type);
  if (found == nullptr || !operation) return session.last_error;
  found->run = std::move(operation);
  return cudaSuccess;
}

/// CUDA's way to return a list: its length, or as many elements as there is room for.
cudaError_t give(const std::vector<cudaGraphNode_t>& list, cudaGraphNode_t* nodes, size_t* count) {
  if (nodes != nullptr) std::copy_n(list.begin(), std::min(*count, list.size()), nodes);
  *count = list.size();
  return cudaSuccess;
}

/// The graph behind a handle. nullptr, with a finding: none.
template <class Handle>
std::shared_ptr<Graph> find_graph(const char* call, Place place, Handle handle,
                                  const std::map<Handle, std::shared_ptr<Graph>>& all,
                                  const char* missing) {
  const auto found = all.find(handle);
  if (found != all.end()) return found->second;
  Session::current().mistake(cudaErrorInvalidValue, call, place, missing);
  return nullptr;
}

}  // namespace

std::shared_ptr<Graph> graph_of(const char* call, Place place, cudaGraph_t graph) {
  return find_graph(call, place, graph, Session::current().graphs.graphs,
                    "the graph was not created, or was destroyed");
}

std::shared_ptr<Graph> executable_of(const char* call, Place place, cudaGraphExec_t exec) {
  return find_graph(call, place, exec, Session::current().graphs.executables,
                    "the executable graph was not instantiated, or was destroyed");
}

cudaError_t check_nodes(const char* call, Place place, const Graph& graph,
                        std::span<const cudaGraphNode_t> nodes) {
  auto& session = Session::current();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto owner = session.graphs.owners.find(nodes[i]);
    if (owner != session.graphs.owners.end() && owner->second == &graph) continue;
    return session.mistake(cudaErrorInvalidValue, call, place,
                           fmt::format("dependency {} is no node of this graph", i));
  }
  return cudaSuccess;
}

cudaGraphNode_t add_node(Graph& graph, GraphNode node) {
  node.handle = new_handle<cudaGraphNode_t>();
  Session::current().graphs.owners[node.handle] = &graph;
  graph.nodes.push_back(std::move(node));
  return graph.nodes.back().handle;
}

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names.
cudaError_t cudaGraphCreate(Place, cudaGraph_t* graph, unsigned) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  *graph = new_handle<cudaGraph_t>();
  session.graphs.graphs[*graph] = std::make_shared<Graph>();
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(Place place, cudaGraph_t graph) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto found = graph_of("cudaGraphDestroy", place, graph);
  if (found == nullptr) return session.last_error;
  const auto captured = std::ranges::find(session.graphs.captures, found, &Capture::graph);
  if (captured != session.graphs.captures.end()) {
    return session.mistake(
        cudaErrorInvalidValue, "cudaGraphDestroy", place,
        fmt::format("the capture that began at {} has not ended", captured->began));
  }
  session.graphs.erase(*found);
  return cudaSuccess;
}
cudaError_t cudaGraphClone(Place place, cudaGraph_t* copy, cudaGraph_t graph) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto found = graph_of("cudaGraphClone", place, graph);
  if (found == nullptr) return session.last_error;
  *copy = new_handle<cudaGraph_t>();
  session.graphs.graphs[*copy] = clone(*found);
  return cudaSuccess;
}

#define TRIPTYCH_NODE \
  Place place, cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count
cudaError_t triptychAddKernelNode(TRIPTYCH_NODE, const KernelNode* of) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  auto operation = kernel_operation("cudaGraphAddKernelNode", place, *of);
  if (!operation) return session.last_error;
  return add("cudaGraphAddKernelNode", place, node, graph, {after, count},
             {.type = cudaGraphNodeTypeKernel, .run = std::move(operation)});
}
cudaError_t cudaGraphAddMemcpyNode(TRIPTYCH_NODE, const cudaMemcpy3DParms* of) {
  const std::lock_guard lock(Session::current().mutex);
  return add("cudaGraphAddMemcpyNode", place, node, graph, {after, count},
             {.type = cudaGraphNodeTypeMemcpy, .run = copy_operation(place, *of)});
}
// NOLINTNEXTLINE(readability-function-size): CUDA's own parameters and the place of the call.
cudaError_t cudaGraphAddMemcpyNode1D(TRIPTYCH_NODE, void* to, const void* from, size_t bytes,
                                     cudaMemcpyKind kind) {
  const std::lock_guard lock(Session::current().mutex);
  return add(
      "cudaGraphAddMemcpyNode1D", place, node, graph, {after, count},
      {.type = cudaGraphNodeTypeMemcpy, .run = copy_operation(place, to, from, bytes, kind)});
}
cudaError_t cudaGraphAddMemsetNode(TRIPTYCH_NODE, const cudaMemsetParams* of) {
  const std::lock_guard lock(Session::current().mutex);
  if (of->elementSize != 1 && of->elementSize != 2 && of->elementSize != 4) {
    return Session::current().mistake(
        cudaErrorInvalidValue, "cudaGraphAddMemsetNode", place,
        fmt::format("elements of {} bytes; 1, 2 and 4 are possible", of->elementSize));
  }
  return add("cudaGraphAddMemsetNode", place, node, graph, {after, count},
             {.type = cudaGraphNodeTypeMemset, .run = set_operation(place, *of)});
}
cudaError_t cudaGraphAddHostNode(TRIPTYCH_NODE, const cudaHostNodeParams* of) {
  const std::lock_guard lock(Session::current().mutex);
  return add("cudaGraphAddHostNode", place, node, graph, {after, count},
             {.type = cudaGraphNodeTypeHost, .run = host_operation(*of)});
}
cudaError_t cudaGraphAddEmptyNode(TRIPTYCH_NODE) {
  const std::lock_guard lock(Session::current().mutex);
  return add("cudaGraphAddEmptyNode", place, node, graph, {after, count}, {});
}
cudaError_t cudaGraphAddChildGraphNode(TRIPTYCH_NODE, cudaGraph_t child) {
  constexpr auto kCall = "cudaGraphAddChildGraphNode";
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto found = graph_of(kCall, place, child);
  if (found == nullptr) return session.last_error;
  auto body = clone(*found);
  session.graphs.graphs[new_handle<cudaGraph_t>()] = body;
  return add(kCall, place, node, graph, {after, count},
             {.type = cudaGraphNodeTypeGraph, .bodies = {std::move(body)}});
}
cudaError_t cudaGraphAddEventRecordNode(TRIPTYCH_NODE, cudaEvent_t event) {
  const std::lock_guard lock(Session::current().mutex);
  return add("cudaGraphAddEventRecordNode", place, node, graph, {after, count},
             {.type = cudaGraphNodeTypeEventRecord,
              .run = [=] { return cudaEventRecord(place, event, nullptr); }});
}
cudaError_t cudaGraphAddEventWaitNode(TRIPTYCH_NODE, cudaEvent_t event) {
  const std::lock_guard lock(Session::current().mutex);
  return add("cudaGraphAddEventWaitNode", place, node, graph, {after, count},
             {.type = cudaGraphNodeTypeWaitEvent,
              .run = [=] { return cudaStreamWaitEvent(place, nullptr, event, 0); }});
}
cudaError_t cudaGraphAddMemAllocNode(TRIPTYCH_NODE, cudaMemAllocNodeParams* of) {
  const std::lock_guard lock(Session::current().mutex);
  auto* memory = reserve("cudaGraphAddMemAllocNode", place, &of->dptr, of->bytesize, 0);
  if (memory == nullptr) return Session::current().last_error;
  return add("cudaGraphAddMemAllocNode", place, node, graph, {after, count},
             {.type = cudaGraphNodeTypeMemAlloc,
              .run = [=] { return revive("a memory node", place, *memory); }});
}
cudaError_t cudaGraphAddMemFreeNode(TRIPTYCH_NODE, void* pointer) {
  const std::lock_guard lock(Session::current().mutex);
  return add("cudaGraphAddMemFreeNode", place, node, graph, {after, count},
             {.type = cudaGraphNodeTypeMemFree,
              .run = [=] { return free_memory("a memory node", place, pointer, false); }});
}
cudaError_t triptychAddConditionalNode(TRIPTYCH_NODE, cudaConditionalNodeParams* of) {
  constexpr auto kCall = "cudaGraphAddNode";
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto condition = std::ranges::find_if(session.graphs.conditions, [&](const auto& each) {
    return reinterpret_cast<std::uintptr_t>(&each.value) == of->handle;
  });
  if (condition == session.graphs.conditions.end()) {
    return session.mistake(cudaErrorInvalidValue, kCall, place,
                           "no call of cudaGraphConditionalHandleCreate gave this handle");
  }
  const unsigned most = of->type == cudaGraphCondTypeWhile ? 1 : 2;
  if (of->size == 0 || (of->type != cudaGraphCondTypeSwitch && of->size > most)) {
    return session.mistake(cudaErrorInvalidValue, kCall, place,
                           fmt::format("a condition of this type has 1 to {} graphs", most));
  }
  GraphNode made = {
      .type = cudaGraphNodeTypeConditional, .condition = &condition->value, .branch = of->type};
  auto& handles = session.graphs.bodies.emplace_back(of->size);
  for (auto& handle : handles) {
    cudaGraphCreate(place, &handle, 0);
    made.bodies.push_back(session.graphs.graphs.at(handle));
  }
  of->phGraph_out = handles.data();
  return add(kCall, place, node, graph, {after, count}, std::move(made));
}
#undef TRIPTYCH_NODE

cudaError_t cudaGraphConditionalHandleCreate(Place place, cudaGraphConditionalHandle* handle,
                                             cudaGraph_t graph, unsigned initial, unsigned flags) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto found = graph_of("cudaGraphConditionalHandleCreate", place, graph);
  if (found == nullptr) return session.last_error;
  auto& condition = session.graphs.conditions.emplace_back();
  if (flags == cudaGraphCondAssignDefault) condition.initial = initial;
  found->conditions.push_back(&condition);
  *handle = reinterpret_cast<std::uintptr_t>(&condition.value);
  return cudaSuccess;
}
cudaError_t cudaGraphAddDependencies(Place place, cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, size_t count) {
  constexpr auto kCall = "cudaGraphAddDependencies";
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto found = graph_of(kCall, place, graph);
  if (found == nullptr) return session.last_error;
  for (const auto* nodes : {from, to}) {
    const auto error = check_nodes(kCall, place, *found, {nodes, count});
    if (error != cudaSuccess) return error;
  }
  for (std::size_t i = 0; i < count; ++i) {
    auto& after = found->find(to[i])->after;
    if (std::ranges::find(after, from[i]) == after.end()) after.push_back(from[i]);
  }
  return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(Place place, cudaGraph_t graph, cudaGraphNode_t* nodes,
                              size_t* count) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto found = graph_of("cudaGraphGetNodes", place, graph);
  if (found == nullptr) return session.last_error;
  std::vector<cudaGraphNode_t> list;
  for (const auto& each : found->nodes) list.push_back(each.handle);
  return give(list, nodes, count);
}
cudaError_t cudaGraphGetRootNodes(Place place, cudaGraph_t graph, cudaGraphNode_t* nodes,
                                  size_t* count) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto found = graph_of("cudaGraphGetRootNodes", place, graph);
  if (found == nullptr) return session.last_error;
  std::vector<cudaGraphNode_t> list;
  for (const auto& each : found->nodes) {
    if (each.after.empty()) list.push_back(each.handle);
  }
  return give(list, nodes, count);
}
cudaError_t cudaGraphNodeGetDependencies(Place place, cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                         size_t* count) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto owner = session.graphs.owners.find(node);
  if (owner == session.graphs.owners.end()) {
    return session.mistake(cudaErrorInvalidValue, "cudaGraphNodeGetDependencies", place,
                           "the node is none of a graph");
  }
  return give(owner->second->find(node)->after, nodes, count);
}
cudaError_t cudaGraphNodeGetType(Place place, cudaGraphNode_t node, cudaGraphNodeType* type) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto owner = session.graphs.owners.find(node);
  if (owner == session.graphs.owners.end()) {
    return session.mistake(cudaErrorInvalidValue, "cudaGraphNodeGetType", place,
                           "the node is none of a graph");
  }
  *type = owner->second->find(node)->type;
  return cudaSuccess;
}
cudaError_t cudaGraphNodeFindInClone(Place place, cudaGraphNode_t* node, cudaGraphNode_t original,
                                     cudaGraph_t graph) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto found = graph_of("cudaGraphNodeFindInClone", place, graph);
  if (found == nullptr) return session.last_error;
  const auto copy = std::ranges::find(found->nodes, original, &GraphNode::original);
  if (copy == found->nodes.end()) {
    return session.mistake(cudaErrorInvalidValue, "cudaGraphNodeFindInClone", place,
                           "the graph has no copy of this node");
  }
  *node = copy->handle;
  return cudaSuccess;
}

cudaError_t triptychInstantiate(Place place, cudaGraphExec_t* exec, cudaGraph_t graph) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto found = graph_of("cudaGraphInstantiate", place, graph);
  if (found == nullptr) return session.last_error;
  auto executable = found->ordered();
  if (executable == nullptr) {
    return session.mistake(cudaErrorInvalidValue, "cudaGraphInstantiate", place,
                           "the dependencies of the graph form a cycle");
  }
  *exec = new_handle<cudaGraphExec_t>();
  session.graphs.executables[*exec] = std::move(executable);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(Place place, cudaGraphExec_t exec) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  if (executable_of("cudaGraphExecDestroy", place, exec) == nullptr) return session.last_error;
  session.graphs.executables.erase(exec);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(Place place, cudaGraphExec_t exec, cudaStream_t stream) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto executable = executable_of("cudaGraphLaunch", place, exec);
  if (executable == nullptr) return session.last_error;
  return submit("cudaGraphLaunch", place, stream,
                {.type = cudaGraphNodeTypeGraph, .run = [=] { return executable->run(); }});
}
cudaError_t cudaGraphUpload(Place place, cudaGraphExec_t exec, cudaStream_t stream) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  if (executable_of("cudaGraphUpload", place, exec) == nullptr) return session.last_error;
  return check_stream("cudaGraphUpload", place, stream);
}
cudaError_t triptychUpdateGraph(Place place, cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResult* result) {
  constexpr auto kCall = "cudaGraphExecUpdate";
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  *result = cudaGraphExecUpdateError;
  const auto executable = executable_of(kCall, place, exec);
  const auto found = graph_of(kCall, place, graph);
  if (executable == nullptr || found == nullptr) return session.last_error;
  const auto source = found->ordered();
  if (source != nullptr) *result = executable->update(*source);
  if (*result == cudaGraphExecUpdateSuccess) return cudaSuccess;
  return session.mistake(cudaErrorGraphExecUpdateFailure, kCall, place,
                         "the graphs differ in their nodes or dependencies; instantiate the new "
                         "graph");
}
cudaError_t triptychSetKernelNode(Place place, cudaGraphExec_t exec, cudaGraphNode_t node,
                                  const KernelNode* of) {
  constexpr auto kCall = "cudaGraphExecKernelNodeSetParams";
  return change(kCall, place, exec, node, cudaGraphNodeTypeKernel,
                kernel_operation(kCall, place, *of));
}
cudaError_t cudaGraphExecMemcpyNodeSetParams(Place place, cudaGraphExec_t exec,
                                             cudaGraphNode_t node, const cudaMemcpy3DParms* of) {
  return change("cudaGraphExecMemcpyNodeSetParams", place, exec, node, cudaGraphNodeTypeMemcpy,
                copy_operation(place, *of));
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(Place place, cudaGraphExec_t exec,
                                               cudaGraphNode_t node, void* to, const void* from,
                                               size_t bytes, cudaMemcpyKind kind) {
  return change("cudaGraphExecMemcpyNodeSetParams1D", place, exec, node, cudaGraphNodeTypeMemcpy,
                copy_operation(place, to, from, bytes, kind));
}
cudaError_t cudaGraphExecMemsetNodeSetParams(Place place, cudaGraphExec_t exec,
                                             cudaGraphNode_t node, const cudaMemsetParams* of) {
  return change("cudaGraphExecMemsetNodeSetParams", place, exec, node, cudaGraphNodeTypeMemset,
                set_operation(place, *of));
}
cudaError_t cudaGraphExecHostNodeSetParams(Place place, cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const cudaHostNodeParams* of) {
  return change("cudaGraphExecHostNodeSetParams", place, exec, node, cudaGraphNodeTypeHost,
                host_operation(*of));
}
// NOLINTEND(readability-identifier-naming)

}  // namespace triptych::cuda::program::calls
