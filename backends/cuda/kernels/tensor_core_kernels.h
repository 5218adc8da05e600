// How kernels that need more of a GPU than its CUDA cores enter its table: on a GPU that cannot run
// them they say why.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/kernels/platform.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

/// True when this build has the code for compute capability 9.0a (wgmma).
#if defined(__CUDACC__) && !defined(TRIPTYCH_BUILT_FOR_SM90A)
inline constexpr bool kBuiltForHopper = false;
#else
inline constexpr bool kBuiltForHopper = true;
#endif

/// Appends a kernel with bfloat16 products on tensor cores.
inline void add_for_bf16(KernelList& list, KernelEntry entry) {
  if (list.capability() < 80) {
    entry.accepts = [](const KernelQuery&) {
      return Verdict::no("needs compute capability 8.0: older tensor cores have no bfloat16");
    };
  }
  list.push_back(entry);
}

/// Appends a kernel that uses wgmma.
inline void add_for_wgmma(KernelList& list, KernelEntry entry) {
  if (!kBuiltForHopper || list.capability() != 90) {
    entry.accepts = [](const KernelQuery&) {
      return Verdict::no(
          kBuiltForHopper ? "needs compute capability 9.0: no other has wgmma"
                          : "this build has no code for 9.0a; TRIPTYCH_CUDA_ARCHITECTURES=90a-real "
                            "adds it");
    };
  }
  list.push_back(entry);
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
