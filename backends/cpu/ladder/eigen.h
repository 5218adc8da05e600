// Eigen's product, compiled once for each instruction set: Eigen itself does not choose at run
// time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cpu/ladder/steps.h"

namespace triptych::cpu {

#if defined(__x86_64__)
void eigen_product_avx512(const PlainProduct& product);
void eigen_product_avx2(const PlainProduct& product);
#endif

}  // namespace triptych::cpu
