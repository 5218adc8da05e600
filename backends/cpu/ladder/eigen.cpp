// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/ladder/eigen.h"

#include "backends/cpu/ladder/eigen-inl.h"
#include "backends/cpu/simd.h"

namespace triptych::cpu {

void eigen_product(const PlainProduct& product) {
#if defined(__x86_64__) && !defined(TRIPTYCH_NATIVE_SIMD)
  if (simd_level() == Simd::Avx512) return eigen_product_avx512(product);
  if (simd_level() == Simd::Avx2) return eigen_product_avx2(product);
#endif
  multiply_by_eigen(product);
}

}  // namespace triptych::cpu
