// The emulated functions of CUDA's runtime. Each takes the address to which its call returns.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "backends/cuda/program/session.h"

namespace triptych::cuda::program::calls {

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names.
#define TRIPTYCH_CALL(name, arguments, ...) \
  cudaError_t name(Place place __VA_OPT__(, ) __VA_ARGS__);
#include "backends/cuda/program/calls.inc"
#undef TRIPTYCH_CALL
// NOLINTEND(readability-identifier-naming)

/// The pitch of rows is a multiple of these bytes.
inline constexpr std::size_t kPitch = 512;

/// Rows of bytes, and slices of rows.
struct Rows {
  void* data;
  std::size_t pitch, slice;
};

/// The program calls a function of the runtime.
void note_use();
void register_kernel(const void* stub, const char* symbol);
void register_variable(const void* shadow, const char* symbol, bool is_constant);
void register_texture(const void* reference, const char* symbol);
[[noreturn]] void end(int status, const char* reason, Place place);

/// The variable behind a symbol. nullptr, with a finding: none.
const plain::Variable* variable_of(const char* call, Place place, const void* symbol);
/// The parameters of a kernel, by its function on the host.
void learn_parameters(Kernel& kernel, const void* stub);
/// Copies with all checks.
cudaError_t copy(const char* call, Place place, void* to, const void* from, std::size_t bytes,
                 cudaMemcpyKind kind);
/// Copies rows of `extent.width` bytes.
cudaError_t copy_box(const char* call, Place place, const Rows& to, const Rows& from,
                     const cudaExtent& extent, cudaMemcpyKind kind);
/// As an asynchronous call: the host may not use pinned memory before it waits.
cudaError_t copy_async(const char* call, Place place, void* to, const void* from, std::size_t bytes,
                       cudaMemcpyKind kind);
cudaError_t copy_3d(const char* call, Place place, const cudaMemcpy3DParms& copy);
/// Copies a row of values of the runtime itself.
cudaError_t fill(const char* call, Place place, void* to, std::span<const unsigned char> row);
cudaError_t free_memory(const char* call, Place place, void* pointer, bool of_host);
/// Memory of a graph (Heap::reserve). nullptr, with a finding: none.
Allocation* reserve(const char* call, Place place, void** pointer, std::size_t bytes,
                    std::size_t element);
cudaError_t revive(const char* call, Place place, Allocation& memory);
cudaError_t set(const char* call, Place place, void* to, int value, std::size_t bytes);
/// `element`: bytes of an element, or 0.
cudaError_t allocate(const char* call, Place place, MemoryKind kind, void** pointer,
                     std::size_t bytes, std::size_t element);
/// nullptr, with a finding: no array.
const Array* array_of(const char* call, Place place, cudaArray_const_t array);
/// Gives texels these channels. The mistake in them, or an empty text.
std::string set_channels(plain::TexelArray& texels, const cudaChannelFormatDesc& channels);

template <class Handle>
Handle new_handle() {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a name
  return reinterpret_cast<Handle>(Session::current().new_handle());
}

cudaError_t check_stream(const char* call, Place place, cudaStream_t stream);
/// Runs a stream's operation at once, or records it as a node where the stream is captured.
cudaError_t submit(const char* call, Place place, cudaStream_t stream, GraphNode node);
/// An error where the default stream is used and would wait for a captured stream.
cudaError_t refuse_default_stream(const char* call, Place place, cudaStream_t stream);
/// An error where the host would wait for a captured stream: this one, or any.
cudaError_t refuse_wait(const char* call, Place place, std::optional<cudaStream_t> stream);
/// False: the stream is not captured.
bool record_event(cudaStream_t stream, Event& event);
cudaError_t wait_for_event(Place place, cudaStream_t stream, const Event& event);

/// nullptr, with a finding: there is no such graph.
std::shared_ptr<Graph> graph_of(const char* call, Place place, cudaGraph_t graph);
std::shared_ptr<Graph> executable_of(const char* call, Place place, cudaGraphExec_t exec);
/// An error where one of these is no node of the graph.
cudaError_t check_nodes(const char* call, Place place, const Graph& graph,
                        std::span<const cudaGraphNode_t> nodes);
/// Gives the node a handle.
cudaGraphNode_t add_node(Graph& graph, GraphNode node);
/// The launch of a kernel node. Empty, with a finding: there is no such kernel.
Operation kernel_operation(const char* call, Place place, const KernelNode& node);

}  // namespace triptych::cuda::program::calls
