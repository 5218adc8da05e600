// The table by which a user's program calls the emulated runtime. The bridge, a library that the
// program is linked with, forwards each call with the address to which it returns. Compiled into
// both.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/program/driver_types.h"
#include "backends/cuda/program/types.h"

namespace triptych::cuda::program {

/// Increases with each change of Runtime or of its lists.
inline constexpr unsigned kRuntimeVersion = 4;

/// The address to which a call of the user's code returns.
using Place = const void*;

struct Runtime {
#define TRIPTYCH_OR(value)
#define TRIPTYCH_CALL(name, arguments, ...) \
  cudaError_t (*name)(Place place __VA_OPT__(, ) __VA_ARGS__);
#include "backends/cuda/program/calls.inc"
#undef TRIPTYCH_CALL
#define TRIPTYCH_DRIVER_CALL(result, name, arguments, ...) \
  result (*name)(Place place __VA_OPT__(, ) __VA_ARGS__);
#include "backends/cuda/program/driver_calls.inc"
#undef TRIPTYCH_DRIVER_CALL
  /// The program calls a function of the runtime.
  void (*note_use)();
  void (*register_kernel)(const void* stub, const char* symbol);
  void (*register_variable)(const void* shadow, const char* symbol, bool is_constant);
  void (*register_texture)(const void* reference, const char* symbol);
  /// The program ends, by exit, abort or a failed assertion. Does not return.
  void (*end)(int status, const char* reason, Place place);
};

}  // namespace triptych::cuda::program
