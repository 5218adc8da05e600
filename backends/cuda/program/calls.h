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

void register_kernel(const void* stub, const char* symbol);
void register_variable(const void* shadow, const char* symbol, bool is_constant);
[[noreturn]] void end(int status, const char* reason, Place place);

/// The variable behind a symbol. nullptr, with a finding: none.
const plain::Variable* variable_of(const char* call, Place place, const void* symbol);
/// Copies with all checks.
cudaError_t copy(const char* call, Place place, void* to, const void* from, std::size_t bytes,
                 cudaMemcpyKind kind);

}  // namespace triptych::cuda::program::calls
