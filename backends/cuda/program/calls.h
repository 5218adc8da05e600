// The emulated functions of CUDA's runtime. Each takes the address to which its call returns.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/program/session.h"

namespace triptych::cuda::program::calls {

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names.
#define TRIPTYCH_CALL(name, arguments, ...) \
  cudaError_t name(Place place __VA_OPT__(, ) __VA_ARGS__);
#include "backends/cuda/program/calls.inc"
#undef TRIPTYCH_CALL
// NOLINTEND(readability-identifier-naming)

/// Bytes of which the pitch of rows is a multiple.
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
cudaError_t free_memory(const char* call, Place place, void* pointer, bool of_host);
/// Copies with all checks.
cudaError_t copy(const char* call, Place place, void* to, const void* from, std::size_t bytes,
                 cudaMemcpyKind kind);
/// Copies rows of `extent.width` bytes.
cudaError_t copy_box(const char* call, Place place, const Rows& to, const Rows& from,
                     const cudaExtent& extent, cudaMemcpyKind kind);
cudaError_t set(const char* call, Place place, void* to, int value, std::size_t bytes);
/// `element`: bytes of an element, or 0.
cudaError_t allocate(const char* call, Place place, MemoryKind kind, void** pointer,
                     std::size_t bytes, std::size_t element);
/// nullptr, with a finding: no array.
const Array* array_of(const char* call, Place place, cudaArray_const_t array);
/// Gives texels these channels. The mistake in them, or an empty text.
std::string set_channels(plain::TexelArray& texels, const cudaChannelFormatDesc& channels);

}  // namespace triptych::cuda::program::calls
