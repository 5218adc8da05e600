// Compiled for AVX2, all of it, with a namespace of Eigen of its own (CMakeLists.txt).
// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#include "backends/cpu/ladder/eigen-inl.h"
#include "backends/cpu/ladder/eigen.h"

namespace triptych::cpu {

void eigen_product_avx2(const PlainProduct& product) { multiply_by_eigen(product); }

}  // namespace triptych::cpu
#endif
