// Functions of CUDA's runtime, passed on to the emulator. Compiled by `triptych kernel` and linked
// with the host part of a user's program.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/program/bridge.h"

#include <cstdio>

namespace triptych::cuda::program {
namespace {

const Runtime* runtime = nullptr;

}  // namespace
}  // namespace triptych::cuda::program

using namespace triptych::cuda::program;

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): CUDA's and clang's
// names.
#define TRIPTYCH_UNPACK(...) __VA_ARGS__
#define TRIPTYCH_CALL(name, arguments, ...)                          \
  cudaError_t name(__VA_ARGS__) {                                    \
    runtime->note_use();                                             \
    return runtime->name(__builtin_return_address(0) __VA_OPT__(, )  \
                             __VA_OPT__(TRIPTYCH_UNPACK arguments)); \
  }
#define TRIPTYCH_DRIVER_CALL(result, name, arguments, ...)           \
  result name(__VA_ARGS__) {                                         \
    return runtime->name(__builtin_return_address(0) __VA_OPT__(, )  \
                             __VA_OPT__(TRIPTYCH_UNPACK arguments)); \
  }
extern "C" {

unsigned triptych_bind_runtime(const Runtime* table) {
  runtime = table;
  return kRuntimeVersion;
}

#include "backends/cuda/program/calls.inc"
#include "backends/cuda/program/driver_calls.inc"

// Functions that clang's host code calls when the program is loaded.
void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaUnregisterFatBinary(void**) {}
int __cudaRegisterFunction(void**, const void* stub, char*, const char* symbol, int, void*, void*,
                           void*, void*, int*) {
  runtime->register_kernel(stub, symbol);
  return 0;
}
void __cudaRegisterVar(void**, const void* shadow, char*, const char* symbol, int, std::size_t,
                       int is_constant, int) {
  runtime->register_variable(shadow, symbol, is_constant != 0);
}

void __cudaRegisterTexture(void**, const void* reference, const void**, const char* symbol, int,
                           int, int) {
  runtime->register_texture(reference, symbol);
}

// Ends of the program (the linker's option --wrap).
[[noreturn]] void __wrap_exit(int status) {
  runtime->end(status, "", __builtin_return_address(0));
  __builtin_unreachable();
}
[[noreturn]] void __wrap_abort() {
  runtime->end(134, "the program calls abort", __builtin_return_address(0));
  __builtin_unreachable();
}
[[noreturn]] void __wrap___assert_fail(const char* condition, const char* file, unsigned line,
                                       const char*) {
  static char text[512];
  std::snprintf(text, sizeof text, "the assertion %s of %s:%u fails", condition, file, line);
  runtime->end(134, text, __builtin_return_address(0));
  __builtin_unreachable();
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)
