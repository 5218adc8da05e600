// Variables of __device__ and __constant__, as the host's code uses them.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "backends/cuda/program/calls.h"

namespace triptych::cuda::program::calls {
namespace {

/// Bytes of the variable behind a symbol. nullptr, with a finding: it has none there.
std::byte* bytes_of(const char* call, Place place, const void* symbol, std::size_t offset,
                    std::size_t bytes) {
  const auto* variable = variable_of(call, place, symbol);
  if (variable == nullptr) return nullptr;
  if (offset > variable->bytes || bytes > variable->bytes - offset) {
    Session::current().mistake(cudaErrorInvalidValue, call, place,
                               fmt::format("{} bytes from byte {} on are copied, and {} has {}",
                                           bytes, offset, variable->name, variable->bytes));
    return nullptr;
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a symbol's value
  return reinterpret_cast<std::byte*>(variable->begin) + offset;
}

cudaError_t run_copy(const char* call, Place place, cudaStream_t stream, Operation copy) {
  if (stream == nullptr) {
    const auto error = refuse_default_stream(call, place, stream);
    if (error != cudaSuccess) return error;
    Session::current().heap.synchronise();
    return copy();
  }
  return submit(call, place, stream, {.type = cudaGraphNodeTypeMemcpy, .run = std::move(copy)});
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names.
cudaError_t triptychCopyToSymbol(Place place, const void* symbol, const void* from, size_t bytes,
                                 size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
  constexpr auto kCall = "cudaMemcpyToSymbol";
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  auto* to = bytes_of(kCall, place, symbol, offset, bytes);
  if (to == nullptr) return session.last_error;
  return run_copy(kCall, place, stream, [=] { return copy(kCall, place, to, from, bytes, kind); });
}

cudaError_t triptychCopyFromSymbol(Place place, void* to, const void* symbol, size_t bytes,
                                   size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
  constexpr auto kCall = "cudaMemcpyFromSymbol";
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto* from = bytes_of(kCall, place, symbol, offset, bytes);
  if (from == nullptr) return session.last_error;
  return run_copy(kCall, place, stream, [=] { return copy(kCall, place, to, from, bytes, kind); });
}

cudaError_t triptychSymbolAddress(Place place, void** address, const void* symbol) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  *address = bytes_of("cudaGetSymbolAddress", place, symbol, 0, 0);
  return *address == nullptr ? session.last_error : cudaSuccess;
}

cudaError_t triptychSymbolSize(Place place, size_t* bytes, const void* symbol) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto* variable = variable_of("cudaGetSymbolSize", place, symbol);
  if (variable == nullptr) return session.last_error;
  *bytes = variable->bytes;
  return cudaSuccess;
}
// NOLINTEND(readability-identifier-naming)

}  // namespace triptych::cuda::program::calls
