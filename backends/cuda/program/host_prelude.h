// CUDA's runtime for a program's C++ files without kernels, which include cuda_runtime.h. clang
// compiles them as ordinary C++, as nvcc does.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define TRIPTYCH_UNWATCHED
#include "backends/cuda/plain/vector_types.h"

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): CUDA's own names.
#define __host__
#define __device__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_align__(bytes) __attribute__((aligned(bytes)))
#define CUDART_VERSION 12080
#define CUDA_VERSION 12080
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)

#include "backends/cuda/program/runtime_api.h"
