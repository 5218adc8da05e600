// The attributes of functions that g++ and nvcc both compile (docs/decisions/0002).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef __CUDACC__
#define TRIPTYCH_HOST_DEVICE __host__ __device__
#else
#define TRIPTYCH_HOST_DEVICE
#endif

/// For functions that must take on the instruction set of the loop around them.
#define TRIPTYCH_ALWAYS_INLINE [[gnu::always_inline]] TRIPTYCH_HOST_DEVICE inline
